"""Fits the toy of figure 2."""

from __future__ import annotations

from pathlib import Path

import yaml
from arguments import parse, settings

from orbitgp import files
from orbitgp.experiments.toy import run_toy
from orbitgp.training.devices import prepare


def main() -> None:
    """Writes its numbers beside ``output``, its settings."""
    given = parse(__doc__, settings=settings, output=Path)
    prepare(threads=1)
    run_toy(given.settings, given.output.parent)
    files.write_text(given.output, yaml.safe_dump(given.settings))


if __name__ == "__main__":
    main()
