import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from orbitgp_paper.figures.curves import Remarks, bound_panel, curves, error_panel
from orbitgp_paper.figures.looks import looks


@pytest.fixture
def ax():
    return Figure().add_subplot()


def frame(**values: list[float]) -> pd.DataFrame:
    """One variant; a seed a keyword, with a value at each of steps 0, 10, 20, …"""
    rows = [
        {"variant": "rbf", "seed": int(seed[1:]), "step": 10 * place, "elbo": value}
        for seed, row in values.items()
        for place, value in enumerate(row)
    ]
    return pd.DataFrame(rows)


def curve(**values):
    return curves(frame(**values), "elbo", looks(["rbf"]))


def lines(ax, width):
    return [line for line in ax.lines if line.get_linewidth() == width and line.get_linestyle() != "None"]


def test_the_mean_is_a_line_and_each_seed_a_thin_one(ax):
    remarks = Remarks()
    bound_panel(ax, curve(s0=[1, 2, 3], s1=[3, 4, 9]), remarks)
    assert not remarks.proxies()  # all is shown
    np.testing.assert_array_equal(lines(ax, 1.4)[0].get_ydata(), [2, 3, 6])
    assert [list(line.get_ydata()) for line in lines(ax, 0.5)] == [[1, 2, 3], [3, 4, 9]]


def test_a_mean_is_taken_over_all_seeds_or_not_at_all(ax):
    nan = np.nan
    remarks = Remarks()
    bound_panel(ax, curve(s0=[nan, 2, 3, 4], s1=[nan, 4, nan, nan], s2=[nan] * 4), remarks)
    np.testing.assert_array_equal(lines(ax, 1.4)[0].get_ydata(), [nan, 3, nan, nan])
    (cross,) = [line for line in ax.lines if line.get_marker() == "x"]
    assert (cross.get_xdata()[0], cross.get_ydata()[0]) == (10, 4)
    assert [proxy.get_label() for proxy in remarks.proxies()] == ["stops: not finite"]


def test_a_value_without_neighbours_is_seen(ax):
    bound_panel(ax, curve(s0=[np.nan, 2, np.nan]), Remarks())
    assert [list(line.get_xdata()) for line in ax.lines if line.get_marker() == "o"] == [[10]]


def test_a_bound_that_begins_far_below_is_marked_where_it_enters(ax):
    remarks = Remarks()
    later = [100, 110, 112, 115, 117, 118, 119, 119.5, 120]
    bound_panel(ax, curve(s0=[-1e6, 50, *later]), remarks)
    low, high = ax.get_ylim()
    assert 90 < low < 110 and high < 125
    (mark,) = [line for line in ax.lines if line.get_marker() == "v"]
    assert 10 < mark.get_xdata()[0] < 20
    assert remarks.beyond == [("v", "bound −1M")]


def test_an_error_that_begins_at_chance_is_marked_above(ax):
    remarks = Remarks()
    error_panel(ax, curve(s0=[90, 5, 3, 2.5, 2.3, 2.2, 2.1, 2.1, 2.1, 2.1, 2.1]), remarks)
    assert ax.get_yscale() == "log"
    assert ax.get_ylim()[1] < 4
    assert [line.get_marker() for line in ax.lines if line.get_marker() in "^v"] == ["^"]
    assert remarks.beyond == [("^", "error 90 %")]


def test_a_curve_that_is_never_inside_has_its_mark_too(ax):
    sane = frame(s0=[1, 2, 3] * 4, s1=[2, 3, 2] * 4, s2=[1, 2, 1] * 4)
    values = pd.concat([sane, frame(s0=[1e19] * 12).assign(variant="wild")])
    remarks = Remarks()
    bound_panel(ax, curves(values, "elbo", looks(["rbf", "wild"])), remarks)
    assert ax.get_ylim()[1] < 4
    assert [line.get_marker() for line in ax.lines if line.get_marker() in "^v"] == ["^"]
    assert remarks.beyond == [("^", "bound 1e+19")]


def test_no_error_no_step_and_no_value(ax):
    error_panel(ax, curve(s0=[50, 1, 0]), Remarks())
    assert ax.get_yscale() == "linear" and ax.get_ylim()[0] <= 0
    error_panel(ax, curve(s0=[90]), Remarks())
    assert ax.get_xlim()[1] > 0 and not ax.texts
    error_panel(ax, curve(s0=[np.nan, np.nan]), Remarks())
    assert [text.get_text() for text in ax.texts] == ["not measured"]
