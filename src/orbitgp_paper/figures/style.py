"""One style for all figures, and files that are byte-identical when drawn again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from orbitgp.files import write_whole

FORMATS = ("pdf", "svg", "png")
TEXT_WIDTH = 5.5  # inches, the paper's
SMALL = 6.5  # points, the least that is read at text width
FAINT = "0.45"  # the grey of remarks
#: the marker of an upper limit
HOLLOW: dict[str, Any] = {"marker": "v", "markersize": 3.5, "markerfacecolor": "white", "markeredgewidth": 0.7}

RC: dict[Any, Any] = {
    "font.size": 8,
    "font.family": "DejaVu Sans",  # comes with Matplotlib, so that every machine draws the same
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.columnspacing": 1.6,
    "legend.borderpad": 0.0,
    "legend.borderaxespad": 0.0,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "image.cmap": "viridis",
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "orbitgp",
}


@contextmanager
def paper_style() -> Iterator[None]:
    """Within it, Matplotlib draws in the style of the figures."""
    with mpl.rc_context(RC):
        yield


def save(figure: Figure, stem: Path) -> list[Path]:
    """
    :param stem: path of the files without their endings.
    :return: the files, one for each of ``FORMATS``; without dates, so that the same figure is the same file.
    """
    dateless = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}
    files = []
    with paper_style():
        settle(figure)
        for ending in FORMATS:
            path = stem.with_suffix(f".{ending}")
            write_whole(path, partial(figure.savefig, format=ending, metadata=dateless[ending]))
            files.append(path)
    return files


def settle(figure: Figure) -> None:
    """
    Lays a figure out once and for all formats. The solver behind the constrained layout orders its variables by their
    addresses, so that its results differ in the last bits from process to process, and with them the files: the
    panels' places are rounded.
    """
    if figure.get_layout_engine() is None:
        return
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for ax in figure.axes:
        ax.set_position(Bbox.from_bounds(*(round(part, 5) for part in ax.get_position(original=True).bounds)))


def legend(figure: Figure, entries: Sequence[Line2D]) -> None:
    """
    A legend below the panels of a figure with constrained layout. The figure grows by its height, so that panels keep
    theirs; each line of it takes as many entries as fit, since columns as wide as the longest entry would waste room.

    :param figure: of the text's width, within :func:`paper_style`.
    """
    lines = _filled(figure, entries)
    if not lines:
        return
    size = RC["legend.fontsize"] / 72  # inches
    band = size * (1.7 * len(lines) + 0.8)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + band)
    share = band / (height + band)
    figure.set_layout_engine("constrained", rect=(0, share, 1, 1 - share))
    for place, line in enumerate(lines):
        middle = (1.7 * (len(lines) - place - 0.5) + 0.2) * size / (height + band)
        # its own artist for each line: figure.legend keeps them all
        figure.legend(handles=line, loc="center", bbox_to_anchor=(0.5, middle), ncols=len(line))


def _filled(figure: Figure, entries: Sequence[Line2D]) -> list[list[Line2D]]:
    """Entries in lines, as many in each as the figure's width takes."""
    size = RC["legend.fontsize"] / 72
    around = (RC["legend.handlelength"] + mpl.rcParams["legend.handletextpad"] + RC["legend.columnspacing"]) * size
    lines: list[list[Line2D]] = []
    room = 0.0
    for entry in entries:
        needed = text_width(str(entry.get_label()), RC["legend.fontsize"]) + around
        if not lines or needed > room:
            lines.append([])
            room = float(figure.get_figwidth())
        lines[-1].append(entry)
        room -= needed
    return lines


def text_width(text: str, size: float) -> float:
    """
    :param size: of the font, in points.
    :return: inches.
    """
    with paper_style():
        drawn = Text(0, 0, text, fontsize=size)
        drawn.set_figure(Figure(dpi=100))
        return float(drawn.get_window_extent(RendererAgg(10, 10, 100)).width) / 100


def remark(text: str, **options: Any) -> Line2D:
    """An entry for a legend that explains a mark or a line, whatever its colour."""
    return Line2D([], [], **{"color": FAINT, "linestyle": "", "label": text, **options})


def not_measured(ax: Axes) -> None:
    """Says in an empty panel that it is empty because nothing was measured, and not because nothing is to be seen."""
    ax.text(0.5, 0.5, "not measured", ha="center", va="center", color=FAINT, style="italic", transform=ax.transAxes)
    ax.set(xticks=[], yticks=[])
