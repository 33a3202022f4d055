"""Runs as the training leaves them, and tables made of them."""

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
        rows = [
            {
                "experiment": experiment,
                "variant": variant,
                "label": variant.upper(),
                "seed": seed,
                "dataset": "mnist",
                "alpha_true": np.nan,
                "train_size": 4000,
                "test_size": 2000,
                "inducing": 100,
                "steps": 400,
                "elbo": 1000.0 - error,
                "elbo_std_error": 1.0,
                "late_rise": 0.5,
                "test_error": error,
                "test_nll": error / 100,
                "diverged": False,
                "events": 0,
                "event_kinds": "",
                "wall_s": 1.0,
                "device": "two cores",
                "peak_memory_mb": 900.0,
                "resumed": 0,
                "commit": "ab",
                "dirty": False,
            }
            | columns
            for variant, own in errors.items()
            for seed, error in enumerate(own)
        ]
        return pd.DataFrame(rows)

    return make


@pytest.fixture(scope="session")
def insensitivity_frame() -> pd.DataFrame:
    """As measured: two variants, two views, ten classes, two thresholds."""
    rows = [
        {
            "variant": variant,
            "view": view,
            "label": label,
            "threshold": threshold,
            "probability": 0.01 * label,
            "bound": 0.01 * label + 0.02,
            "expected_square": 0.1,
            "images": 1 + label,
        }
        for variant in ("rbf", "affine")
        for view in ("prior", "posterior")
        for label in range(10)
        for threshold in (0.01, 0.1)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="session")
def estimators_frame() -> pd.DataFrame:
    """As measured: two estimators."""
    rows = [
        {
            "estimator": estimator,
            "shared": shared,
            "samples": samples,
            "quantity": quantity,
            "exact": 1.0,
            "mean": 1.0 + bias,
            "bias": bias,
            "bias_std_error": 0.01,
            "std": std / samples,
            "cost": samples**2,
            "repeats": 100,
        }
        for estimator, bias, std in (("iid", -0.02, 0.2), ("without_replacement", 0.01, 0.1))
        for shared in (False, True)
        for samples in (2, 4, 32)
        for quantity in ("k_ff", "square_norm", "bound")
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="session")
def toy_metrics() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": ["invariant", "plain"],
            "log_marginal_likelihood": [1.86, -11.28],
            "train_rmse": [0.022, 0.010],
            "test_rmse": [0.098, 0.230],
            "variance": [0.6, 0.3],
            "lengthscale": [0.26, 0.24],
            "noise": [0.046, 0.038],
        }
    )


@pytest.fixture(scope="session")
def toy_halves() -> pd.DataFrame:
    rows = [
        {"model": model, "seen": seen, "log_marginal_likelihood": value, "first": value / 3, "second": 2 * value / 3}
        for model, value in {"invariant": 1.86, "plain": -11.28, "antisymmetric": -27.44}.items()
        for seen in ("above", "below")
    ]
    return pd.DataFrame(rows).assign(rmse=0.3, std_ratio=0.5)


@pytest.fixture(scope="session")
def toy_bounds() -> pd.DataFrame:
    exact = {"invariant": 1.86, "plain": -11.28}
    return pd.DataFrame(
        [
            {"model": model, "inducing": M, "elbo": value - 40 / M**2, "log_marginal_likelihood": value}
            for model, value in exact.items()
            for M in (4, 8, 64)
        ]
    )


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
