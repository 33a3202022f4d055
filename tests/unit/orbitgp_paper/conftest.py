"""Runs as the training leaves them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from orbitgp import files

ROOT = Path(__file__).parents[3]


@pytest.fixture()
def write_run(tmp_path) -> Callable[..., Path]:
    """Writes the files of a run; a keyword changes what final.json says."""

    def write(experiment: str = "mnist", variant: str = "rbf", seed: int = 0, **changes: Any) -> Path:
        folder = tmp_path / "runs" / experiment / variant / f"seed{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        parameters = changes.pop("parameters", {"kernel.variance": 0.5})
        dataset = changes.pop("dataset", {"name": "mnist", "kind": "mnist", "train": 200, "test": 100})
        final = {
            "experiment": experiment,
            "variant": variant,
            "label": variant.upper(),
            "seed": seed,
            "steps": 6,
            "elbo": -100.0 - seed,
            "elbo_std_error": 0.5,
            "test_error": 10.0 + seed,
            "test_nll": 0.25,
            "train_size": 200,
            "test_size": 100,
            "parameters": parameters,
            "events": [],
            "diverged": False,
            "config_digest": "00",
        } | changes
        likelihood = {"kind": "polya_gamma", "tilt": "groups"} if "alpha" in dataset else {"kind": "gaussian"}
        spec = {key: final[key] for key in ("experiment", "variant", "label", "seed")} | {
            "dataset": dataset,
            "orbit": {"kind": "identity"},
            "likelihood": likelihood,
            "inducing": {"count": 16},
            "optimiser": {"kind": "natural", "steps": 40, "batch": 50},
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(spec))
        names = ["step", "elbo", "test_error", "test_nll", *parameters]
        rows = [[0, "", 90.0, 2.3, *parameters.values()], [6, -100.25, 10.0, 0.25, *parameters.values()]]
        text = "\n".join(",".join(map(str, row)) for row in (names, *rows)) + "\n"
        (folder / "metrics.csv").write_text(text)
        final["files"] = files.sums(folder, ("config.yaml", "metrics.csv"))
        (folder / "final.json").write_text(json.dumps(final))
        origin = {"wall_s": 12.5, "device": "two cores", "peak_memory_mb": 900.0, "resumed": 0, "commit": "ab"}
        origin["files"] = files.sums(folder, ["final.json"])
        (folder / "provenance.json").write_text(json.dumps(origin))
        return folder

    return write


@pytest.fixture()
def finals() -> Callable[..., pd.DataFrame]:
    """A frame of ended runs: ``finals(experiment, {variant: [error of each seed]}, column=value)``."""

    def make(experiment: str, errors: dict[str, list[float]], **columns: Any) -> pd.DataFrame:
        same = {"dataset": "mnist", "alpha_true": np.nan, "train_size": 4000, "test_size": 2000, "inducing": 100}
        same |= {"steps": 400, "late_rise": 0.5, "diverged": False}
        rows = [
            {"experiment": experiment, "variant": variant, "label": variant.upper(), "seed": seed}
            | {"elbo": 1000.0 - error, "test_error": error, "test_nll": error / 100}
            | same
            | columns
            for variant, own in errors.items()
            for seed, error in enumerate(own)
        ]
        return pd.DataFrame(rows)

    return make


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
