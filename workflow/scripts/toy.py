"""Fits the toy of figure 2 and draws it: ``python workflow/scripts/toy.py [--seed 0] [--folder results/toy]``."""

from __future__ import annotations

import argparse
from pathlib import Path

from orbitgp.datasets import symmetric
from orbitgp.experiments.toy import fit_toy
from orbitgp.figures import fig2
from orbitgp.figures.style import save


def main() -> None:
    """Writes metrics.csv and the figure, and shows both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="decides the function, its data and their noise")
    parser.add_argument("--folder", type=Path, default=Path("results/toy"))
    arguments = parser.parse_args()
    data = symmetric(arguments.seed, train=40)
    result = fit_toy(data)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    result.metrics.round(4).to_csv(arguments.folder / "metrics.csv", index=False)
    files = save(fig2.draw(data, result.means, result.metrics), arguments.folder / "fig2")
    print(result.metrics.round(4).to_string(index=False))
    print("drawn:", *files)


if __name__ == "__main__":
    main()
