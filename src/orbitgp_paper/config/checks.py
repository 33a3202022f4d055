"""Whole configurations: the schema, and what their blocks ask of each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbitgp_paper.config.places import Run
from orbitgp_paper.config.reading import check_plain, read_yaml
from orbitgp_paper.config.schema import check_schema, validator
from orbitgp_paper.config.specs import run_spec, training_block
from orbitgp_paper.config.wording import ConfigError, dotted, one_of, short

SCHEMA = Path("workflow/schemas/config.schema.yaml")  # from the repository's root
NOT_TIERS = ("claims", "paper_values")  # what else lies in the folder of configurations

#: folders and tables that are no training experiment's
RESERVED = ("toy", "toy_halves", "toy_bounds", "samples", "insensitivity", "estimators", "runs", "claims")

#: number of points of the orbits that can be listed; None where the orbit says it itself
FINITE_ORBITS: dict[str, int | None] = {"identity": 1, "right_angles": 4, "quantised_rotation": None}

MNIST_IMAGES = {"train": 60_000, "test": 10_000}
CLASSES = {"mnist": 10, "rotated": 10, "parity": 2}


def load(tier: str, folder: Path = Path("config")) -> dict[str, Any]:
    """
    :param tier: ``smoke``, ``quick``, ``paper`` or the stem of another file in ``folder``.
    :param folder: where the configurations are; the schema is found from the folder above it.
    :return: the file's content, checked.
    """
    folder = Path(folder)
    there = sorted(file.stem for file in folder.glob("*.yaml") if file.stem not in NOT_TIERS)
    if tier not in there:
        raise ConfigError(f"tier is {short(tier)}; {folder} has {', '.join(there) or 'no configuration'}")
    file = folder / f"{tier}.yaml"
    config = read_yaml(file)
    check(config, file, folder.parent / SCHEMA)
    return config


def check(config: Any, source: str | Path, schema: Path = SCHEMA) -> None:
    """
    Raises :class:`ConfigError` at the first thing that is wrong.

    :param config: a whole configuration, as read from a file and possibly changed on the command line.
    :param source: what to call it in the error; if it is a file, its stem must be the tier.
    :param schema: the JSON schema.
    """
    try:
        check_plain(config)
        check_schema(config, validator(Path(schema), None))
        if Path(source).suffix == ".yaml" and Path(source).stem != config["tier"]:
            raise ConfigError(f"tier is {config['tier']!r}; the file's name wants {Path(source).stem!r}")
        _check_datasets(config)
        _check_experiments(config, validator(Path(schema), "training"))
        _check_samples(config)
        _check_insensitivity(config)
        _check_estimators(config)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _check_datasets(config: Mapping[str, Any]) -> None:
    for name, dataset in config["datasets"].items():
        key = f"datasets.{name}"
        if dataset["kind"] in ("mnist", "parity") and "folder" not in dataset:
            for part, most in MNIST_IMAGES.items():
                if dataset[part] > most:
                    raise ConfigError(f"{key}.{part} = {dataset[part]} must be at most {most}, the images of MNIST")
        if dataset["kind"] == "rotated":
            total, most = dataset["train"] + dataset["test"], sum(MNIST_IMAGES.values())
            if total > most:
                raise ConfigError(f"{key}.train + test = {total} must be at most {most}, the images of MNIST")


def _check_experiments(config: Mapping[str, Any], training_validator: Any) -> None:
    for name, experiment in config["experiments"].items():
        if name in RESERVED:
            raise ConfigError(f"experiments.{name} has a name that is taken; these are: {', '.join(RESERVED)}")
        for variant, block in experiment["variants"].items():
            key = ("experiments", name, "variants", variant)
            one_of(f"{dotted(key)}.dataset", block["dataset"], config["datasets"])
            training = training_block(config, name, variant)
            hint = f" (in what {dotted(key)} is after merging; a block whose kind changes is replaced as a whole)"
            check_schema(training, training_validator, (*key, "training"), hint)
            _check_run(dotted(key), config["datasets"][block["dataset"]], block["orbit"], training)


def _check_run(key: str, dataset: Mapping[str, Any], orbit: Mapping[str, Any], training: Mapping[str, Any]) -> None:
    """What the blocks of one run ask of each other."""
    optimiser, scheme = training["optimiser"], training["scheme"]
    if (dataset["kind"] == "parity") != (training["likelihood"]["kind"] == "polya_gamma"):
        raise ConfigError(
            f"{key}: likelihood.kind = {training['likelihood']['kind']!r} does not fit a dataset of kind "
            f"{dataset['kind']!r}; polya_gamma is for parity, whose labels are -1 and 1, and gaussian for all others"
        )
    for what, value in (("optimiser.batch", optimiser["batch"]), ("inducing.count", training["inducing"]["count"])):
        if "train" in dataset and value > dataset["train"]:
            raise ConfigError(f"{key}: {what} = {value} must be at most {dataset['train']}, the dataset's images")
    if training["evaluation"]["count"] > optimiser["steps"]:
        raise ConfigError(
            f"{key}: evaluation.count = {training['evaluation']['count']} must be at most optimiser.steps = "
            f"{optimiser['steps']}"
        )
    if optimiser["kind"] == "natural" and optimiser["natural"]["last"] > optimiser["natural"]["first"]:
        raise ConfigError(
            f"{key}: optimiser.natural.last = {optimiser['natural']['last']} must be at most first = "
            f"{optimiser['natural']['first']}"
        )
    if scheme["kind"] in ("full", "without_replacement") and orbit["kind"] not in FINITE_ORBITS:
        raise ConfigError(
            f"{key}: scheme.kind = {scheme['kind']!r} needs an orbit that can be listed ({', '.join(FINITE_ORBITS)}), "
            f"not {orbit['kind']!r}"
        )
    if scheme["kind"] == "without_replacement":
        order = FINITE_ORBITS[orbit["kind"]] or orbit["order"]
        if scheme["count"] > order or (scheme["count"] == 1 and order > 1):
            raise ConfigError(
                f"{key}: scheme.count = {scheme['count']} must be at least {min(2, order)} and at most {order}, "
                "the orbit's points"
            )


def _check_samples(config: Mapping[str, Any]) -> None:
    block = config["samples"]
    spec = _referenced("samples", config, block["experiment"], block["variant"], block["seed"])
    _at_most_test("samples.digits", block["digits"], spec)


def _check_insensitivity(config: Mapping[str, Any]) -> None:
    block = config["insensitivity"]
    for variant in block["variants"]:
        spec = _referenced("insensitivity", config, block["experiment"], variant, block["seed"])
        _at_most_test("insensitivity.images", block["images"], spec)
        classes = CLASSES.get(spec["dataset"]["kind"], 1)
        if block["images"] < classes:
            raise ConfigError(f"insensitivity.images = {block['images']} must be at least {classes}, one of each class")


def _check_estimators(config: Mapping[str, Any]) -> None:
    block = config["estimators"]
    if max(block["samples"]) > block["order"]:
        raise ConfigError(
            f"estimators.samples = {block['samples']} must be at most estimators.order = {block['order']}, for they "
            "are drawn without replacement too"
        )


def _referenced(key: str, config: Mapping[str, Any], experiment: str, variant: str, seed: int) -> dict[str, Any]:
    """:return: the spec of the run that a block names"""
    one_of(f"{key}.experiment", experiment, config["experiments"])
    one_of(f"{key}.variant", variant, config["experiments"][experiment]["variants"])
    seeds = config["experiments"][experiment]["seeds"]
    if seed not in seeds:
        raise ConfigError(f"{key}.seed = {seed} must be one of the seeds of {experiment}, {seeds}")
    return run_spec(config, Run(experiment, variant, seed))


def _at_most_test(key: str, value: int, spec: Mapping[str, Any]) -> None:
    test = spec["dataset"].get("test")
    if test is not None and value > test:
        raise ConfigError(f"{key} = {value} must be at most {test}, the test images of {spec['dataset']['name']}")
