"""Fits the toy of figure 2."""

from __future__ import annotations

from pathlib import Path

from arguments import parse, settings

from orbitgp.fitting.devices import prepare
from orbitgp_paper import measured
from orbitgp_paper.experiments.toy import run_toy


def main() -> None:
    """Writes its numbers beside ``output``, its settings."""
    given = parse(__doc__, settings=settings, output=Path)
    prepare(threads=1)
    folder = given.output.parent
    run_toy(given.settings, folder)
    results = [folder / name for name in ("metrics.csv", "bounds.csv", "halves.csv", "surfaces.npz")]
    measured.write_settings(given.output, given.settings, *results)


if __name__ == "__main__":
    main()
