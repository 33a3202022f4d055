"""Learned orbits in words, from the parameters in the table of runs."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

#: what a parameter is called, where its own name does not say it
WORDS = {
    "alpha": "angle",
    "a_xx": "A_xx",
    "a_xy": "A_xy",
    "a_yx": "A_yx",
    "a_yy": "A_yy",
    "generators.0": "shift x",
    "generators.1": "shift y",
    "generators.2": "rotation",
    "generators.3": "scaling",
    "generators.4": "stretch",
    "generators.5": "shear",
}
ANGLES = ("alpha", "angle")


class Orbit(NamedTuple):
    """What a model has learned: each parameter's name and its range or amplitude."""

    experiment: str
    label: str
    parameters: list[tuple[str, str]]


def learned_orbits(runs: pd.DataFrame, fixed: Container[tuple[str, str]] = ()) -> list[Orbit]:
    """
    :param runs: the table of all runs, with a column ``orbit.…`` for each parameter; blank where a run has none.
    :param fixed: experiment and variant of models whose orbit is not learned.
    :return: one entry a model that learns any, in the table's order. Numbers are means over seeds. Models of one label
        that differ in their number of training images have it in their label.
    """
    found = []
    sizes = runs.groupby(["experiment", "label"])["train_size"].transform("nunique")
    for (experiment, variant), group in runs.groupby(["experiment", "variant"], sort=False):
        names = [name for name in group if str(name).startswith("orbit.") and group[name].notna().any()]
        ends = _upright(group[names].rename(columns=lambda name: str(name).removeprefix("orbit.")))
        means = {str(name): float(ends[name].mean()) for name in ends}
        if means and (experiment, variant) not in fixed:
            label, size = group[["label", "train_size"]].iloc[0]
            several = sizes[group.index[0]] > 1
            found.append(Orbit(str(experiment), f"{label}, {size:,} images" if several else label, [*_ranges(means)]))
    return found


def _upright(ends: pd.DataFrame) -> pd.DataFrame:
    """The lesser end first: a range may end up turned round, in some seeds, which says the same."""
    for own in [str(name).removeprefix("lower.") for name in ends if str(name).startswith("lower.")]:
        pair = [f"lower.{own}", f"upper.{own}"]
        ends[pair] = np.sort(ends[pair], axis=1)
    return ends


def _ranges(means: dict[str, float]) -> Iterator[tuple[str, str]]:
    """Amplitudes as they are, and one range for each pair of lower and upper; a width is their difference."""
    for name, value in means.items():
        kind, _, own = name.partition(".")
        if kind == "lower":
            yield _word(own), f"{_say(own, value)} to {_say(own, means[f'upper.{own}'])}"
        elif kind not in ("upper", "width"):
            yield _word(name), f"±{_say(name, value)}"


def _word(name: str) -> str:
    return WORDS.get(name, name.replace("_", " "))


def _say(name: str, value: float) -> str:
    if not np.isfinite(value):
        return "not finite"
    text = f"{value:.1f}°" if name in ANGLES else f"{value:.2f}"
    return text.replace("-", "−")
