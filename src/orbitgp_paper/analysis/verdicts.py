"""Verdicts on claims as they are read, in Markdown beside the results. The CSV has every digit."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from orbitgp import files
from orbitgp_paper.analysis.claims import VERDICTS
from orbitgp_paper.analysis.formats import beside, markdown, write_csv


class Look(NamedTuple):
    """How a verdict is shown: a mark, its colour, how several are called, and what it means."""

    mark: str
    colour: str
    many: str
    meaning: str


LOOKS = {
    "holds": Look("🟢", "#1a7f37", "hold", "as it says; where there are several seeds, beyond noise"),
    "exceeds": Look("🔵", "#0969da", "exceed", "better than it says"),
    "tie": Look("🟡", "#9a6700", "tie", "the difference is within noise: Welch's t, p > 0.05"),
    "fails": Look("🔴", "#cf222e", "fail", "not as it says"),
    "not measured": Look("⚪", "#6e7781", "not measured", "this size has not run it"),
}

#: a document of this repository that a text names
DOCUMENT = re.compile(r"\b(?:docs|benchmarks|results|config)/[\w./-]+\.(?:md|csv|yaml)(?:#[\w-]+)?")

FIGURES = {"appendix_a": "appendix A", "appendix_b": "appendix B", "fig2_bound": "Fig. 2's bound"}


def count_verdicts(verdicts: pd.DataFrame) -> list[tuple[str, str]]:
    """Each verdict that occurs, and how many there are, in words."""
    counts = verdicts["verdict"].value_counts()
    return [(name, f"{counts[name]} {LOOKS[name].many}") for name in VERDICTS if name in counts]


def write_claims(verdicts: pd.DataFrame, stem: Path, caption: str) -> list[Path]:
    """
    :param verdicts: as :func:`orbitgp_paper.analysis.claims.judge` makes them.
    :param stem: path of the files without their endings, beside the folder of figures; the Markdown links from there.
    :return: the files, ``.csv`` and ``.md``.
    """
    write_csv(verdicts, beside(stem, ".csv"))
    said = ", ".join(many for _, many in count_verdicts(verdicts))
    legend = [f"- {LOOKS[name].mark} **{name}**: {LOOKS[name].meaning}" for name, _ in count_verdicts(verdicts)]
    lines = [f"{markdown(caption)} Of {len(verdicts)} claims: {said}.", "", *legend]
    lines += ["", "Numbers are mean ± standard deviation over seeds; `claims.csv` has where each one stands."]
    for section, group in verdicts.groupby("section", sort=False):
        lines += ["", f"## {markdown(str(section))}", ""]
        lines += [_item(row, stem.parent) for _, row in group.iterrows()]
    files.write_text(beside(stem, ".md"), "\n".join(lines) + "\n")
    return [beside(stem, ".csv"), beside(stem, ".md")]


def _item(row: pd.Series, folder: Path) -> str:
    """A claim as an item of a list."""
    where = markdown(row["where"])
    if figure := row["figure"]:
        where += f"; [{FIGURES.get(figure, figure.replace('fig', 'Fig. '))}](figures/{figure}.png)"
    lines = [f"- {LOOKS[row['verdict']].mark} **{row['verdict']}**: {markdown(row['claim'])} ({where})"]
    for title, text in (("", row["evidence"]), ("Reading: ", row["reading"]), ("Cause: ", row["cause"])):
        if text:
            lines.append(f"  <br>{title}{_linked(markdown(text), folder)}")
    return "\n".join(lines)


def _linked(text: str, folder: Path) -> str:
    """Documents of the repository become links from ``folder``."""

    def link(found: re.Match[str]) -> str:
        return f"[{found[0]}]({Path(os.path.relpath(found[0], folder)).as_posix()})"

    return DOCUMENT.sub(link, text)
