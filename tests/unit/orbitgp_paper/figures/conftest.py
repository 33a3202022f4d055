"""The shipped results that figures are drawn from, and what every figure must be like."""

import itertools
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from orbitgp.files import read_npz
from orbitgp_paper.analysis.formats import read_table
from orbitgp_paper.figures.style import TEXT_WIDTH, paper_style, settle
from orbitgp_paper.runs.reading import Runs, read_runs

PAPER = Path(__file__).parents[4] / "results" / "paper"
LABELS = {"rbf": "RBF", "rotation": "rotation", "affine": "all affine", "local": "local deformations"}


def runs_of(experiment: str) -> Runs:
    return read_runs(sorted(file.parent for file in PAPER.glob(f"runs/{experiment}/*/seed*/final.json")))


def insensitivity() -> pd.DataFrame:
    found = {file.stem: file for file in PAPER.glob("runs/insensitivity/**/*.csv")}
    frames = [read_table(found[name]).assign(variant=name, label_text=text) for name, text in LABELS.items()]
    return pd.concat(frames, ignore_index=True)


READ: dict[str, Callable[[], tuple[Any, ...]]] = {
    "fig1": lambda: (read_npz(PAPER / "runs" / "samples" / "samples.npz"),),
    "fig2": lambda: (
        read_npz(PAPER / "runs" / "toy" / "surfaces.npz"),
        read_table(PAPER / "runs" / "toy" / "metrics.csv"),
    ),
    "fig2_bound": lambda: (read_table(PAPER / "runs" / "toy" / "bounds.csv"),),
    "fig3": lambda: (runs_of("parity").metrics,),
    "fig4": lambda: (runs_of("mnist").metrics, read_table(PAPER / "tables" / "mnist.csv")),
    "fig5": lambda: (runs_of("rotated").metrics,),
    "training": lambda: (pd.concat([runs_of(name).metrics for name in ("rotated", "mnist")], ignore_index=True),),
    "appendix_a": lambda: (insensitivity(),),
    "recipes": lambda: (runs_of("parity").finals, runs_of("parity").metrics),
    "appendix_b": lambda: (read_table(PAPER / "tables" / "estimators.csv"),),
}


@pytest.fixture(scope="session")
def results() -> dict[str, tuple[Any, ...]]:
    """What each figure is drawn from; not to be changed, as all tests share it."""
    return {name: read() for name, read in READ.items()}


@pytest.fixture(params=READ)
def each(request, results) -> Callable[[], Figure]:
    """Draws one of the figures; a test that takes it runs for each."""
    return lambda: import_module(f"orbitgp_paper.figures.{request.param}").draw(*results[request.param])


@pytest.fixture(scope="session")
def texts_of() -> Callable[[Figure], list[str]]:
    """What one reads in a figure."""
    return lambda figure: [text for text, _ in drawn_texts(figure)]


def idle_labels(axis):
    """Labels of ticks that an axis keeps but does not draw, since they lie beyond its ends or it is off."""
    drawn = axis._update_ticks() if axis.axes.axison else []
    idle = [tick for tick in (*axis.majorTicks, *axis.minorTicks) if tick not in drawn]
    return [label for tick in idle for label in (tick.label1, tick.label2)]


def drawn_texts(figure: Figure) -> list[tuple[str, object]]:
    """Every text that can be seen, with its box in pixels."""
    with paper_style():
        settle(figure)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    renderer = canvas.get_renderer()
    found = []
    idle = {label for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for label in idle_labels(axis)}
    for text in figure.findobj(Text):
        if text not in idle and text.get_visible() and text.get_text().strip():
            box = text.get_window_extent(renderer)
            if box.width and box.height:
                found.append((text.get_text(), box))
    return found


@pytest.fixture
def assert_tidy() -> Callable[[Figure], None]:
    """Text width, all text inside the figure, and no text upon another."""

    def check(figure: Figure) -> None:
        assert figure.get_figwidth() == TEXT_WIDTH
        texts = drawn_texts(figure)
        width, height = figure.get_size_inches() * figure.dpi
        for text, box in texts:
            assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, text
        for (one, first), (other, second) in itertools.combinations(texts, 2):
            across = min(first.x1, second.x1) - max(first.x0, second.x0)
            along = min(first.y1, second.y1) - max(first.y0, second.y0)
            assert across <= 1.5 or along <= 1.5, f"{one!r} overlaps {other!r}"

    return check
