"""Draws a figure from result files; the output's name says which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
from arguments import parse

from orbitgp_paper import measured
from orbitgp_paper.analysis.formats import read_table
from orbitgp_paper.config import read_spec
from orbitgp_paper.figures.style import save
from orbitgp_paper.runs.reading import read_runs

Files = Sequence[Path]


def main() -> None:
    """Writes .pdf, .svg and .png."""
    given = parse(__doc__, output=Path, results=[Path])
    module = import_module(f"orbitgp_paper.figures.{given.output.stem}")
    read = READ.get(given.output.stem, lambda results: tuple(map(measured.read, results)))
    save(module.draw(*read(given.results)), given.output.with_suffix(""))


def metrics(results: Files) -> pd.DataFrame:
    """The curves of the runs that files belong to."""
    return read_runs(dict.fromkeys(file.parent for file in results)).metrics


def finals(results: Files) -> pd.DataFrame:
    """What the runs that files belong to ended with."""
    return read_runs(dict.fromkeys(file.parent for file in results)).finals


def insensitivity(results: Files) -> pd.DataFrame:
    """The files of all variants, with the names that their runs' settings give them."""
    specs = [read_spec(file) for file in results if file.suffix == ".yaml"]
    labels = {spec.variant: spec.label for spec in specs}
    tables = {file.stem: measured.read(file) for file in results if file.suffix == ".csv"}
    return pd.concat(
        [table.assign(variant=name, label_text=labels[name]) for name, table in tables.items()], ignore_index=True
    )


#: how results become what a figure is drawn from, where they are not simply read
READ: dict[str, Callable[[Files], tuple[Any, ...]]] = {
    "fig3": lambda results: (metrics(results),),
    "fig4": lambda results: (metrics(results[:-1]), read_table(results[-1])),
    "fig5": lambda results: (metrics(results),),
    "appendix_a": lambda results: (insensitivity(results),),
    "training": lambda results: (metrics(results),),
    "recipes": lambda results: (finals(results), metrics(results)),
    **dict.fromkeys(("parts", "profile", "sizes"), lambda results: (finals(results),)),
}


if __name__ == "__main__":
    main()
