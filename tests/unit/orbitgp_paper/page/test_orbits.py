"""Learned orbits in words."""

import numpy as np
import pandas as pd

from orbitgp_paper.page.orbits import learned_orbits

RUNS = pd.DataFrame(
    [
        ("mnist", "rbf", "RBF", 100, np.nan, np.nan, np.nan, np.nan, np.nan),
        ("mnist", "rotation", "rotation", 100, 19.0, np.nan, np.nan, np.nan, np.nan),
        ("mnist", "rotation", "rotation", 100, 21.0, np.nan, np.nan, np.nan, np.nan),
        ("mnist", "affine", "affine", 100, np.nan, -0.25, 1.5, 1.75, np.nan),
        ("mnist", "affine", "affine", 100, np.nan, 1.0, -0.75, 1.75, np.nan),  # turned round
        ("rotated", "local", "local", 100, np.nan, np.nan, np.nan, np.nan, np.inf),
        ("rotated", "fixed", "fixed", 100, 180.0, np.nan, np.nan, np.nan, np.nan),
    ],
    columns=[
        *("experiment", "variant", "label", "train_size", "orbit.alpha", "orbit.lower.a_xy", "orbit.upper.a_xy"),
        *("orbit.width.a_xy", "orbit.generators.2"),
    ],
)


def test_means_over_seeds_of_what_was_learned_and_nothing_else():
    assert learned_orbits(RUNS, {("rotated", "fixed")}) == [
        ("mnist", "rotation", [("angle", "±20.0°")]),
        ("mnist", "affine", [("A_xy", "−0.50 to 1.25")]),
        ("rotated", "local", [("rotation", "±not finite")]),
    ]
    assert [orbit.label for orbit in learned_orbits(RUNS)] == ["rotation", "affine", "local", "fixed"]


def test_models_of_one_label_are_told_apart_by_their_number_of_images():
    few = RUNS[RUNS["variant"] == "affine"].assign(variant="few", train_size=1250)
    labels = [orbit.label for orbit in learned_orbits(pd.concat([RUNS, few], ignore_index=True))]
    assert labels == ["rotation", "affine, 100 images", "local", "fixed", "affine, 1,250 images"]
