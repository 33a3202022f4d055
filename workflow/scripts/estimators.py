"""Measures bias and spread of the estimators, for appendix B."""

from __future__ import annotations

from pathlib import Path

import yaml
from arguments import parse, settings

from orbitgp import files
from orbitgp.experiments.estimators import compare
from orbitgp.training.devices import prepare


def main() -> None:
    """Writes the .csv, and the settings beside it."""
    given = parse(__doc__, settings=settings, output=Path)
    prepare(threads=1)
    found = compare(given.settings)
    files.write_csv(given.output, list(found.columns), found.itertuples(index=False))
    files.write_text(given.output.with_name("config.yaml"), yaml.safe_dump(given.settings))


if __name__ == "__main__":
    main()
