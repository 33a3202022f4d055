"""Figure 3: odd against even digits that were rotated: the learned angle, the test error and the bound in training."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orbitgp_paper.figures.curves import Curve, Remarks, bound_panel, curves, draw_curves, error_panel, step_axis
from orbitgp_paper.figures.limits import finite
from orbitgp_paper.figures.looks import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Look, labels
from orbitgp_paper.figures.style import FAINT, TEXT_WIDTH, legend, paper_style, remark
from orbitgp_paper.runs.reading import ANGLE

TRUTHS = (90.0, 180.0)  # degrees, the paper's
#: line style for each true angle, in their order
STYLES: tuple[Any, ...] = ("-", (0, (1.5, 1.0)), (0, (5, 1, 1, 1)), (0, (6, 2)))
#: for models with an angle, in the order of those that they start from
STARTS = [Look(BLUE, marker="s"), Look(ORANGE, marker="^"), Look(GREEN, marker="D"), Look(PURPLE, marker="v")]
STARTS += [Look(SKY, marker="P"), Look(VERMILION, marker="X")]


def draw(metrics: pd.DataFrame) -> Figure:
    """
    The paper's four panels: at the left the angle, for each true one; at the right the error above the bound. Colours
    and markers tell the models apart, line styles the true angles.

    :param metrics: columns variant, label (the same for a model on either data), seed, alpha_true in degrees, step,
        elbo, test_error, and orbit.alpha in degrees, NaN for models without it.
    """
    if ANGLE not in metrics:  # no model has one
        metrics = metrics.assign(**{ANGLE: np.nan})
    frame = finite(metrics, ["alpha_true", "step", "elbo", "test_error", ANGLE])
    lost = frame.loc[frame["alpha_true"].isna(), "variant"]
    if len(lost):
        raise ValueError(f"alpha_true must say how far digits were rotated; variant {lost.iloc[0]!r} has none")
    truth_of = frame.groupby("variant")["alpha_true"].first().to_dict()
    truths = sorted(TRUTHS if set(truth_of.values()) <= set(TRUTHS) else set(truth_of.values()))
    texts = labels(frame)
    starts = frame.sort_values("step", kind="stable").groupby("variant")[ANGLE].first().to_dict()
    order = sorted(texts, key=lambda name: (truth_of[name], np.nan_to_num(starts[name], nan=-1.0), name))
    looks = _looks({texts[name]: starts[name] for name in order})
    styles = {truth: STYLES[place % len(STYLES)] for place, truth in enumerate(truths)}
    variants = {name: replace(looks[texts[name]], style=styles[truth_of[name]]) for name in order}

    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 3.5), layout="constrained")
        grid = figure.add_gridspec(2 * len(truths), 2)  # so that both columns divide into equal panels
        angle_axes = [figure.add_subplot(grid[2 * place : 2 * place + 2, 0]) for place in range(len(truths))]
        top, bottom = (figure.add_subplot(grid[rows, 1]) for rows in (slice(len(truths)), slice(len(truths), None)))
        remarks = Remarks()
        for ax, truth in zip(angle_axes, truths, strict=True):
            own = {name: look for name, look in variants.items() if truth_of[name] == truth}
            _angle_panel(ax, truth, curves(frame, ANGLE, own), remarks)
        error_panel(top, curves(frame, "test_error", variants), remarks, markers=True)
        bound_panel(bottom, curves(frame, "elbo", variants), remarks, markers=True)
        for upper, lower in (*pairwise(angle_axes), (top, bottom)):
            if lower.lines:  # whose numbers serve both
                upper.set_xlabel("")
                upper.tick_params(labelbottom=False)
        entries = [look.proxy(name, marker=look.marker, markersize=3.5) for name, look in looks.items()]
        entries += [remark(rf"$\alpha_\mathrm{{true}}$ = {truth:g}°", linestyle=styles[truth]) for truth in truths]
        entries.append(remark("true angle", linestyle="--", linewidth=0.9))
        legend(figure, entries + remarks.proxies())
    return figure


def _looks(starts: dict[str, float]) -> dict[str, Look]:
    """
    :param starts: the angle that each model starts from; NaN where it has none, as the RBF.
    :return: black for models without an angle.
    """
    looks: dict[str, Look] = {}
    for name, start in sorted(starts.items(), key=lambda item: np.nan_to_num(item[1], nan=-1.0)):
        turned = sum(look.colour != BLACK for look in looks.values())
        looks[name] = Look(BLACK, marker="o") if np.isnan(start) else STARTS[turned % len(STARTS)]
    return looks


def _angle_panel(ax: Axes, truth: float, drawn: list[Curve], remarks: Remarks) -> None:
    """The angle over time, with the true one as a dashed line."""
    ax.set_ylabel(r"learned $\alpha$ (°)")
    ax.set_title(rf"digits rotated by up to $\alpha_\mathrm{{true}}$ = {truth:g}°")
    if step_axis(ax, drawn):
        ax.set_ylim(0, 188)
        ax.set_yticks([0, 45, 90, 135, 180])
        ax.axhline(truth, color=FAINT, linestyle="--", linewidth=0.9, zorder=1)
        draw_curves(ax, drawn, remarks, markers=True)
