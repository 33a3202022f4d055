import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from orbitgp_paper.figures.frames import labels, require
from orbitgp_paper.figures.looks import KNOWN, looks


def test_a_model_looks_the_same_in_every_figure():
    assert looks(["affine", "rbf"])["affine"] == looks(["affine", "local", "fixed", "mine"])["affine"]


def test_known_models_come_first_in_their_order():
    assert list(looks(["zeta", "local", "alpha", "rbf", "rbf"])) == ["rbf", "local", "alpha", "zeta"]


def test_known_models_differ_in_colour_and_in_line_style():
    assert len({look.colour for look in KNOWN.values()}) == len(KNOWN)
    assert len({str(look.style) for look in KNOWN.values()}) == len(KNOWN)


def test_no_colour_is_too_light_for_white_paper():
    for look in KNOWN.values():
        assert np.dot(to_rgb(look.colour), [0.299, 0.587, 0.114]) < 0.75


def test_many_models_of_ones_own_all_look_different():
    found = looks([*KNOWN, *(f"mine{number}" for number in range(12))])
    assert len({(look.colour, str(look.style)) for look in found.values()}) == len(found)


def test_frames_are_checked_by_name_and_by_content():
    frame = pd.DataFrame({"variant": ["a", "b"], "elbo": ["1.5", "many"]})
    with pytest.raises(ValueError, match="metrics must have the columns step; it has variant, elbo"):
        require(frame, ["variant"], ["step"], "metrics")
    with pytest.raises(ValueError, match="column elbo of metrics must hold numbers"):
        require(frame, ["variant"], ["elbo"], "metrics")


def test_infinities_become_missing_and_the_frame_given_stays():
    frame = pd.DataFrame({"elbo": [1.0, np.inf, -np.inf]})
    np.testing.assert_array_equal(require(frame, [], ["elbo"], "metrics")["elbo"], [1.0, np.nan, np.nan])
    assert np.isinf(frame["elbo"]).sum() == 2


def test_a_variant_without_a_label_goes_by_its_name():
    frame = pd.DataFrame({"variant": ["a", "a", "b"], "label": [None, "first", None]})
    assert labels(frame) == {"a": "first", "b": "b"}
