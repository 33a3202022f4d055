import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orbitgp_paper.figures.limits import finite, log_ticks, window
from orbitgp_paper.figures.looks import KNOWN, labels, looks

STEPS = np.arange(11.0)
ANY, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        pytest.param([STEPS], (-ANY, 0), (10, ANY), id="the whole is shown where it fits"),
        pytest.param([np.r_[-1e3, -500, 1.25 * STEPS[:9]]], (-2, 0), (10, 12), id="early values dwarf the rest"),
        pytest.param([STEPS, np.r_[-1e6, 20, [NAN] * 9]], (-1, 2), (20, 22), id="early means early in each curve"),
        pytest.param([1e3 * STEPS, 500 + 1e3 * STEPS, STEPS - 6e4], (-ANY, -6e4), (1e4, ANY), id="a worse model stays"),
        pytest.param(
            [STEPS, STEPS + 1, np.where(STEPS == 7, -1e12, STEPS), np.full(11, 1e19)],
            (-5, ANY),
            (0, 15),
            id="grotesque values stretch no axis",
        ),
        pytest.param([STEPS, np.where(STEPS == 7, -150, STEPS)], (-5, 2), (10, 12), id="a fall stretches no axis"),
        pytest.param([np.full(11, 3.0)], (-ANY, 3), (3, ANY), id="a flat curve has an axis"),
        pytest.param([np.zeros(11)], (-ANY, 0), (0, ANY), id="zero"),
    ],
)
def test_window(values, low, high):
    found = window(STEPS, np.stack(values))
    assert low[0] < found[0] < low[1] and high[0] < found[1] < high[1]
    if np.min(values) > 0:
        found = window(STEPS, np.stack(values), log=True)
        assert 0 < found[0] < low[1] and high[0] < found[1]


@given(st.floats(1e-5, 1e4), st.floats(1.02, 1e6))
@example(0.0003, 1.02)  # the upper end is 0.000306 but for the last bit
def test_logarithmic_axes_have_a_few_ticks(low, ratio):
    ticks = log_ticks(low, low * ratio)
    assert 2 <= len(ticks) <= 7
    assert all(low <= tick <= low * ratio for tick in ticks)
    assert len({f"{tick:.6g}" for tick in ticks}) == len(ticks)


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
