"""Figure 3's data by several recipes: the way of each training's angle and bound, and where both end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from orbitgp_paper.figures.curves import Remarks
from orbitgp_paper.figures.fig3 import STARTS, TRUTHS
from orbitgp_paper.figures.limits import finite, plain, short, window
from orbitgp_paper.figures.looks import BLUE, ORANGE, SKY, VERMILION
from orbitgp_paper.figures.style import FAINT, TEXT_WIDTH, legend, not_measured, paper_style, remark
from orbitgp_paper.runs.reading import ANGLE

#: by what keeps the angle within 0° and 180°, and whether all images of a batch have the same draws
COLOURS = {("fold", False): BLUE, ("fold", True): SKY, ("sigmoid", False): ORANGE, ("sigmoid", True): VERMILION}
OPTIMISERS = {"natural": "natural steps", "adam": "Adam"}  #: filled, hollow
MARKERS = [look.marker for look in STARTS]
BEFORE = 0.5  #: how much of the way is shown, by the span of the ends' bounds


def draw(finals: pd.DataFrame, metrics: pd.DataFrame) -> Figure:
    """
    A panel for each true angle, a point for each run that has an angle, and a thin line for the way to it. Colours tell
    transforms and draws apart, fillings the optimisers, markers the angles that runs start from.

    :param finals: columns variant, seed, alpha_true, start and orbit.alpha in degrees, elbo, optimiser, transform,
        shared.
    :param metrics: columns variant, seed, step, elbo and orbit.alpha.
    """
    if ANGLE not in finals:  # no model has one
        finals, metrics = (frame.assign(**{ANGLE: np.nan}) for frame in (finals, metrics))
    frame = finite(finals, ["alpha_true", "start", "elbo", ANGLE]).dropna(subset=[ANGLE, "elbo"])
    ways = dict(iter(finite(metrics, ["elbo", ANGLE]).dropna(subset=[ANGLE, "elbo"]).groupby(["variant", "seed"])))
    starts = sorted(frame["start"].round().unique())
    markers = {start: MARKERS[place % len(MARKERS)] for place, start in enumerate(starts)}
    truths = sorted(TRUTHS if set(frame["alpha_true"]) <= set(TRUTHS) else set(frame["alpha_true"]))
    least = max(45 * np.floor((frame[ANGLE].min() - 5) / 45), 0) if len(frame) else 0
    remarks = Remarks()
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 2.4), layout="constrained")
        for ax, truth in zip(figure.subplots(1, len(truths), squeeze=False)[0], truths, strict=True):
            ax.set_title(rf"digits rotated by up to $\alpha_\mathrm{{true}}$ = {truth:g}°")
            _panel(ax, truth, frame[frame["alpha_true"] == truth], ways, markers, remarks)
            if ax.lines:
                ax.set(ylim=(least, 188), yticks=np.arange(least, 181, 45))
        figure.axes[0].set_ylabel(r"learned $\alpha$ (°)")
        legend(figure, _entries(frame, markers) + remarks.proxies())
    return figure


def _panel(
    ax: Axes,
    truth: float,
    rows: pd.DataFrame,
    ways: Mapping[Any, pd.DataFrame],
    markers: dict[float, str],
    remarks: Remarks,
) -> None:
    """
    Angles over bounds, with the true angle as a dashed line; bounds far below the others stand at the edge.

    :param ways: for variant and seed, the bound and the angle in training.
    """
    if not len(rows):
        not_measured(ax)
        return
    low, high = window(np.zeros(1), rows["elbo"].to_numpy()[:, None])
    low -= BEFORE * (high - low)
    ax.set(xlim=(low, high), xlabel="bound (nats)")
    ax.xaxis.set_major_locator(MaxNLocator(4))
    if max(abs(low), abs(high)) >= 1e4:
        ax.set_xlabel("bound ($10^3$ nats)")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value / 1000)))
    ax.axhline(truth, color=FAINT, linestyle="--", linewidth=0.9, zorder=1)
    for row in rows.to_dict("records"):
        colour = COLOURS[row["transform"], bool(row["shared"])]
        face = colour if row["optimiser"] == "natural" else "white"
        inside = low <= row["elbo"] <= high
        if (way := ways.get((row["variant"], row["seed"]))) is not None and inside:
            ax.plot([*way["elbo"], row["elbo"]], [*way[ANGLE], row[ANGLE]], color=colour, linewidth=0.6, alpha=0.6)
        ax.plot(
            np.clip(row["elbo"], low, high),
            row[ANGLE],
            color=colour,
            marker=markers[round(row["start"])] if inside else "<",
            markerfacecolor=face,
            markersize=4.5,
            clip_on=False,
            zorder=3,
        )
    if rows["elbo"].min() < low:
        remarks.beyond.append(("<", f"bound {short(rows['elbo'].min())}"))


def _entries(frame: pd.DataFrame, markers: dict[float, str]) -> list[Line2D]:
    """What colours, fillings and markers mean, as far as there are any."""
    there = set(zip(frame["transform"], frame["shared"].astype(bool), strict=True))
    dot = {"marker": "o", "markersize": 4.5}
    entries = [
        remark(f"{transform}, {'shared' if shared else 'own'} draws", color=colour, **dot)
        for (transform, shared), colour in COLOURS.items()
        if (transform, shared) in there
    ]
    for kind, text in OPTIMISERS.items():
        if (frame["optimiser"] == kind).any():
            entries.append(remark(text, **dot, markerfacecolor=FAINT if kind == "natural" else "white"))
    entries += [remark(f"from {start:g}°", marker=marker, markersize=4.5) for start, marker in markers.items()]
    return [*entries, remark("true angle", linestyle="--", linewidth=0.9)] if len(frame) else []
