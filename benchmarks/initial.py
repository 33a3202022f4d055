"""
Does the orbit that a training starts from matter? Affine maps and local deformations, from narrow to wide, and shifted.

    python benchmarks/initial.py    # some ten minutes on two cores; writes benchmarks/initial.csv and initial.md

`InvariantClassifier` learns 3,000 digits, with all sizes left to it. Error is that of MNIST's 10,000 test images.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from instead import spread

from orbitgp.files import write_text
from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
MATRIX = np.array([1.0, 0, 0, 0, 1, 0])  # of the identity, row by row
SHIFTED = "affine, ±0.05 about 0.1 more than the identity"
COLUMNS = {"error": 2, "bound": 0, "fit_s": 0}


def starts() -> dict[str, dict[str, object]]:
    """The orbit's kind and settings, by what the page calls them."""
    found: dict[str, dict[str, object]] = {
        f"affine, ±{spread:g}": {"kind": "Affine", "spread": spread} for spread in (0.01, 0.05, 0.1, 0.3)
    }
    found[SHIFTED] = {"kind": "Affine", "lower": MATRIX + 0.05, "upper": MATRIX + 0.15}
    for size in (0.005, 0.02, 0.1):
        settings = {"deformation": size, "generators": np.full(6, size), "thickening": size}
        found[f"local, {size:g}"] = {"kind": "LocalDeformation", **settings}
    return found


def measure(name: str, seed: int, count: int, settings: dict[str, int]) -> dict[str, object]:
    """What one training from the start ``name`` ends with."""
    from orbitgp import InvariantClassifier, datasets, orbits

    data = datasets.mnist()
    train = data.train.take(count)
    start = starts()[name]
    orbit = getattr(orbits, str(start.pop("kind")))(train.images.shape[1:], **start)
    before = time.perf_counter()
    model = InvariantClassifier(orbit, verbose=False, seed=seed, **settings).fit(train.images, train.labels)
    seconds = time.perf_counter() - before
    error = 100 * (1 - model.score(data.test.images, data.test.labels))
    return {"start": name, "seed": seed, "error": error, "bound": model.evidence_, "fit_s": seconds}


def report(frame: pd.DataFrame, command: str, device: str) -> str:
    """A row for each start, over seeds."""
    cells = []
    for name, rows in frame.groupby("start", sort=False):
        cells.append([str(name), *(spread(rows[column], digits) for column, digits in COLUMNS.items())])
    means = frame.groupby("start").error.mean()
    by_kind = means.groupby(means.index.str.split(",").str[0])
    said = ", ".join(f"{own.min():.2f} to {own.max():.2f} % for {kind} maps" for kind, own in by_kind)
    return (
        "# Does the orbit that a training starts from matter?\n\n"
        f"Test errors end at {said}.\n\n    {command}\n\n"
        f"On {device}. Means of {frame.seed.nunique()} seeds ± their standard deviations.\n\n"
        f"{markdown_table(['start', 'test error, %', 'bound, nats', 'fit, s'], cells, [False, True, True, True])}"
    )


def main() -> None:
    """Reads the arguments and writes table and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=int, default=3000, help="images, the first so many")
    parser.add_argument("--starts", nargs="+", default=[*starts()], choices=[*starts()])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, help="instead of those that the estimator chooses")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    from orbitgp.fitting.devices import describe

    settings = {} if given.steps is None else {"steps": given.steps}
    cells = [(name, seed) for name in given.starts for seed in range(given.seeds)]
    frame = pd.DataFrame([measure(*cell, given.train, settings) for cell in cells])
    write_text(given.folder / "initial.csv", frame.to_csv(index=False, float_format="%.6g"))
    command = shlex.join(["python", "benchmarks/initial.py", *sys.argv[1:]])
    write_text(given.folder / "initial.md", report(frame, command, describe()))
    sys.stdout.write((given.folder / "initial.md").read_text())


if __name__ == "__main__":
    main()
