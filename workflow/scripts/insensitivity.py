"""Measures how often a trained model deviates under its own orbit, for appendix A."""

from __future__ import annotations

from pathlib import Path

import yaml
from arguments import parse, settings
from images import images_of

from orbitgp import files
from orbitgp.fitting.devices import prepare
from orbitgp_paper import measured
from orbitgp_paper.experiments.build import load_trained
from orbitgp_paper.experiments.deviations import measure


def main() -> None:
    """Writes the .csv, and the settings beside it."""
    given = parse(__doc__, settings=settings, params=Path, images=Path, output=Path)
    prepare(threads=1)
    folder = given.params.parent
    data = images_of(yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8")), given.images)
    found = measure(load_trained(folder, data), data, given.settings)
    files.write_csv(given.output, list(found.columns), found.itertuples(index=False))
    measured.write_settings(given.output.with_suffix(".yaml"), given.settings, given.output)


if __name__ == "__main__":
    main()
