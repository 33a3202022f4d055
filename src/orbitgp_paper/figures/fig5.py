"""Figure 5: rotated MNIST: test error and bound during training."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from orbitgp_paper.figures.curves import Remarks, bound_panel, curves, error_panel
from orbitgp_paper.figures.limits import finite
from orbitgp_paper.figures.looks import labels, looks
from orbitgp_paper.figures.style import TEXT_WIDTH, legend, paper_style


def draw(metrics: pd.DataFrame) -> Figure:
    """:param metrics: columns variant, label, seed, step, elbo, test_error."""
    frame = finite(metrics, ["step", "elbo", "test_error"])
    shown, texts, remarks = looks(frame["variant"]), labels(frame), Remarks()
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 2.1), layout="constrained")
        left, right = figure.subplots(1, 2)
        error_panel(left, curves(frame, "test_error", shown), remarks)
        bound_panel(right, curves(frame, "elbo", shown), remarks)
        legend(figure, [look.proxy(texts[name]) for name, look in shown.items()] + remarks.proxies())
    return figure
