"""What each run depends on, resolved from a checked configuration."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from orbitgp_paper.config.places import Run
from orbitgp_paper.config.wording import ConfigError, one_of


def runs(config: Mapping[str, Any]) -> list[Run]:
    """
    :return: every training, in the order of the file.
    """
    return [
        Run(experiment, variant, seed)
        for experiment, block in config["experiments"].items()
        for variant in block["variants"]
        for seed in block["seeds"]
    ]


def dataset_spec(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """
    :return: how a dataset is made, with its ``name``.
    """
    one_of("dataset", name, config["datasets"])
    return {"name": name, **copy.deepcopy(config["datasets"][name])}


def run_spec(config: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """
    :return: everything that decides the result of a run, with all defaults filled in, as plain JSON types; keys that
        the run does not use are left out, so that changing them touches no run that does not care.
    """
    one_of("experiment", run.experiment, config["experiments"])
    experiment = config["experiments"][run.experiment]
    one_of(f"experiments.{run.experiment}.variant", run.variant, experiment["variants"])
    if run.seed not in experiment["seeds"]:
        raise ConfigError(f"experiments.{run.experiment}.seeds has no {run.seed}; it has {experiment['seeds']}")
    variant = experiment["variants"][run.variant]
    training = training_block(config, run.experiment, run.variant)
    unused = "variational" if training["optimiser"]["kind"] == "natural" else "natural"
    training["optimiser"].pop(unused, None)
    training["optimiser"]["rates"].pop(unused, None)
    return {
        "experiment": run.experiment,
        "variant": run.variant,
        "label": variant["label"],
        "seed": run.seed,
        "dataset": dataset_spec(config, variant["dataset"]),
        "orbit": _orbit(variant["orbit"]),
        **training,
    }


def canonical(spec: Any) -> str:
    """
    :return: JSON that is the same for equal content: keys in order, no spaces, and 90.0 written as 90.
    """
    return json.dumps(_same_numbers(spec), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(spec: Any) -> str:
    """
    :return: sha256 of :func:`canonical`, in hexadecimal digits.
    """
    return hashlib.sha256(canonical(spec).encode()).hexdigest()


def training_block(config: Mapping[str, Any], experiment: str, variant: str) -> dict[str, Any]:
    """:return: the training block of a run: the file's, under the experiment's, under the variant's"""
    block = config["experiments"][experiment]
    own = block["variants"][variant]
    merged = _merge(_merge(config["training"], block.get("training", {})), own.get("training", {}))
    if own["orbit"]["kind"] == "identity" and "scheme" not in own.get("training", {}):
        merged["scheme"] = {"kind": "full"}  # there is nothing to draw
    return merged


def _merge(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """:return: ``base`` with ``patch`` over it; a block whose kind changes is replaced as a whole"""
    merged = copy.deepcopy(dict(base))
    for key, value in patch.items():
        old = merged.get(key)
        if (
            isinstance(old, dict)
            and isinstance(value, Mapping)
            and value.get("kind", old.get("kind")) == old.get("kind")
        ):
            merged[key] = _merge(old, value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _orbit(orbit: Mapping[str, Any]) -> dict[str, Any]:
    """:return: an orbit with its defaults"""
    full = copy.deepcopy(dict(orbit))
    if full["kind"] in ("rotation", "affine", "interpretable_affine", "local"):
        full.setdefault("trainable", True)
    if full["kind"] == "local":
        full.setdefault("mode", "warp")
        if not isinstance(full["generators"], list | tuple):
            full["generators"] = [full["generators"]] * 6
    if full["kind"] == "composed":
        full["parts"] = [_orbit(part) for part in full["parts"]]
    return full


def _same_numbers(value: Any) -> Any:
    """:return: ``value`` with whole floats as integers, as far as floats are exact"""
    if isinstance(value, Mapping):
        return {key: _same_numbers(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_same_numbers(part) for part in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
