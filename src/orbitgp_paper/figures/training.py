"""During training: test error and bound of each model, a row for each experiment that has no figure of its own."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from orbitgp_paper.figures.curves import Remarks, bound_panel, curves, error_panel
from orbitgp_paper.figures.limits import finite
from orbitgp_paper.figures.looks import labels, looks
from orbitgp_paper.figures.style import TEXT_WIDTH, legend, paper_style


def draw(metrics: pd.DataFrame) -> Figure:
    """:param metrics: columns experiment, variant, label, seed, step, elbo, test_error."""
    frame = finite(metrics, ["step", "elbo", "test_error"])
    shown, texts, remarks = looks(frame["variant"]), labels(frame), Remarks()
    experiments = dict(list(metrics.groupby("experiment", sort=False)))
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 0.4 + 1.7 * max(len(experiments), 1)), layout="constrained")
        axes = figure.subplots(max(len(experiments), 1), 2, squeeze=False)
        for (left, right), name in zip(axes, experiments or [""], strict=True):
            rows = frame[frame["experiment"] == name]
            error_panel(left, curves(rows, "test_error", shown), remarks)
            bound_panel(right, curves(rows, "elbo", shown), remarks)
            left.set_title(name, loc="left")
        legend(figure, [look.proxy(texts[name]) for name, look in shown.items()] + remarks.proxies())
    return figure
