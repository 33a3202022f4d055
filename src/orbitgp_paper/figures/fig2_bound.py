"""Beside figure 2: the variational bound against the exact log marginal likelihood, as inducing points are added."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from orbitgp_paper.figures.limits import finite, logarithmic, short
from orbitgp_paper.figures.looks import BLACK, BLUE, Look
from orbitgp_paper.figures.style import TEXT_WIDTH, legend, not_measured, paper_style, remark

LOOKS = {"invariant": Look(BLUE, "-", "o"), "plain": Look(BLACK, (0, (4, 1.5)), "s")}
DEPTH = 40.0  # how many nats below the lower exact value the left panel reaches, at most
LEAST = 1e-3  # nats; a smaller distance is rounding and jitter


def draw(bounds: pd.DataFrame) -> Figure:
    """
    Left the bound itself; right how far it is below the exact value, where small numbers of inducing points fit in too.

    :param bounds: columns model (invariant or plain), inducing, elbo, log_marginal_likelihood.
    """
    frame = finite(bounds, ["inducing", "elbo", "log_marginal_likelihood"]).dropna().sort_values("inducing")
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 2.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.set_ylabel("bound (nats)")
        right.set_ylabel("exact − bound (nats)")
        if frame.empty:
            not_measured(left)
            not_measured(right)
            return figure
        cut = _bound(left, frame)
        rounded = _distance(right, frame)
        for ax in (left, right):
            ax.set_xscale("log")
            ax.xaxis.set_major_locator(FixedLocator(sorted(set(frame["inducing"]))))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_xlabel("inducing points")
        entries = [
            look.proxy(f"{name} GP", marker=look.marker, markersize=4)
            for name, look in LOOKS.items()
            if name in set(frame["model"])
        ]
        entries.append(remark("exact log marginal likelihood", linestyle=":"))
        if cut is not None:
            entries.append(remark(f"beyond the axis: {short(cut)}", marker="v", markersize=4))
        if rounded:
            entries.append(remark(f"less than {LEAST:g} nats", marker="_", markersize=6))
        legend(figure, entries)
    return figure


def _bound(ax: Axes, frame: pd.DataFrame) -> float | None:
    """Draws the bounds, and returns the lowest value that is off the axis, if there is one."""
    low = min(frame["elbo"].min(), frame["log_marginal_likelihood"].min())
    high = max(frame["elbo"].max(), frame["log_marginal_likelihood"].max())
    floor = max(low, frame["log_marginal_likelihood"].min() - DEPTH)
    pad = 0.08 * (high - floor) or 1.0
    ax.set_ylim(floor - pad, high + pad)
    cut = frame["elbo"] < floor - pad
    for name, rows in frame.groupby("model", sort=False):
        look = LOOKS[str(name)]
        for exact in sorted(set(rows["log_marginal_likelihood"])):  # one, as inducing points do not change it
            ax.axhline(exact, color=look.colour, linestyle=":", linewidth=1.0)
        ax.plot(rows["inducing"], rows["elbo"], **look.line, markersize=4)
        off = rows.loc[cut.loc[rows.index], "inducing"]
        if len(off):  # an empty line that is not clipped upsets the layout
            bottom = np.full(len(off), floor - pad)
            ax.plot(off, bottom, color=look.colour, marker="v", markersize=5, linestyle="", clip_on=False)
    return float(frame["elbo"].min()) if cut.any() else None


def _distance(ax: Axes, frame: pd.DataFrame) -> bool:
    """Draws exact − bound, and returns whether some of it was too small to show."""
    gap = frame["log_marginal_likelihood"] - frame["elbo"]
    logarithmic(ax, 0.6 * max(gap.min(), LEAST), 1.6 * max(gap.max(), LEAST))
    for name, rows in frame.groupby("model", sort=False):
        look = LOOKS[str(name)]
        shown = gap.loc[rows.index].clip(lower=LEAST)
        ax.plot(rows["inducing"], shown, **look.line, markersize=4)
        below = shown[gap.loc[rows.index] < LEAST]
        ax.plot(frame["inducing"].loc[below.index], below, color=look.colour, marker="_", markersize=10, linestyle="")
    return bool((gap < LEAST).any())
