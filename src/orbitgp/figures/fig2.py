"""Figure 2: data from a symmetric function, and what an invariant and a plain Gaussian process make of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from orbitgp.datasets import PointData
from orbitgp.figures.style import TEXT_WIDTH, paper_style

TITLES = {"invariant": "invariant GP", "plain": "plain GP"}


def draw(data: PointData, means: Mapping[str, np.ndarray], metrics: pd.DataFrame) -> Figure:
    """
    :param data: training points, and the true function on a square grid as test points.
    :param means: for each model, its posterior mean on that grid, [side², 1].
    :param metrics: columns model, log_marginal_likelihood, train_rmse, test_rmse.
    """
    side = round(len(data.test.X) ** 0.5)
    surfaces = {"truth": data.test.Y, **means}
    limit = max(np.abs(surface).max() for surface in surfaces.values())
    rows = metrics.set_index("model")
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 2.3), layout="constrained")
        axes = figure.subplots(1, 3, sharey=True)
        for ax, (name, surface) in zip(axes, surfaces.items(), strict=True):
            # the first coordinate runs along the grid's rows, so that it is the vertical one unless turned
            shown = ax.imshow(
                surface.reshape(side, side).T,
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
                ax.set_title(f"a symmetric function,\nseen at {len(data.train.X)} points\nwith noise")
            else:
                row = rows.loc[name]
                ax.set_title(
                    f"{TITLES[name]}\nlog p(y) = ${row.log_marginal_likelihood:.1f}$\n"
                    f"RMSE {row.train_rmse:.3f}, test {row.test_rmse:.3f}"
                )
        axes[0].scatter(
            *data.train.X.T,
            c=data.train.Y[:, 0],
            s=9,
            vmin=-limit,
            vmax=limit,
            cmap="RdBu_r",
            edgecolors="black",
            linewidths=0.4,
        )
        for ax in axes[1:]:
            ax.scatter(*data.train.X.T, s=1.5, color="black", linewidths=0)
        axes[0].set_ylabel("$x_2$")
        axes[0].set_yticks([-1, 0, 1])
        figure.colorbar(shown, ax=axes, shrink=0.8, pad=0.02)
    return figure
