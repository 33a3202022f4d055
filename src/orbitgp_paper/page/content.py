"""Everything that a page says of a size, gathered from its tables, verdicts, figures and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from orbitgp_paper.analysis.claims import VERDICTS
from orbitgp_paper.analysis.formats import read_table, shown
from orbitgp_paper.analysis.tables import caption
from orbitgp_paper.analysis.verdicts import LOOKS, Look
from orbitgp_paper.config import Config
from orbitgp_paper.figures.captions import Caption, caption_of
from orbitgp_paper.page.orbits import Orbit, learned_orbits

#: columns of a headline, where a table has them, and what stands there too if rows differ in it
HEADLINE = ("model", "error, %", "paper's error, %", "bound, nats")
DIFFERS = "training images"
WORST_FIRST = ("fails", "tie", "exceeds", "holds", "not measured")


class Table(NamedTuple):
    """A table as it is read: texts, and which columns are numbers."""

    name: str
    caption: str
    head: list[str]
    rows: list[list[str]]
    numeric: list[bool]

    def only(self, *names: str) -> Table:
        """A copy with only these columns, as far as they exist, in this order."""
        places = [self.head.index(name) for name in names if name in self.head]
        rows = [[row[place] for place in places] for row in self.rows]
        return self._replace(head=[self.head[i] for i in places], rows=rows, numeric=[self.numeric[i] for i in places])


class Verdict(NamedTuple):
    """Claims of one verdict."""

    name: str
    look: Look
    claims: list[dict[str, str]]


class Figure(NamedTuple):
    """A figure with its words, the tables of its numbers and the verdicts on what the paper says of it."""

    name: str
    caption: Caption
    file: Path
    tables: list[Table]
    verdicts: list[Verdict]


class Times(NamedTuple):
    """Times of an experiment's trainings."""

    experiment: str
    trainings: int
    devices: str
    typical: str  #: the median of one training
    total: str  #: of all trainings, one after the other


@dataclass(frozen=True)
class Content:
    """What a page is made of. A size that lacks an experiment lacks its parts, and nothing else."""

    config: Config
    settings: Path
    headline: Table | None
    figures: list[Figure]
    tables: list[Table]  #: that belong to no figure
    verdicts: list[Verdict]  #: those that occur, the worst first
    orbits: list[Orbit]
    times: list[Times]
    elapsed: str  #: wall-clock time and device; empty if not recorded
    commits: list[str]

    @property
    def title(self) -> str:
        """The settings' title, or the size."""
        return self.config.title or f"Results of size “{self.config.tier}”"

    @property
    def counts(self) -> str:
        """The verdicts in words: “39 hold, 6 exceed, 2 tie, 2 fail”."""
        ordered = sorted(self.verdicts, key=lambda verdict: VERDICTS.index(verdict.name))
        return ", ".join(f"{len(verdict.claims)} {verdict.look.many}" for verdict in ordered)

    @property
    def claims(self) -> int:
        """How many claims were judged."""
        return sum(len(verdict.claims) for verdict in self.verdicts)


def gather(config: Config, sources: Sequence[Path], times: Path | None = None) -> Content:
    """
    :param config: the size's.
    :param sources: tables (``runs.csv`` and others), ``claims.csv`` where there is one, and figures (``.svg``), in the
        order in which they are shown.
    :param times: the file in which `make run` notes its time, if it made the size.
    """
    frames = {file.stem: read_table(file) for file in sources if file.suffix == ".csv"}
    claims = _claims(frames.pop("claims", None))
    tables = {name: _table(name, frame, config) for name, frame in frames.items()}
    figures = []
    for file in sources:
        if file.suffix == ".svg":
            words = caption_of(file.stem)
            own = [tables[name] for name in words.tables if name in tables]
            verdicts = _verdicts([claim for claim in claims if claim["figure"] == file.stem])
            figures.append(Figure(file.stem, words, file, own, verdicts))
    shown_there = {table.name for figure in figures for table in figure.tables}
    runs = frames.get("runs", pd.DataFrame())
    return Content(
        config=config,
        settings=Path("config") / f"{config.tier}.yaml",
        headline=_headline(config, tables),
        figures=figures,
        tables=[table for name, table in tables.items() if name not in shown_there],
        verdicts=_verdicts(claims),
        orbits=learned_orbits(runs, _fixed(config)) if len(runs) else [],
        times=[_times(str(name), group) for name, group in runs.groupby("experiment", sort=False)] if len(runs) else [],
        elapsed=_elapsed(times),
        commits=sorted({str(commit)[:7] for commit in runs.get("commit", pd.Series(dtype=str)).dropna()}),
    )


def _table(name: str, frame: pd.DataFrame, config: Config) -> Table:
    """Without the names of variants where labels say the same, and with a proper minus."""
    texts = shown(frame.drop(columns="variant") if {"variant", "label"} <= set(frame) else frame)
    columns = [[str(cell) for cell in texts.iloc[:, place]] for place in range(texts.shape[1])]
    numeric = [any(column) and all(cell.lstrip("-")[:1].isdigit() for cell in column if cell) for column in columns]
    signed = [
        [cell.replace("-", "−") if number else cell for cell in column]
        for column, number in zip(columns, numeric, strict=True)
    ]
    head = ["model" if name == "label" else str(name) for name in texts]
    return Table(name, caption(name, config), head, list(map(list, zip(*signed, strict=True))), numeric)


def _headline(config: Config, tables: Mapping[str, Table]) -> Table | None:
    """The errors of MNIST, beside the paper's, or else those of the first experiment."""
    names = [name for name in ("mnist", *config.experiments) if name in tables]
    if not names:
        return None
    table = tables[names[0]]
    differ = len({*map(tuple, table.only(DIFFERS).rows)}) > 1
    return table.only(*HEADLINE, *[DIFFERS] * differ)


def _fixed(config: Config) -> set[tuple[str, str]]:
    return {
        (name, variant)
        for name, experiment in config.experiments.items()
        for variant, settings in experiment.variants.items()
        if not getattr(settings.orbit, "trainable", True)
    }


def _claims(claims: pd.DataFrame | None) -> list[dict[str, str]]:
    """A row of texts for each claim."""
    if claims is None:
        return []
    texts = claims.fillna("").astype(str)
    return [dict(zip(texts.columns, row, strict=True)) for row in texts.itertuples(index=False)]


def _verdicts(claims: Sequence[dict[str, str]]) -> list[Verdict]:
    by_name = {name: [claim for claim in claims if claim["verdict"] == name] for name in WORST_FIRST}
    return [Verdict(name, LOOKS[name], own) for name, own in by_name.items() if own]


def _times(experiment: str, runs: pd.DataFrame) -> Times:
    devices = ", ".join(sorted(map(str, runs["device"].dropna().unique())))
    return Times(experiment, len(runs), devices, duration(runs["wall_s"].median()), duration(runs["wall_s"].sum()))


def _elapsed(times: Path | None) -> str:
    """The sum over all starts: interrupted ones, and those that took them up again."""
    if times is None or not times.exists():
        return ""
    rows = read_table(times)
    return f"{duration(rows['seconds'].sum())} on {', '.join(map(str, rows['device'].unique()))}"


def duration(seconds: float) -> str:
    """In words: 45 s, 16 min, 8.2 hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} hours"
