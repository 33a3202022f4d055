"""Appendix A: how often f strays from itself under a model's own transformations, and the lemma's bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from orbitgp_paper.figures.limits import finite, logarithmic
from orbitgp_paper.figures.looks import Look, looks
from orbitgp_paper.figures.style import HOLLOW, SMALL, TEXT_WIDTH, legend, not_measured, paper_style, remark

VIEWS = {"prior": "prior, scaled to $k(x, x)=1$", "posterior": "posterior, mean over outputs"}
NUMBERS = ("label", "threshold", "probability", "bound", "images")
MARKED = (6, 9)  # the classes that rotation turns into each other
FLOOR = 1e-4  # probabilities below are not distinguished from 0
TYPICAL = 0.1  # classes are compared at the threshold at which deviations are about as likely


def draw(frame: pd.DataFrame) -> Figure:
    """
    Above, the probability of a deviation against its threshold L over all images; below, for each class, at the
    threshold that a vertical line marks above. Prior at the left, posterior at the right.

    :param frame: columns variant, label_text, view (prior or posterior), label (the class), threshold, probability,
        bound, images (how many are behind the row).
    """
    rows = finite(frame, NUMBERS).dropna(subset=list(NUMBERS)).query("images > 0")
    shown = looks(rows["variant"])
    texts = dict(zip(rows["variant"], rows["label_text"].astype(str), strict=True))
    moved = rows.groupby("variant")["probability"].max() > 0
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 3.9), layout="constrained")
        axes = figure.subplots(2, 2)
        for (above, below), view in zip(axes.T, VIEWS, strict=True):
            own = rows[(rows["view"] == view) & rows["variant"].map(moved).astype(bool)]
            above.set_title(VIEWS[view])
            chosen = _by_threshold(above, own, shown)
            _by_class(below, own, shown, chosen)
        axes[0, 0].set_ylabel("probability of a deviation")
        axes[1, 0].set_ylabel("probability of a deviation")
        entries = [
            look.proxy(texts[name] + ("" if moved[name] else ": 0 throughout"), marker=look.marker, markersize=3.5)
            for name, look in shown.items()
        ]
        entries.append(remark("the lemma's bound", linestyle=":", linewidth=1.0, marker="_"))
        if (rows.loc[rows["variant"].map(moved).astype(bool), "probability"] < FLOOR).any():
            entries.append(remark(f"less than {FLOOR:g}", **HOLLOW))
        legend(figure, entries)
    return figure


def _pooled(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the classes, each as heavy as it has images; by variant and threshold."""
    weighted = rows.assign(
        probability=rows["probability"] * rows["images"], bound=rows["bound"] * rows["images"]
    ).groupby(["variant", "threshold"])[["probability", "bound", "images"]]
    total = weighted.sum()
    return total[["probability", "bound"]].div(total["images"], axis=0)


def _by_threshold(ax: Axes, rows: pd.DataFrame, shown: Mapping[str, Look]) -> float:
    """Draws probabilities by threshold, and returns the threshold at which classes are compared."""
    ax.set_xlabel("threshold $L$")
    if rows.empty:
        not_measured(ax)
        return np.nan
    pooled = _pooled(rows)
    for name, look in shown.items():
        if name not in pooled.index:
            continue
        own = pooled.loc[name]
        ax.plot(own.index, own["bound"], color=look.colour, linestyle=":", linewidth=1.0)
        _measured(ax, own.index.to_numpy(), own["probability"], look, linestyle=look.style, linewidth=1.3)
    ax.set_xscale("log")
    _probabilities(ax, pooled)
    typical = pooled["probability"].clip(lower=FLOOR).groupby("threshold").mean()
    chosen = float((np.log(typical) - np.log(TYPICAL)).abs().idxmin())
    ax.axvline(chosen, color="0.8", linewidth=0.8, zorder=0)
    return chosen


def _by_class(ax: Axes, rows: pd.DataFrame, shown: Mapping[str, Look], threshold: float) -> None:
    """One marker for each class and variant, with the bound as a dash above it; 6 and 9 on a grey ground."""
    rows = rows[rows["threshold"] == threshold]
    if rows.empty:
        ax.set_xlabel("class")
        not_measured(ax)
        return
    ax.set_xlabel(f"class, at $L={threshold:g}$")
    classes = sorted(rows["label"].unique())
    names = [name for name in shown if name in set(rows["variant"])]
    for place, name in enumerate(names):
        look, own = shown[name], rows[rows["variant"] == name].set_index("label").reindex(classes)
        x = np.arange(len(classes)) + 0.6 * ((place + 0.5) / len(names) - 0.5)
        _measured(ax, x, own["probability"], look, linestyle="")
        ax.plot(x, own["bound"], color=look.colour, marker="_", markersize=5, linestyle="")
    for place, label in enumerate(classes):
        if label in MARKED:
            ax.axvspan(place - 0.48, place + 0.48, color="0.9", linewidth=0, zorder=0)
    ax.xaxis.set_major_locator(FixedLocator(range(len(classes))))
    ax.set_xticklabels([f"{label:g}" for label in classes])
    for tick, label in zip(ax.get_xticklabels(), classes, strict=True):
        tick.set_fontweight("bold" if label in MARKED else "normal")
    ax.set_xlim(-0.6, len(classes) - 0.4)
    _probabilities(ax, rows)


def _measured(ax: Axes, x: np.ndarray, probability: pd.Series, look: Look, **options: Any) -> None:
    """Probabilities with their markers; hollow triangles on the floor for those below it."""
    values = probability.to_numpy()
    seen = np.where(values >= FLOOR, values, np.nan)
    ax.plot(x, seen, color=look.colour, marker=look.marker, markersize=3.3, **options)
    hidden = values < FLOOR
    ax.plot(x[hidden], np.full(hidden.sum(), FLOOR), color=look.colour, linestyle="", **HOLLOW)


def _probabilities(ax: Axes, rows: pd.DataFrame) -> None:
    """A logarithmic axis that holds every probability that is told from 0, and every bound."""
    logarithmic(ax, 0.7 * max(rows["probability"].min(), FLOOR), 1.25)
    ax.tick_params(labelsize=SMALL)
