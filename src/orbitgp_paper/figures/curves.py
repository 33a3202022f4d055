"""Error and bound against training step: a line for the mean over the seeds, and a thin one for each seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from orbitgp_paper.figures.limits import logarithmic, plain, short, window
from orbitgp_paper.figures.looks import Look
from orbitgp_paper.figures.style import not_measured, remark

NEAR = 0.04  # marks at an edge that are closer than this fraction of the axis are one


@dataclass(frozen=True)
class Curve:
    """One model's values during training, for each seed."""

    look: Look
    steps: np.ndarray  #: [T]
    values: np.ndarray  #: [seeds, T], NaN where there is none; no seed has none at all

    @property
    def mean(self) -> np.ndarray:
        """[T], over the seeds; NaN where one of them is missing, since a mean over the others would jump."""
        return self.values.mean(axis=0)


@dataclass
class Remarks:
    """What a panel's marks mean, for the legend; filled while panels are drawn."""

    beyond: list[tuple[str, str]] = field(default_factory=list)  #: marker, and the value farthest out
    diverged: bool = False

    def proxies(self) -> list[Line2D]:
        """Entries for a legend, none where there is nothing to remark."""
        entries = [(marker, f"beyond the axis: {value}") for marker, value in self.beyond]
        if self.diverged:
            entries.append(("x", "stops: not finite"))
        return [remark(text, marker=marker, markersize=4) for marker, text in entries]


def curves(metrics: pd.DataFrame, column: str, looks: Mapping[str, Look]) -> list[Curve]:
    """
    :param metrics: columns variant, seed, step and ``column``.
    :param looks: the variants to take, in the order in which they are drawn.
    :return: one curve for each variant that has a finite value.
    """
    found = []
    for variant, look in looks.items():
        rows = metrics[metrics["variant"] == variant]
        table = rows.pivot(index="seed", columns="step", values=column).dropna(how="all")
        if len(table):
            found.append(Curve(look, table.columns.to_numpy(np.float64), table.to_numpy(np.float64)))
    return found


def error_panel(ax: Axes, drawn: list[Curve], remarks: Remarks, *, markers: bool = False) -> None:
    """Test error in percent, on a logarithmic axis unless some model makes none at all at some step."""
    ax.set_ylabel("test error (%)")
    if step_axis(ax, drawn):
        log = all(np.nanmin(curve.values) > 0 for curve in drawn)
        low, high = window(*_stacked(drawn), log=log)
        if log:
            logarithmic(ax, low, high)
        else:
            ax.set_ylim(min(low, 0.0), high)
        draw_curves(ax, drawn, remarks, say=lambda value: f"error {value:.3g} %", markers=markers)


def bound_panel(ax: Axes, drawn: list[Curve], remarks: Remarks, *, markers: bool = False) -> None:
    """Bound of the log marginal likelihood, in short where it is large."""
    ax.set_ylabel("bound (nats)")
    if step_axis(ax, drawn):
        low, high = window(*_stacked(drawn))
        ax.set_ylim(low, high)
        ax.yaxis.set_major_locator(MaxNLocator(5))
        if max(abs(low), abs(high)) >= 1e4:
            ax.set_ylabel("bound ($10^3$ nats)")
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value / 1000)))
        draw_curves(ax, drawn, remarks, say=lambda value: f"bound {short(value)}", markers=markers)


def step_axis(ax: Axes, drawn: list[Curve]) -> bool:
    """A horizontal axis of training steps, if there is anything to draw; says so where there is not."""
    if not drawn:
        not_measured(ax)
        return False
    ax.set_xlim(0, max(curve.steps.max() for curve in drawn) or 1.0)
    ax.set_xlabel("training step")
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(short))
    return True


