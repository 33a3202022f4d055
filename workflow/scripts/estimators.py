"""Measures bias and spread of the estimators, for appendix B."""

from __future__ import annotations

from pathlib import Path

from arguments import parse, settings

from orbitgp import files
from orbitgp.fitting.devices import prepare
from orbitgp_paper import measured
from orbitgp_paper.experiments.spread import compare


def main() -> None:
    """Writes the .csv, and the settings beside it."""
    given = parse(__doc__, settings=settings, output=Path)
    prepare(threads=1)
    found = compare(given.settings)
    files.write_csv(given.output, list(found.columns), found.itertuples(index=False))
    measured.write_settings(given.output.with_name("config.yaml"), given.settings, given.output)


if __name__ == "__main__":
    main()
