"""Figure 4: MNIST: test error and bound during training, and the final errors beside the paper's."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from orbitgp_paper.figures.curves import Remarks, bound_panel, curves, error_panel
from orbitgp_paper.figures.limits import finite
from orbitgp_paper.figures.looks import Look, labels, looks
from orbitgp_paper.figures.style import FAINT, SMALL, TEXT_WIDTH, paper_style, text_width

NUMBERS = ("paper_error", "paper_std", "error_mean", "error_std", "n_seeds")
KEY = 0.22  # inches, the length of a method's line
GAP = 0.09  # inches, between the table's columns
SIZE = 7.0  # points
PAPER_IMAGES = 60_000  # all of MNIST
LINE = 0.19  # inches, from one line of the table to the next
PANELS = 2.75  # inches, the least that is left to the panels


def draw(metrics: pd.DataFrame, table: pd.DataFrame) -> Figure:
    """
    The table is the legend too: before each method's name stands its line.

    :param metrics: columns variant, label, seed, step, elbo, test_error.
    :param table: columns variant, paper_error, paper_std, error_mean, error_std, n_seeds; NaN where there is none.
        It may have label, n_diverged and train_size.
    """
    frame = finite(metrics, ["step", "elbo", "test_error"])
    rows = finite(table, NUMBERS).drop_duplicates("variant").set_index("variant")
    shown, texts, remarks = looks([*frame["variant"], *rows.index]), labels(frame), Remarks()
    if "label" in rows:
        texts = {str(name): str(text) for name, text in rows["label"].dropna().items()} | texts
    cells = [("error in %", "ours", "paper")]
    for name in shown:
        diverged = "n_diverged" in rows and rows["n_diverged"].get(name, 0) > 0
        ours = _spread(rows, name, "error_mean", "error_std", "diverged" if diverged else "not measured")
        cells.append((texts.get(name, name), ours, _spread(rows, name, "paper_error", "paper_std", "–")))
    name_width, *widths = (max(text_width(cell, SIZE) for cell in column) for column in zip(*cells, strict=True))
    # the longest names are written smaller or cut, so that the panels keep their room
    room = TEXT_WIDTH - PANELS - KEY - sum(widths) - 4 * GAP
    ends = np.cumsum([KEY + GAP + min(name_width, room), *(width + GAP for width in widths)])

    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, max(2.1, LINE * (len(cells) + 3.5))))
        share = 1 - (ends[-1] + GAP) / TEXT_WIDTH
        figure.set_layout_engine("constrained", rect=(0, 0, share, 1))
        left, middle = figure.subplots(1, 2)
        error_panel(left, curves(frame, "test_error", shown), remarks)
        bound_panel(middle, curves(frame, "elbo", shown), remarks)
        for ax in (left, middle):
            if ax.lines:
                ax.xaxis.set_major_locator(MaxNLocator(2, integer=True, steps=[1, 2, 5, 10]))
        ax = figure.add_axes((share, 0, 1 - share, 1))
        ax.set_axis_off()
        ax.set(xlim=(-GAP / 2, ends[-1] + GAP / 2), ylim=(0, figure.get_figheight()))
        counts = rows["n_seeds"].reindex(list(shown)).fillna(0).astype(int).tolist()
        _table(ax, cells, ends, list(shown.values()), [_seeds(counts), *_size(rows)], remarks)
    return figure


def _table(
    ax: Axes, cells: list[tuple[str, str, str]], ends: np.ndarray, lines: list[Look], notes: list[str], remarks: Remarks
) -> None:
    """
    Rules as booktabs draws them; below them what the numbers stand for, and what marks mean.

    :param ax: in inches.
    :param cells: the heading and a row for each of ``lines``.
    :param ends: where each column ends.
    """

    def rule(y: float, width: float) -> None:
        ax.plot([0, ends[-1]], [y, y], color="black", linewidth=width, clip_on=False)

    y = ax.get_ylim()[1] - 0.08
    rule(y, 0.9)
    y -= LINE / 2
    for place, (name, *numbers) in enumerate(cells):
        start = KEY + GAP if place else 0.0
        weight = "normal" if place else "bold"
        text, size = _fitting(name, ends[0] - start)
        ax.text(start, y, text, fontsize=size, va="center", weight=weight)
        for end, number in zip(ends[1:], numbers, strict=True):
            ax.text(end, y, number, fontsize=SIZE, va="center", ha="right", weight=weight)
        if place:
            look = lines[place - 1]
            ax.plot([0, KEY], [y, y], color=look.colour, linestyle=look.style, linewidth=1.4)
        else:
            rule(y - LINE / 2, 0.5)
        y -= LINE
    rule(y + LINE / 2, 0.9)
    for text in notes:
        ax.text(0, y, text, fontsize=SMALL, color=FAINT, va="center")
        y -= LINE
    y += LINE
    for note in remarks.proxies():
        y -= LINE
        ax.plot(0.05, y, color=FAINT, marker=note.get_marker(), markersize=4)
        ax.text(0.15, y, str(note.get_label()), fontsize=SMALL, color=FAINT, va="center")


def _fitting(name: str, room: float) -> tuple[str, float]:
    """A name and the size of its letters: smaller where it is too long, and cut where it still is."""
    for size in (SIZE, SMALL, 6.0, 5.5):
        if text_width(name, size) <= room:
            return name, size
    while len(name) > 1 and text_width(f"{name}…", size) > room:
        name = name[:-1].rstrip()
    return f"{name}…", size


def _spread(rows: pd.DataFrame, name: str, mean: str, std: str, otherwise: str) -> str:
    """Mean ± standard deviation from the columns so named, as far as there are any."""
    value, spread = (float(rows[column].get(name, float("nan"))) for column in (mean, std))
    if np.isnan(value):
        return otherwise
    return f"{value:.2f}" if np.isnan(spread) else f"{value:.2f} ± {spread:.2f}"


def _size(rows: pd.DataFrame) -> list[str]:
    """A line where our runs saw fewer images than the paper's, whose errors these are not to be held against."""
    sizes = [int(size) for size in rows.get("train_size", pd.Series(dtype=float)).dropna().unique()]
    smallest = min(sizes, default=PAPER_IMAGES)
    return [f"on {smallest:,} training images; paper: {PAPER_IMAGES:,}"] if smallest < PAPER_IMAGES else []


def _seeds(counts: list[int]) -> str:
    """Over how many seeds means are taken; a count of 0 is of what was not measured."""
    measured = [count for count in counts if count]
    if not measured:
        return "ours: no runs"
    few, many = min(measured), max(measured)
    if many == 1:
        return "ours: one seed"
    return f"ours: mean ± std over {few if few == many else f'{few} to {many}'} seeds"
