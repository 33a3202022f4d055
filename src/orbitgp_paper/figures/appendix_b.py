"""Appendix B: bias and spread of the estimators against the number of samples and against their cost."""

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
ROWS = (("bias", "samples"), ("bias", "cost"), ("std", "samples"), ("std", "cost"))
NUMBERS = ("samples", "bias", "bias_std_error", "std", "cost")


def draw(frame: pd.DataFrame) -> Figure:
    """
    One column a quantity. Above the size of the bias with its standard error, below the standard deviation of one
    estimate, each against the number of samples and against the cost. A bias that is more than ``SURE`` standard
    errors from 0 is drawn; where there is none such, a hollow triangle at that height says that less was measured.

    :param frame: columns estimator, shared, samples, quantity, bias, bias_std_error, std, cost.
    """
    rows = finite(frame, NUMBERS).dropna(subset=list(NUMBERS))
    rows["shared"] = rows["shared"].astype(str).str.lower().isin(["true", "1"])  # words, where a file was read as such
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 5.8), layout="constrained")
        axes = figure.subplots(len(ROWS), len(QUANTITIES))
        for column, (quantity, title) in zip(axes.T, QUANTITIES.items(), strict=True):
            own = rows[rows["quantity"] == quantity]
            column[0].set_title(title)
            for ax, (measure, against) in zip(column, ROWS, strict=True):
                if own.empty:
                    not_measured(ax)
                else:
                    _panel(ax, own, measure, against)
        for line, (measure, against) in zip(axes, ROWS, strict=True):
            line[0].set_ylabel({"bias": "|bias|", "std": "standard deviation"}[measure])
            # once a row: three of the longer one have no room beside each other
            text = {"samples": "samples $S$", "cost": "cost: evaluations of the base kernel for one image"}[against]
            line[len(line) // 2].set_xlabel(text)
        entries = [
            look.proxy(text, marker=look.marker, markersize=3.5)
            for name, (text, look) in ESTIMATORS.items()
            if name in set(rows["estimator"])
        ]
        if rows["shared"].any():
            entries.append(remark("thin: one draw for the whole batch", linestyle="-", linewidth=0.6))
        entries.append(remark(f"no bias found; drawn at {SURE:g} standard errors", **HOLLOW))
        if (rows["std"] == 0).any():
            entries.append(remark("beyond the axis: 0", marker="v", markersize=4))
        legend(figure, entries)
    return figure


def _panel(ax: Axes, rows: pd.DataFrame, measure: str, against: str) -> None:
    """Lines for what was found, arrows down from ``SURE`` standard errors where no bias was."""
    ax.set_xscale("log", base=2 if against == "samples" else 10)
    sure = (rows["bias"].abs() > SURE * rows["bias_std_error"]) | (measure != "bias")
    limit = SURE * rows["bias_std_error"]
    values = rows[measure].abs().where(sure, limit).where(lambda size: size > 0)
    if values.notna().any():
        logarithmic(ax, 0.6 * values.min(), 1.6 * values.max())
    for name, (_, look) in ESTIMATORS.items():
        for shared, width, size in ((False, 1.2, 3.5), (True, 0.6, 2.2)):
            own = rows[(rows["estimator"] == name) & (rows["shared"] == shared)].sort_values(against)
            found, rest = own[sure[own.index]], own[~sure[own.index]]
            ax.errorbar(
                found[against],
                values[found.index],
                yerr=found["bias_std_error"] if measure == "bias" else None,
                elinewidth=0.6,
                **{**look.line, "linewidth": width, "markersize": size},
            )
            hollow = {**HOLLOW, "color": look.colour, "linestyle": "", "markersize": size}
            ax.plot(rest[against], values[rest.index], **hollow)
            none = own[values[own.index].isna()]
            if len(none):
                bottom = [ax.get_ylim()[0]] * len(none)
                ax.plot(none[against], bottom, color=look.colour, linestyle="", marker="v", markersize=4, clip_on=False)
    if against == "samples":
        ticks = sorted(rows["samples"].unique())
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.tick_params(labelsize=SMALL)