def draw_curves(
    ax: Axes, drawn: list[Curve], remarks: Remarks, *, say: Callable[[float], str] = str, markers: bool = False
) -> None:
    """
    Draws the curves into an axis whose limits are set, and marks with a triangle wherever one leaves them, and with a
    cross where one stops being finite before its end.

    :param say: how the legend words the most extreme value off the axis.
    :param markers: whether the mean line carries its look's marker here and there.
    """
    low, high = ax.get_ylim()
    for place, curve in enumerate(drawn):
        mark: dict[str, Any] = {"color": curve.look.colour, "linestyle": ""}
        if len(curve.values) > 1:
            for values in curve.values:
                ax.plot(curve.steps, values, color=curve.look.colour, linewidth=0.5, alpha=0.5, zorder=2)
        ax.plot(curve.steps, curve.mean, color=curve.look.colour, linestyle=curve.look.style, linewidth=1.4, zorder=3)
        if markers:
            every = max(1, len(curve.steps) // 5)
            chosen = slice(min(place + 1, len(curve.steps) - 1) % every, None, every)
            ax.plot(curve.steps[chosen], curve.mean[chosen], **mark, marker=curve.look.marker, markersize=3.5, zorder=4)
        for values in curve.values:
            _mark_lonely(ax, curve, values)
            if np.isnan(values[-1]):
                last = np.flatnonzero(np.isfinite(values))[-1]
                remarks.diverged = True
                end = np.clip(values[last], low, high)
                ax.plot(curve.steps[last], end, **mark, marker="x", markersize=5, clip_on=False, zorder=5)
        _mark_edges(ax, curve)
    _, values = _stacked(drawn)
    if np.nanmax(values) > high:
        remarks.beyond.append(("^", say(np.nanmax(values))))
    if np.nanmin(values) < low:
        remarks.beyond.append(("v", say(np.nanmin(values))))


def _mark_lonely(ax: Axes, curve: Curve, values: np.ndarray) -> None:
    """A dot where a value has no neighbour that a line could lead to."""
    there = np.isfinite(values)
    lonely = there & ~np.r_[False, there[:-1]] & ~np.r_[there[1:], False]
    if lonely.any():
        ax.plot(curve.steps[lonely], values[lonely], color=curve.look.colour, marker="o", markersize=2.5, linestyle="")


def _mark_edges(ax: Axes, curve: Curve) -> None:
    """A triangle where a curve leaves the axis or comes back to it; where several do so together, one."""
    low, high = ax.get_ylim()
    width = ax.get_xlim()[1]
    for edge, outside, marker in ((high, curve.values > high, "^"), (low, curve.values < low, "v")):
        places: list[float] = []
        for values, out in zip(curve.values, outside, strict=True):
            places += _crossings(ax, curve.steps, values, out, edge)
        shown: list[float] = []
        for place in sorted(places):
            if not shown or place - shown[-1] > NEAR * width:
                shown.append(place)
        if shown:  # an empty line that is not clipped upsets the layout
            options: dict[str, Any] = {"color": curve.look.colour, "marker": marker, "markersize": 4, "linestyle": ""}
            ax.plot(shown, [edge] * len(shown), **options, clip_on=False, zorder=5)


def _crossings(ax: Axes, steps: np.ndarray, values: np.ndarray, out: np.ndarray, edge: float) -> list[float]:
    """Where the straight lines between values cross an edge; the middle of the steps where all are beyond it."""
    there = np.isfinite(values)
    if out[there].all():
        return [float(np.median(steps[there]))] if out.any() else []
    scale = ax.yaxis.get_transform()
    places = []
    for place in np.flatnonzero((out[:-1] != out[1:]) & there[:-1] & there[1:]):
        ends = scale.transform(np.array([values[place], edge, values[place + 1]]))
        share = (ends[1] - ends[0]) / (ends[2] - ends[0])
        places.append(float(steps[place] + share * (steps[place + 1] - steps[place])))
    return places


def _stacked(drawn: list[Curve]) -> tuple[np.ndarray, np.ndarray]:
    """All curves on one set of steps, [T] and [curves and seeds, T]."""
    steps = np.unique(np.concatenate([curve.steps for curve in drawn]))
    rows = np.full((sum(len(curve.values) for curve in drawn), len(steps)), np.nan)
    first = 0
    for curve in drawn:
        rows[first : first + len(curve.values), np.searchsorted(steps, curve.steps)] = curve.values
        first += len(curve.values)
    return steps, rows
