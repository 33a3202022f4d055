"""Makes a table from result files; the output's name says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from arguments import parse

from orbitgp_paper import measured
from orbitgp_paper.analysis import formats, tables
from orbitgp_paper.analysis.monitor import monitor_table
from orbitgp_paper.analysis.toy_rates import toy_rates_table
from orbitgp_paper.runs.reading import Runs, read_runs

MEASURED: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "toy": tables.toy_table,
    "toy_halves": tables.toy_table,
    "toy_bounds": tables.toy_bounds_table,
    "toy_rates": toy_rates_table,
    "insensitivity": tables.insensitivity_table,
    "estimators": tables.estimators_table,
    "costs": tables.costs_table,
}


def main() -> None:
    """Writes the .csv, and beside it .md and .tex."""
    given = parse(__doc__, output=Path, caption=str, paper=Path, results=[Path])
    name = given.output.stem
    if name in MEASURED:
        # the variant is what the file's name says
        frames = [measured.read(file).assign(variant=file.stem) for file in given.results if file.suffix == ".csv"]
        table = MEASURED[name](pd.concat(frames, ignore_index=True))
    else:
        runs = read_runs(dict.fromkeys(file.parent for file in given.results))
        table = from_runs(name, runs, given.paper)
    formats.write_table(table, given.output.with_suffix(""), given.caption)


def from_runs(name: str, runs: Runs, paper: Path) -> pd.DataFrame:
    """The table of an experiment, or of all runs."""
    if name == "runs":
        return tables.runs_table(runs.finals)
    if name == "monitor":
        return monitor_table(runs.finals, runs.metrics)
    if name == "mnist":
        return tables.mnist_table(runs.finals, tables.read_paper_values(paper))
    if name == "parity":
        return tables.parity_table(runs.finals, runs.metrics)
    return tables.experiment_table(runs.finals, name)


if __name__ == "__main__":
    main()
