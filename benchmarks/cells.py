"""What benchmarks share: the command that made a row; and tables made a cell at a time, so that a stop loses little."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from orbitgp.files import write_text

Row = dict[str, Any]


def measure_all(
    file: Path, command: str, columns: list[str], cells: Iterable[tuple[Any, ...]], measure: Callable[..., list[Row]]
) -> pd.DataFrame:
    """
    :param file: a CSV file, written anew after every cell. Cells that it has from the same command are not measured.
    :param command: what the rows say made them, with the device.
    :param columns: those that tell one cell from another.
    :param cells: values of these columns.
    :param measure: (*cell) → rows, which have these columns.
    :return: the rows of all cells.
    """
    from orbitgp.fitting.devices import describe

    found = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=["command"])
    found = found[found["command"].fillna("") == command].assign(command=command)  # pandas reads "" as a missing value
    for cell in cells:
        if not len(found) or cell not in set(found[columns].itertuples(index=False, name=None)):
            rows = pd.DataFrame(measure(*cell)).assign(command=command, device=describe())
            found = pd.concat([found, rows], ignore_index=True) if len(found) else rows
            write_text(file, found.to_csv(index=False, float_format="%.7g"))
    return found


def typed(script: str, arguments: list[str]) -> str:
    """The command that ran a benchmark, without where results went, which decides none of them."""
    kept = [word for i, word in enumerate(arguments) if "--folder" not in (word, *arguments[max(i - 1, 0) : i])]
    return " ".join([f"python benchmarks/{script}.py", *kept])
