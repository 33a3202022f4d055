"""Colour, line style and marker of each model, the same in every figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D

# Okabe and Ito's colours, told apart by colour-blind readers; all but the yellow, which white paper swallows.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY = "#606060"


@dataclass(frozen=True)
class Look:
    """How a model is drawn; line styles tell models apart where colours do not print."""

    colour: str
    style: Any = "-"
    marker: str = "o"

    @property
    def line(self) -> dict[str, Any]:
        """Options of a line with markers."""
        return {"color": self.colour, "linestyle": self.style, "linewidth": 1.4, "marker": self.marker}

    def proxy(self, label: str, **options: Any) -> Line2D:
        """An entry for a legend."""
        return Line2D([], [], **{**self.line, "marker": "", "label": label, **options})


#: the paper's models, in the order in which legends name them; "plain" is the paper's own recipe of training
KNOWN = {
    "rbf": Look(BLACK, "-", "o"),
    "rotation": Look(BLUE, (0, (5, 1.5)), "s"),
    "affine": Look(VERMILION, (0, (6, 1.2, 1.2, 1.2)), "^"),
    "local": Look(GREEN, (0, (1.2, 1.0)), "D"),
    "fixed": Look(PURPLE, (0, (8, 1.0, 1.0, 1.0, 1.0, 1.0)), "v"),
    "rotation_plain": Look(SKY, (0, (2.5, 1.2)), "P"),
    "fixed_plain": Look(GREY, (0, (1, 1)), "h"),
    "affine_plain": Look(ORANGE, (0, (3.5, 1, 1, 1)), "X"),
}

SPARE = [
    Look(SKY, (0, (3, 1, 1, 1)), "P"),
    Look(ORANGE, (0, (4, 1)), "X"),
    Look(PURPLE, (0, (1, 1)), "v"),
    Look(GREEN, (0, (6, 1)), "D"),
    Look(BLUE, (0, (2, 1)), "s"),
    Look(VERMILION, (0, (4, 1, 1, 1)), "^"),
]


def looks(variants: Iterable[str]) -> dict[str, Look]:
    """
    :param variants: names in any order; they may repeat.
    :return: the look of each: known ones first, then the others in the order of their names, as far as possible with
        colours that no known one among them has.
    """
    names = set(variants)
    found = {name: look for name, look in KNOWN.items() if name in names}
    taken = {look.colour for look in found.values()}
    spare = [look for look in SPARE if look.colour not in taken] or SPARE
    for place, name in enumerate(sorted(names - set(found))):
        look = spare[place % len(spare)]
        turn = place // len(spare)  # more models than colours: they differ in style
        found[name] = replace(look, style=(0, (1 + turn, 1 + turn))) if turn else look
    return found


def labels(frame: pd.DataFrame) -> dict[str, str]:
    """
    :param frame: columns variant and label.
    :return: the label of each variant: the first that is not empty, or else the variant's name.
    """
    named = frame.dropna(subset=["label"]).drop_duplicates("variant").set_index("variant")["label"]
    return {name: str(named.get(name, name)) for name in frame["variant"].unique()}
