"""Draws from the orbit that a run has learned, for figure 1."""

from __future__ import annotations

from pathlib import Path

import yaml
from arguments import parse, settings
from images import images_of

from orbitgp import files
from orbitgp.fitting.devices import prepare
from orbitgp_paper import measured
from orbitgp_paper.experiments.build import load_trained
from orbitgp_paper.experiments.samples import draw_samples


def main() -> None:
    """Writes the .npz, and the settings beside it."""
    given = parse(__doc__, settings=settings, params=Path, images=Path, output=Path)
    prepare(threads=1)
    folder = given.params.parent
    data = images_of(yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8")), given.images)
    chosen = {key: given.settings[key] for key in ("digits", "draws", "seed")}
    files.write_npz(given.output, draw_samples(load_trained(folder, data), data, **chosen), compress=True)
    measured.write_settings(given.output.with_name("config.yaml"), given.settings, given.output)


if __name__ == "__main__":
    main()
