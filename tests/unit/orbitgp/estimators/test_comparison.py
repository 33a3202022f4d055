import numpy as np
import pytest

from orbitgp import compare

from .conftest import SMALL


def test_the_orbit_with_the_highest_evidence_is_chosen(digits):
    found = compare(*digits[0], orbits=["none", "affine"], **SMALL)
    assert found.names == ("affine", "none") and found.best is found.models[0] and found.best.orbit == "affine"
    rows = found.rows
    assert rows[0]["gap"] == 0 and rows[1]["gap"] == rows[1]["evidence"] - rows[0]["evidence"] < 0
    lines = str(found).splitlines()
    assert lines[1].startswith("affine") and "chosen" in lines[1] and f"{-rows[1]['gap']:,.0f}" in lines[2]
    axes = found.plot().axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["affine", "none"]


def test_nothing_to_compare_is_an_error(digits):
    with pytest.raises(ValueError, match="name one at least"):
        compare(*digits[0], orbits=[])


def test_each_image_is_drawn_beside_draws_from_its_orbit(classifier, digits):
    images = digits[1][0][:3]
    figure = classifier.plot_orbit(images, draws=4)
    shown = [axes.get_images()[0].get_array() for axes in figure.axes]
    assert len(shown) == 3 * 5
    np.testing.assert_allclose(shown[5], images[1], atol=1e-6)
    assert all(np.any(shown[5] != other) for other in shown[6:10])
