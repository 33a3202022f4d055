import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from orbitgp_paper.figures.frames import finite, labels
from orbitgp_paper.figures.limits import log_ticks, logarithmic, short, window
from orbitgp_paper.figures.looks import KNOWN, looks

STEPS = np.arange(11.0)


def test_the_whole_is_shown_where_it_fits():
    low, high = window(STEPS, np.linspace(0, 10, 11)[None])
    assert low < 0 and high > 10


def test_early_values_that_dwarf_the_rest_are_left_out():
    values = np.r_[-1000.0, -500.0, np.linspace(0, 10, 9)][None]
    low, high = window(STEPS, values)
    assert -2 < low < 0 and 10 < high < 12


def test_early_means_early_in_each_curve():
    short_run = np.where(STEPS <= 1, [-1e6, 20] + [0] * 9, np.nan)
    low, high = window(STEPS, np.stack([np.linspace(0, 10, 11), short_run]))
    assert -1 < low < 2 and 20 < high < 22


def test_a_worse_model_stays_on_the_axis():
    better = 450e3 + np.linspace(0, 1e3, 11)
    low, _ = window(STEPS, np.stack([better, better + 500, better - 60e3]))
    assert low < 390e3


def test_grotesque_values_stretch_no_axis():
    sane = np.linspace(0, 10, 11)
    spiked = np.where(STEPS == 7, -1e12, sane)
    low, high = window(STEPS, np.stack([sane, sane + 1, spiked, np.full(11, 1e19)]))
    assert low > -5 and high < 15


def test_a_flat_curve_has_an_axis():
    for log in (False, True):
        low, high = window(STEPS, np.full((1, 11), 3.0), log=log)
        assert low < 3 < high
    low, high = window(STEPS, np.zeros((1, 11)))
    assert low < 0 < high


@given(st.floats(1e-5, 1e4), st.floats(1.02, 1e6))
def test_logarithmic_axes_have_a_few_ticks(low, ratio):
    ticks = log_ticks(low, low * ratio)
    assert 2 <= len(ticks) <= 7
    assert all(low <= tick <= low * ratio for tick in ticks)
    assert len({f"{tick:.6g}" for tick in ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (1.2, 95, ["3", "10", "30"]),
        (1.3, 3.1, ["1.5", "2", "3"]),
        (2e-5, 2e-3, ["$10^{-4}$", "0.001"]),
        (2e-5, 8e-5, [rf"${digit}\cdot10^{{-5}}$" for digit in (2, 3, 5, 7)]),
    ],
)
def test_logarithmic_ticks_are_written_short(low, high, texts):
    ax = Figure().add_subplot()
    logarithmic(ax, low, high)
    assert [ax.yaxis.get_major_formatter()(tick, 0) for tick in ax.get_yticks()] == texts


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (400, "400"), (2000, "2k"), (-1500, "−1.5k"), (2.5e6, "2.5M"), (-39490, "−39.5k"), (1e19, "1e+19")],
)
def test_numbers_are_short(value, text):
    assert short(value) == text


def test_models_look_the_same_in_every_figure_and_all_differ():
    assert looks(["affine", "rbf"])["affine"] == looks(["affine", "local", "fixed", "mine"])["affine"]
    assert list(looks(["zeta", "local", "alpha", "rbf", "rbf"])) == ["rbf", "local", "alpha", "zeta"]
    assert (
        len({look.colour for look in KNOWN.values()}) == len({str(look.style) for look in KNOWN.values()}) == len(KNOWN)
    )
    found = looks([*KNOWN, *(f"mine{number}" for number in range(12))])
    assert len({(look.colour, str(look.style)) for look in found.values()}) == len(found)


def test_what_is_not_finite_is_missing_and_a_variant_without_a_label_goes_by_its_name():
    frame = pd.DataFrame({"elbo": [1.0, np.inf, -np.inf], "variant": ["a", "a", "b"], "label": [None, "first", None]})
    np.testing.assert_array_equal(finite(frame, ["elbo"])["elbo"], [1.0, np.nan, np.nan])
    assert np.isinf(frame["elbo"]).sum() == 2
    assert labels(frame) == {"a": "first", "b": "b"}
