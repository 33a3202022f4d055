"""
Writes what the runs in the paper's size came to into the README, between its two marks, from results/paper/runs:

    python workflow/scripts/readme.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from orbitgp import files
from orbitgp_paper.analysis.tables import experiment_table, parity_table, read_paper_values
from orbitgp_paper.config import load
from orbitgp_paper.runs.reading import read_runs

BEGIN, END = "<!-- from results/paper -->", "<!-- to here -->"
MNIST = {"rbf": "RBF", "rotation": "rotation", "affine": "affine", "local": "local deformations"}
PARITY = [("rbf", "", "RBF"), *(("rotation", f"_from_{start}", f"rotation from {start}°") for start in (20, 60, 150))]
ROTATED = {
    "rbf": "RBF",
    "rotation": "learned rotation",
    "affine": "affine, by matrix entries",
    "affine_parts": "affine, by angle, scales, shears and shifts",
    "fixed": "fixed rotation",
    "fixed_plain": "fixed rotation, plain recipe",
    "rotation_plain": "learned rotation, plain recipe",
    "affine_plain": "affine, by matrix entries, plain recipe",
}


def main() -> None:
    """Replaces what stands between the marks."""
    file = Path("README.md")
    files.write_text(file, filled(file.read_text(encoding="utf-8")))


def filled(text: str) -> str:
    """The README with the numbers of today."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"README.md must have the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{comparison()}\n{END}{after}"


def comparison() -> str:
    """A table: what the paper has, and what came out here."""
    config, paper = load("paper"), read_paper_values(Path("config/paper_values.yaml"))
    runs = read_runs(run.folder(config.paths().root) for run in config.all_runs())
    parity = parity_table(runs.finals, runs.metrics)
    mnist, rotated = (experiment_table(runs.finals, name) for name in ("mnist", "rotated"))
    rows = [("experiment", "paper", "here, in the paper's size"), ("---", "---", "---")]
    for variant, label in MNIST.items():
        printed = paper[f"mnist/{variant}/error"]
        there = f"{printed['value']:.2f} ± {printed['std']:.2f}"
        rows.append((f"MNIST, error %: {label}", there, _error(mnist, variant)))
    for angle, said in ((90, "recovered"), (180, "under-estimated")):
        rows.append((f"Fig. 3, angle of ±{angle}°, learned", said, _angles(parity, angle)))
        for variant, start, label in PARITY:
            found = _error(parity, f"{variant}_{angle}{start}")
            rows.append((f"Fig. 3, error % of ±{angle}°: {label}", "drawn only", found))
    for variant, label in ROTATED.items():
        rows.append((f"Fig. 5, error %: {label}", "drawn only", _error(rotated, variant)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _error(table: pd.DataFrame, variant: str) -> str:
    (row,) = table[table["variant"] == variant].itertuples()
    if row.n_diverged:
        return f"{row.n_diverged} of {row.n_seeds} diverged"
    spread = "" if pd.isna(row.error_std) else f" ± {row.error_std:.2f}"
    seeds = f"{row.n_seeds} seed{'s' * (row.n_seeds > 1)}"
    return f"{row.error_mean:.2f}{spread} ({seeds}; bound {row.elbo_mean:,.0f})"


def _angles(table: pd.DataFrame, angle: int) -> str:
    """By the angle that each training started from."""
    learned = table[(table["alpha_true"] == angle) & table["start"].notna()].sort_values("start")
    return ", ".join(f"{_range(row.angle_min, row.angle_max)}° from {row.start:.0f}°" for row in learned.itertuples())


def _range(least: float, largest: float) -> str:
    ends = f"{least:.1f}", f"{largest:.1f}"
    return " to ".join(dict.fromkeys(ends))


if __name__ == "__main__":
    main()
