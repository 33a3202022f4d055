"""One look for all figures, and files that are the same byte by byte when drawn again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

FORMATS = ("pdf", "svg", "png")
TEXT_WIDTH = 5.5  # inches, the paper's

RC: dict[Any, Any] = {
    "font.size": 8,
    "font.family": "DejaVu Sans",  # comes with Matplotlib, so that every machine draws the same
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
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
        for ending in FORMATS:
            path = stem.with_suffix(f".{ending}")
            figure.savefig(path, metadata=dateless[ending], bbox_inches="tight")
            files.append(path)
    return files
