"""Measures what is shown besides trainings; the output's folder says what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from arguments import parse

from orbitgp import files, load_gpflow
from orbitgp_paper import measured
from orbitgp_paper.experiments.images import read_dataset

Settings = Mapping[str, Any]


def main() -> None:
    """Writes numbers, and the settings beside them with their sums."""
    given = parse(__doc__, settings=json.loads, output=Path, model=[Path])
    load_gpflow()
    from orbitgp.fitting.devices import prepare

    prepare(threads=1)
    made = MEASURE[given.output.parent.name](given.settings, given.output, *given.model)
    measured.write_settings(given.output, given.settings, *made)


def toy(settings: Settings, output: Path) -> list[Path]:
    """Figure 2."""
    from orbitgp_paper.experiments.toy import run_toy

    run_toy(settings, output.parent)
    return [output.with_name(name) for name in ("metrics.csv", "bounds.csv", "halves.csv", "surfaces.npz")]


def toy_draws(settings: Settings, output: Path) -> list[Path]:
    """Figure 2 with other functions and points."""
    from orbitgp_paper.experiments.toy_draws import measure

    return write(measure(settings), output.with_name("draws.csv"))


def costs(settings: Settings, output: Path) -> list[Path]:
    """Kernel evaluations."""
    from orbitgp_paper.experiments.costs import measure

    return write(measure(settings), output.with_name("costs.csv"))


def samples(settings: Settings, output: Path, params: Path, images: Path) -> list[Path]:
    """Figure 1: draws from the orbit that a run has learned."""
    from orbitgp_paper.experiments.build import load_trained
    from orbitgp_paper.experiments.samples import draw_samples

    data = read_dataset(images)
    chosen = {key: settings[key] for key in ("digits", "draws", "seed")}
    drawn = output.with_name("samples.npz")
    files.write_npz(drawn, draw_samples(load_trained(params.parent, data), data, **chosen), compress=True)
    return [drawn]


def insensitivity(settings: Settings, output: Path, params: Path, images: Path) -> list[Path]:
    """Appendix A: how often a trained model deviates under its own orbit."""
    from orbitgp_paper.experiments.build import load_trained
    from orbitgp_paper.experiments.deviations import measure

    data = read_dataset(images)
    return write(measure(load_trained(params.parent, data), data, settings), output.with_suffix(".csv"))


def estimators(settings: Settings, output: Path) -> list[Path]:
    """Appendix B: bias and spread of the estimators."""
    from orbitgp_paper.experiments.spread import compare

    return write(compare(settings), output.with_name("estimators.csv"))


def write(frame: pd.DataFrame, path: Path) -> list[Path]:
    """A frame as CSV."""
    files.write_csv(path, list(map(str, frame)), frame.itertuples(index=False))
    return [path]


MEASURE = {
    "toy": toy,
    "toy_draws": toy_draws,
    "samples": samples,
    "insensitivity": insensitivity,
    "estimators": estimators,
    "costs": costs,
}

if __name__ == "__main__":
    main()
