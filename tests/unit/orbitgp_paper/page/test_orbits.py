"""Learned orbits in words."""

import numpy as np
import pandas as pd

from orbitgp_paper.page.orbits import learned_orbits

RUNS = pd.DataFrame(
    [
        ("mnist", "rbf", "RBF", np.nan, np.nan, np.nan, np.nan, np.nan),
        ("mnist", "rotation", "rotation", 19.0, np.nan, np.nan, np.nan, np.nan),
        ("mnist", "rotation", "rotation", 21.0, np.nan, np.nan, np.nan, np.nan),
        ("mnist", "affine", "affine", np.nan, -0.25, 1.5, 1.75, np.nan),
        ("rotated", "local", "local", np.nan, np.nan, np.nan, np.nan, np.inf),
        ("rotated", "fixed", "fixed", 180.0, np.nan, np.nan, np.nan, np.nan),
    ],
    columns=[
        *("experiment", "variant", "label", "orbit.alpha", "orbit.lower.a_xy", "orbit.upper.a_xy", "orbit.width.a_xy"),
        "orbit.generators.2",
    ],
)


def test_means_over_seeds_of_what_was_learned_and_nothing_else():
    assert learned_orbits(RUNS, {("rotated", "fixed")}) == [
        ("mnist", "rotation", [("angle", "±20.0°")]),
        ("mnist", "affine", [("A_xy", "−0.25 to 1.50")]),
        ("rotated", "local", [("rotation", "±not finite")]),
    ]
    assert [orbit.label for orbit in learned_orbits(RUNS)] == ["rotation", "affine", "local", "fixed"]
