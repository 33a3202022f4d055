"""Figure 2: data from a symmetric function, and what an invariant and a plain Gaussian process make of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from orbitgp_paper.figures.style import TEXT_WIDTH, paper_style

TITLES = {"invariant": "invariant GP", "plain": "plain GP"}


def draw(surfaces: Mapping[str, np.ndarray], metrics: pd.DataFrame) -> Figure:
    """
    :param surfaces: train_X [N, 2] and train_Y [N, 1]; truth, invariant and plain, each [side², 1]: values on the grid
        over [−1, 1]² of :func:`orbitgp.datasets.square_grid`, whose second coordinate runs fastest.
    :param metrics: columns model, log_marginal_likelihood, train_rmse, test_rmse.
    """
    panels = ("truth", *TITLES)
    rows = metrics.set_index("model")
    side = round(len(surfaces["truth"]) ** 0.5)
    train_X, train_Y = surfaces["train_X"], surfaces["train_Y"]
    limit = max(np.nanmax(np.abs(surfaces[name])) for name in panels)

    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 2.3), layout="constrained")
        axes = figure.subplots(1, 3, sharey=True)
        for ax, name in zip(axes, panels, strict=True):
            # the first coordinate runs along the grid's rows, so that it is the vertical one unless turned
            shown = ax.imshow(
                surfaces[name].reshape(side, side).T,
                extent=(-1, 1, -1, 1),
                origin="lower",
                vmin=-limit,
                vmax=limit,
                cmap="RdBu_r",
                interpolation="bilinear",
            )
            ax.plot([-1, 1], [-1, 1], color="0.3", linewidth=0.6, linestyle=":")
            ax.set_xlabel("$x_1$")
            ax.set_xticks([-1, 0, 1])
            if name == "truth":
                ax.set_title(f"a symmetric function,\nseen at {len(train_X)} points\nwith noise")
            else:
                row = rows.loc[name]
                ax.set_title(
                    f"{TITLES[name]}\nlog p(y) = ${row.log_marginal_likelihood:.1f}$\n"
                    f"RMSE {row.train_rmse:.3f}, test {row.test_rmse:.3f}"
                )
        axes[0].scatter(
            *train_X.T,
            c=train_Y[:, 0],
            s=9,
            vmin=-limit,
            vmax=limit,
            cmap="RdBu_r",
            edgecolors="black",
            linewidths=0.4,
        )
        for ax in axes[1:]:
            ax.scatter(*train_X.T, s=1.5, color="black", linewidths=0)
        axes[0].set_ylabel("$x_2$")
        axes[0].set_yticks([-1, 0, 1])
        figure.colorbar(shown, ax=axes, shrink=0.8, pad=0.02)
    return figure
