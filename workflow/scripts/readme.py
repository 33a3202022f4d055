"""
Writes what the runs in the paper's size came to into the README, between its two marks, from results/paper/tables:

    python workflow/scripts/readme.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from orbitgp import files
from orbitgp.analysis.tables import read_table
from orbitgp.configuration import paths, read_yaml

BEGIN, END = "<!-- from results/paper -->", "<!-- to here -->"
NOTHING = "not measured yet"
MNIST = {"rbf": "RBF", "rotation": "rotation", "affine": "affine", "local": "local deformations"}
ROTATED = {"rbf": "RBF", "affine": "affine", "rotation": "learned rotation", "fixed": "fixed rotation"}


def main() -> None:
    """Replaces what stands between the marks."""
    file = Path("README.md")
    files.write_text(file, filled(file.read_text(encoding="utf-8")))


def filled(text: str) -> str:
    """
    :return: the README with the numbers of today.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"README.md must have the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{comparison()}\n{END}{after}"


def comparison() -> str:
    """
    :return: a table: what the paper has, and what came out here.
    """
    mnist, parity, rotated = (_table(name) for name in ("mnist", "parity", "rotated"))
    rows = [("experiment", "paper", "here, in the paper's size"), ("---", "---", "---")]
    rows += [(f"MNIST, error %: {label}", _printed(key), _error(mnist, key)) for key, label in MNIST.items()]
    rows += [
        ("Fig. 3, angle of ±90°, learned", "recovered", _angles(parity, 90)),
        ("Fig. 3, angle of ±180°, learned", "under-estimated", _angles(parity, 180)),
    ]
    rows += [(f"Fig. 5, error %: {label}", "drawn only", _error(rotated, key)) for key, label in ROTATED.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _printed(variant: str) -> str:
    (found,) = [row for row in read_yaml(Path("config/paper_values.yaml")) if row["name"] == f"mnist/{variant}/error"]
    return f"{found['value']:.2f} ± {found['std']:.2f}"


def _table(name: str) -> pd.DataFrame | None:
    file = Path(f"{paths({'tier': 'paper'}).table(name)}.csv")
    return read_table(file).set_index("variant") if file.exists() else None


def _error(table: pd.DataFrame | None, variant: str) -> str:
    if table is None:
        return NOTHING
    row = table.loc[variant]
    return f"{row.error_mean:.2f} ± {row.error_std:.2f} ({row.n_seeds:.0f} seeds; bound {row.elbo_mean:,.0f})"


def _angles(table: pd.DataFrame | None, angle: int) -> str:
    """By the angle that each training started from."""
    if table is None:
        return NOTHING
    learned = table[(table.alpha_true == angle) & table.start.notna()].sort_values("start")
    return ", ".join(f"{row.angle_mean:.0f}° from {row.start:.0f}°" for row in learned.itertuples())


if __name__ == "__main__":
    main()
