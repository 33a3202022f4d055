"""Appendix B: bias and spread of the estimators against the number of samples."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from orbitgp_paper.figures.limits import finite, logarithmic
from orbitgp_paper.figures.looks import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, Look
from orbitgp_paper.figures.style import HOLLOW, SMALL, TEXT_WIDTH, legend, not_measured, paper_style, remark

QUANTITIES = {"k_ff": "$k_{ff}$", "square_norm": r"$\Vert\barφ\Vert^2$", "bound": "bound (nats an image)"}
#: the estimators with their legend texts; the last two are biased by construction
ESTIMATORS = {
    "iid": ("i.i.d. (paper)", Look(BLACK, "-", "o")),
    "iid_groups": ("two groups, i.i.d.", Look(BLUE, (0, (5, 1.5)), "s")),
    "sobol_groups": ("two groups, Sobol", Look(GREEN, (0, (6, 1.2, 1.2, 1.2)), "D")),
    "without_replacement": ("without replacement", Look(ORANGE, (0, (2.5, 1.2)), "^")),
    "naive": ("all pairs, i.i.d.: biased", Look(VERMILION, (0, (1.2, 1.0)), "X")),
    "sobol_naive": ("all pairs, Sobol: biased", Look(PURPLE, (0, (3.5, 1, 1, 1)), "P")),
}
SURE = 4.0  # standard errors from 0 from which on a bias is taken for one
MEASURES = {"bias": "|bias|", "std": "standard deviation"}
NUMBERS = ("samples", "bias", "bias_std_error", "std")


def draw(frame: pd.DataFrame) -> Figure:
    """
    One column for each quantity: above, the size of the bias with its standard error; below, the standard deviation of
    one estimate, where each image has draws of its own. A bias of more than ``SURE`` standard errors is drawn; a hollow
    triangle at that height stands for any smaller one.

    :param frame: columns estimator, shared (one set of draws for all images), samples, quantity, bias, bias_std_error,
        std.
    """
    rows = finite(frame, NUMBERS).dropna(subset=list(NUMBERS))
    shared = rows["shared"].astype(str).str.lower().isin(["true", "1"])  # words, where a file was read as such
    rows = rows[~shared]
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 3.3), layout="constrained")
        axes = figure.subplots(len(MEASURES), len(QUANTITIES))
        for column, (quantity, title) in zip(axes.T, QUANTITIES.items(), strict=True):
            own = rows[rows["quantity"] == quantity]
            column[0].set_title(title)
            for ax, measure in zip(column, MEASURES, strict=True):
                if own.empty:
                    not_measured(ax)
                else:
                    _panel(ax, own, measure)
            column[-1].set_xlabel("samples $S$")
        for line, text in zip(axes, MEASURES.values(), strict=True):
            line[0].set_ylabel(text)
        entries = [
            look.proxy(text, marker=look.marker, markersize=3.5)
            for name, (text, look) in ESTIMATORS.items()
            if name in set(rows["estimator"])
        ]
        entries.append(remark(f"no bias found; drawn at {SURE:g} standard errors", **HOLLOW))
        if (rows["std"] == 0).any():
            entries.append(remark("beyond the axis: 0", marker="v", markersize=4))
        legend(figure, entries)
    return figure


def _panel(ax: Axes, rows: pd.DataFrame, measure: str) -> None:
    """Lines for what was found, hollow triangles at ``SURE`` standard errors where no bias was."""
    ax.set_xscale("log", base=2)
    limit = SURE * rows["bias_std_error"]
    sure = (rows["bias"].abs() > limit) | (measure != "bias")
    values = rows[measure].abs().where(sure, limit).where(lambda size: size > 0)
    if values.notna().any():
        logarithmic(ax, 0.6 * values.min(), 1.6 * values.max())
    for name, (_, look) in ESTIMATORS.items():
        own = rows[rows["estimator"] == name].sort_values("samples")
        found, rest = own[sure[own.index]], own[~sure[own.index]]
        error = found["bias_std_error"] if measure == "bias" else None
        options = {**look.line, "linewidth": 1.2, "markersize": 3.5}
        ax.errorbar(found["samples"], values[found.index], yerr=error, elinewidth=0.6, **options)
        ax.plot(rest["samples"], values[rest.index], **{**HOLLOW, "color": look.colour, "linestyle": ""})
        none = own[values[own.index].isna()]
        if len(none):
            bottom = [ax.get_ylim()[0]] * len(none)
            ax.plot(none["samples"], bottom, color=look.colour, linestyle="", marker="v", markersize=4, clip_on=False)
    ticks = sorted(rows["samples"].unique())
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.tick_params(labelsize=SMALL)
