"""Figure 3's data with the angle held fixed: which angle has the highest bound, and which the lowest error."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from orbitgp_paper.figures.looks import looks
from orbitgp_paper.figures.style import FAINT, TEXT_WIDTH, legend, paper_style
from orbitgp_paper.runs.reading import ANGLE

#: what is shown, with the words and the format of its axis
COLUMNS = {"elbo": ("bound (nats)", ",.0f"), "test_error": ("test error (%)", ".2f")}


def draw(finals: pd.DataFrame) -> Figure:
    """
    Bound and error against the angle, a line for each recipe that was tried with three angles or more.

    :param finals: columns label, alpha_true, start and orbit.alpha in degrees, elbo, test_error.
    """
    series = held(finals)
    found = {name: looks(series)[name] for name in series}
    with paper_style():
        figure = Figure(figsize=(TEXT_WIDTH, 2.2), layout="constrained")
        for ax, (column, (words, form)) in zip(figure.subplots(1, len(COLUMNS)), COLUMNS.items(), strict=True):
            for look, frame in zip(found.values(), series.values(), strict=True):
                ax.plot(frame[ANGLE], frame[column], **look.line)
            ax.axvline(finals["alpha_true"].iloc[0], color=FAINT, linewidth=0.8, linestyle=":")
            ax.set(xlabel="angle, held fixed (°)", ylabel=words)
            ax.xaxis.set_major_locator(MultipleLocator(30))
            ax.yaxis.set_major_formatter(lambda value, _, form=form: f"{value:{form}}".replace("-", "−"))
        entries = [look.proxy(name, marker=look.marker) for name, look in found.items()]
        legend(figure, [*entries, Line2D([], [], color=FAINT, linestyle=":", label="true angle")])
    return figure


def held(finals: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Runs with a fixed angle, in its order, by the recipe that their labels name after the angle."""
    fixed = finals[np.isclose(finals["start"], finals[ANGLE], atol=1e-6)].sort_values(ANGLE)
    recipes = fixed["label"].str.partition("°, ")[2]
    return {name: frame for name, frame in fixed.groupby(recipes, sort=False) if len(frame) >= 3}
