"""Measures bias and spread of the estimators, for appendix B."""

from __future__ import annotations

from pathlib import Path

from arguments import parse, settings

from orbitgp import files, measured
from orbitgp.experiments.estimators import compare
from orbitgp.training.devices import prepare


def main() -> None:
    """Writes the .csv, and the settings beside it."""
    given = parse(__doc__, settings=settings, output=Path)
    prepare(threads=1)
    found = compare(given.settings)
    files.write_csv(given.output, list(found.columns), found.itertuples(index=False))
    measured.write_settings(given.output.with_name("config.yaml"), given.settings, given.output)


if __name__ == "__main__":
    main()
