"""Figure 1: draws from the learned invariance around example digits, which stand in squares."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from orbitgp_paper.figures.looks import VERMILION
from orbitgp_paper.figures.style import TEXT_WIDTH, paper_style

COLUMNS = 2  # blocks beside each other
GAP = 0.08  # between images, in images
BLOCK_GAP = 0.5


def draw(samples: Mapping[str, np.ndarray]) -> Figure:
    """
    One block for each original: itself in a square, as high as the rows of draws beside it.

    :param samples: originals [digits, H, W, C] and draws [digits, draws, H, W, C], both uint8, C 1 or 3.
    """
    originals, draws = samples["originals"], samples["draws"]
    count = draws.shape[1]
    rows = 3 if count >= 9 else 2 if count >= 4 else 1
    columns = -(-count // rows)
    aspect = originals.shape[1] / originals.shape[2]  # of an image: its height in widths
    block_width = rows + columns + 2 * GAP
    width = COLUMNS * block_width + (COLUMNS - 1) * BLOCK_GAP
    down = -(-len(originals) // COLUMNS)
    height = down * rows * aspect + (down - 1) * BLOCK_GAP
    margin = 0.06
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, TEXT_WIDTH * (height + 2 * margin) / (width + 2 * margin)))
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        ax.set(xlim=(-margin, width + margin), ylim=(height + margin, -margin))
        for place, (original, drawn) in enumerate(zip(originals, draws, strict=True)):
            left = (place % COLUMNS) * (block_width + BLOCK_GAP)
            top = (place // COLUMNS) * (rows * aspect + BLOCK_GAP)
            _picture(ax, original, left, top, rows, aspect, framed=True)
            for number, image in enumerate(drawn):
                row, column = divmod(number, columns)
                _picture(ax, image, left + rows + 2 * GAP + column, top + row * aspect, 1, aspect)
    return figure


def _picture(
    ax: Axes, image: np.ndarray, left: float, top: float, size: float, aspect: float, framed: bool = False
) -> None:
    """Draws an image; with one channel, ink is dark, as on paper."""
    gap = GAP / 2
    right, bottom = left + size - gap, top + size * aspect - gap
    left, top = left + gap, top + gap
    ax.imshow(
        image[..., 0] if image.shape[-1] == 1 else image,
        extent=(left, right, bottom, top),
        cmap="gray_r",
        vmin=0,
        vmax=255,
        interpolation="nearest",
        aspect="auto",
    )
    ax.add_patch(
        Rectangle(
            (left, top),
            right - left,
            bottom - top,
            fill=False,
            edgecolor=VERMILION if framed else "0.8",
            linewidth=1.6 if framed else 0.4,
        )
    )
