"""Ablations: what the bound gains or loses when one part of the recipe is changed."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orbitgp_paper.figures.looks import BLUE, VERMILION
from orbitgp_paper.figures.style import FAINT, SMALL, TEXT_WIDTH, paper_style

#: the variant that the others of its experiment are compared with
WHOLE = "whole"


def draw(finals: pd.DataFrame) -> Figure:
    """
    A panel for each experiment that has a variant ``whole``, a bar for each other variant with the same kind of orbit
    and as many steps: its bound less that of the whole recipe.

    :param finals: columns experiment, variant, label, dataset, steps, elbo, and the parameters by name.
    """
    shown = {str(name): compared(frame) for name, frame in finals.groupby("experiment", sort=False)}
    shown = {name: frame for name, frame in shown.items() if len(frame)}
    heights = [len(frame) for frame in shown.values()]
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 0.6 * len(heights) + 0.2 * sum(heights)), layout="constrained")
        panels = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
        for ax, (name, frame) in zip(panels, shown.items(), strict=True):
            _panel(ax, name, frame)
    return figure


def compared(finals: pd.DataFrame) -> pd.DataFrame:
    """The variants of one experiment that differ from its ``whole`` in a part of the recipe, with ``difference``."""
    whole = finals[finals["variant"] == WHOLE]
    if not len(whole):
        return whole
    orbit = finals.filter(regex=r"^orbit\.").notna()
    alike = (orbit == orbit.loc[whole.index[0]]).all(axis=1) & (finals["steps"] == whole["steps"].iloc[0])
    others = finals[alike & (finals["variant"] != WHOLE)]
    return others.assign(difference=others["elbo"] - whole["elbo"].iloc[0]).sort_values("difference")


def _panel(ax: Axes, name: str, frame: pd.DataFrame) -> None:
    differences = frame["difference"].to_numpy()
    ax.barh(frame["label"], differences, height=0.6, color=[BLUE if value > 0 else VERMILION for value in differences])
    for place, value in enumerate(differences):
        ax.annotate(
            f"{value:+,.0f}".replace("-", "−"),
            (max(value, 0), place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            size=SMALL,
        )
    ax.axvline(0, color=FAINT, linewidth=0.8)
    ax.margins(x=0.16)
    ax.set_title(f"{name}, {frame['steps'].iloc[0]:,} steps")
    ax.set_xlabel("bound, less that of the whole recipe (nats)")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace("-", "−"))
