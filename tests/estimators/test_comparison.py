import numpy as np
import pytest
from estimators.conftest import SMALL

from orbitgp import InvariantClassifier, compare


def test_the_orbit_with_the_highest_evidence_is_chosen(digits):
    found = compare(*digits[0], orbits=["none", "affine"], **SMALL)
    assert found.names == ("affine", "none") and found.best is found.models[0] and found.best.orbit == "affine"
    rows = found.rows
    assert -rows[1]["gap"] > 3 * (rows[0]["std_error"] + rows[1]["std_error"])
    assert rows[0]["gap"] == 0 and rows[1]["gap"] == rows[1]["evidence"] - rows[0]["evidence"] < 0
    lines = str(found).splitlines()
    assert lines[1].startswith("affine") and "chosen" in lines[1] and f"{-rows[1]['gap']:,.0f}" in lines[2]
    axes = found.plot().axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["affine", "none"]


def test_nothing_to_compare_is_an_error(digits):
    with pytest.raises(ValueError, match="name at least one"):
        compare(*digits[0], orbits=[])


def test_each_image_is_drawn_beside_draws_from_its_orbit(classifier, digits):
    images = digits[1][0][:3]
    figure = classifier.plot_orbit(images, draws=4)
    shown = [axes.get_images()[0].get_array() for axes in figure.axes]
    assert len(shown) == 3 * 5
    np.testing.assert_allclose(shown[5], images[1], atol=1e-6)
    assert all(np.any(shown[5] != other) for other in shown[6:10])


def test_a_comparison_that_is_stopped_compares_nothing(digits, monkeypatch):
    fit = InvariantClassifier.fit

    def stopped(self, *data):
        fit(self, *data).interrupted_ = True
        return self

    monkeypatch.setattr(InvariantClassifier, "fit", stopped)
    with pytest.raises(KeyboardInterrupt, match="in the training of none"):
        compare(*digits[0], orbits=["none", "affine"], **SMALL | {"steps": 3})
