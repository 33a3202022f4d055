"""Few data: test error and negative log likelihood of the class over the number of training images."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from orbitgp_paper.figures.limits import finite, plain, short
from orbitgp_paper.figures.looks import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Look
from orbitgp_paper.figures.style import TEXT_WIDTH, legend, not_measured, paper_style

ROWS = {"test_error": "test error (%)", "test_class_nll": "test NLL (nats)"}
#: leading digits of ticks, for long axes and for short ones
DIGITS = (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)
LOOKS = [
    Look(BLACK, "-", "o"),
    Look(VERMILION, (0, (6, 1.2, 1.2, 1.2)), "^"),
    Look(PURPLE, (0, (8, 1.0, 1.0, 1.0, 1.0, 1.0)), "v"),
    Look(BLUE, (0, (5, 1.5)), "s"),
    Look(GREEN, (0, (1.2, 1.0)), "D"),
    Look(ORANGE, (0, (3.5, 1, 1, 1)), "X"),
    Look(SKY, (0, (2.5, 1.2)), "P"),
]


def draw(finals: pd.DataFrame) -> Figure:
    """
    A column for each experiment, a line for each label, a point for each number of images: means over seeds, and bars
    of one standard deviation.

    :param finals: columns experiment, label, seed, originals, test_error and test_class_nll.
    """
    frame = finite(finals, ["originals", *ROWS])
    experiments, labels = frame["experiment"].unique(), frame["label"].unique()
    looks = {label: LOOKS[place % len(LOOKS)] for place, label in enumerate(labels)}
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 3.8), layout="constrained")
        panels = figure.subplots(len(ROWS), len(experiments), squeeze=False)
        for column, experiment in enumerate(experiments):
            own = frame[frame["experiment"] == experiment]
            panels[0, column].set_title(experiment.removeprefix("few_").replace("_", " "))
            panels[-1, column].set_xlabel("training images")
            for ax, measure in zip(panels[:, column], ROWS, strict=True):
                _panel(ax, own, measure, looks)
        for ax, text in zip(panels[:, 0], ROWS.values(), strict=True):
            ax.set_ylabel(text)
        legend(figure, [look.proxy(label, marker=look.marker, markersize=4) for label, look in looks.items()])
    return figure


def _panel(ax: Axes, rows: pd.DataFrame, measure: str, looks: dict[str, Look]) -> None:
    """Both axes are logarithmic."""
    if rows[measure].isna().all():
        not_measured(ax)
        return
    for label, own in rows.groupby("label", sort=False):
        over_seeds = own.groupby("originals")[measure]
        whole = over_seeds.count() == over_seeds.size()  # as in the tables, no mean where a seed has no number
        mean, spread = over_seeds.mean().where(whole), over_seeds.std(ddof=1).fillna(0.0)
        ax.errorbar(mean.index, mean, spread, **looks[str(label)].line, markersize=3.5, elinewidth=0.8, capsize=1.5)
    ax.set(xscale="log", yscale="log")
    sizes = sorted(rows["originals"].unique())
    ax.set_xticks(sizes, [short(size) for size in sizes], rotation=60)
    ax.set_yticks(_ticks(*ax.get_ylim()))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    ax.minorticks_off()


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from ``low`` to ``high``, at least three where the finer digits have them."""
    for digits in DIGITS:
        every = [digit * 10.0**power for power in range(-4, 5) for digit in digits]
        if len(ticks := [tick for tick in every if low <= tick <= high]) >= 3:
            break
    return ticks
