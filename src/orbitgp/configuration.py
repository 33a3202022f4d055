"""The workflow's configuration: read, checked, and resolved into what each run depends on. Loads no TensorFlow."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

SCHEMA = Path("workflow/schemas/config.schema.yaml")  # from the repository's root
NOT_TIERS = ("claims", "paper_values")  # what else lies in the folder of configurations

#: folders and tables that are no training experiment's
RESERVED = ("toy", "toy_bounds", "samples", "insensitivity", "estimators", "runs", "claims")

#: number of points of the orbits that can be listed; None where the orbit says it itself
FINITE_ORBITS: dict[str, int | None] = {"identity": 1, "right_angles": 4, "quantised_rotation": None}

#: far more than a configuration has: small files can be written that grow without end when they are read
MOST_BYTES, MOST_VALUES, DEEPEST = 1_000_000, 100_000, 20

MNIST_IMAGES = {"train": 60_000, "test": 10_000}
CLASSES = {"mnist": 10, "rotated": 10, "parity": 2}


class ConfigError(Exception):
    """A configuration that cannot be used; one line that names file, key, value and what is allowed."""


@dataclass(frozen=True)
class Run:
    """One training: a variant of an experiment, from one seed."""

    experiment: str
    variant: str
    seed: int

    def folder(self, results: Path) -> Path:
        """
        :param results: the folder of a size, ``results/{tier}``.
        """
        return Path(results) / "runs" / self.experiment / self.variant / f"seed{self.seed}"


@dataclass(frozen=True)
class Paths:
    """Where everything that a size makes lies. Names may be Snakemake wildcards, such as ``{dataset}``."""

    root: Path

    def dataset(self, name: str) -> Path:
        """The images that runs read."""
        return self.root / "data" / f"{name}.npz"

    def run(self, experiment: str, variant: str, seed: int | str) -> Path:
        """A run's folder."""
        return self.root / "runs" / experiment / variant / f"seed{seed}"

    def checkpoints(self, digest: str) -> Path:
        """A run's checkpoints, by the digest of all that decides its result."""
        return self.root / "checkpoints" / digest

    def toy(self, file: str) -> Path:
        """A file of the toy."""
        return self.root / "runs" / "toy" / file

    def samples(self) -> Path:
        """Draws from the learned orbit, for figure 1."""
        return self.root / "runs" / "samples" / "samples.npz"

    def insensitivity(self, variant: str) -> Path:
        """Appendix A, measured for one variant."""
        return self.root / "runs" / "insensitivity" / f"{variant}.csv"

    def estimators(self) -> Path:
        """Appendix B, measured."""
        return self.root / "runs" / "estimators" / "estimators.csv"

    def table(self, name: str) -> Path:
        """A table, without the ending."""
        return self.root / "tables" / name

    def figure(self, name: str) -> Path:
        """A figure, without the ending."""
        return self.root / "figures" / name

    def claims(self) -> Path:
        """The verdicts, without the ending."""
        return self.root / "claims"

    def report(self) -> Path:
        """The report, as one page."""
        return self.root / "report.html"

    def log(self, name: str) -> Path:
        """A rule's log."""
        return self.root / "logs" / f"{name}.log"

    def benchmark(self, name: str) -> Path:
        """Time and memory of a rule."""
        return self.root / "benchmarks" / f"{name}.tsv"


def paths(config: Mapping[str, Any]) -> Paths:
    """
    :return: the paths of a size, below ``results`` or the folder that the variable ORBITGP_RESULTS names.
    """
    return Paths(Path(os.environ.get("ORBITGP_RESULTS") or "results") / config["tier"])


def load(tier: str, folder: Path = Path("config")) -> dict[str, Any]:
    """
    :param tier: ``smoke``, ``quick``, ``paper`` or the stem of another file in ``folder``.
    :param folder: where the configurations are; the schema is found from the folder above it.
    :return: the file's content, checked.
    """
    folder = Path(folder)
    there = sorted(file.stem for file in folder.glob("*.yaml") if file.stem not in NOT_TIERS)
    if tier not in there:
        raise ConfigError(f"tier is {_short(tier)}; {folder} has {', '.join(there) or 'no configuration'}")
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
        _check_plain(config)
        _check_schema(config, _validator(Path(schema), None))
        if Path(source).suffix == ".yaml" and Path(source).stem != config["tier"]:
            raise ConfigError(f"tier is {config['tier']!r}; the file's name wants {Path(source).stem!r}")
        _check_datasets(config)
        _check_experiments(config, _validator(Path(schema), "training"))
        _check_samples(config)
        _check_insensitivity(config)
        _check_estimators(config)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


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
    _one_of("dataset", name, config["datasets"])
    return {"name": name, **copy.deepcopy(config["datasets"][name])}


def run_spec(config: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """
    :return: everything that decides the result of a run, with all defaults filled in, as plain JSON types; keys that
        the run does not use are left out, so that changing them touches no run that does not care.
    """
    _one_of("experiment", run.experiment, config["experiments"])
    experiment = config["experiments"][run.experiment]
    _one_of(f"experiments.{run.experiment}.variant", run.variant, experiment["variants"])
    if run.seed not in experiment["seeds"]:
        raise ConfigError(f"experiments.{run.experiment}.seeds has no {run.seed}; it has {experiment['seeds']}")
    variant = experiment["variants"][run.variant]
    training = _training(config, run.experiment, run.variant)
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


class _Loader(yaml.SafeLoader):
    """YAML in which a key may stand once only; PyYAML by itself takes the last and says nothing."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > MOST_VALUES:  # blocks that are merged into blocks, over and over
            raise ConfigError(f"the block in line {node.start_mark.line + 1} has more than {MOST_VALUES:,} keys")

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise ConfigError(f"the key {_short(key)} in line {key_node.start_mark.line + 1} must be a word")
            if key in seen:
                raise ConfigError(f"the key {_short(key)} stands a second time in line {key_node.start_mark.line + 1}")
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> Any:
    """
    :return: what a YAML file holds; a key that stands twice is an error.
    """
    try:
        if file.stat().st_size > MOST_BYTES:
            raise ConfigError(f"it has {file.stat().st_size:,} bytes; the most that is read is {MOST_BYTES:,}")
        return yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    # PyYAML lets errors of Python through where a tag promises what a value is not, such as !!int x
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ConfigError(f"{file} is not YAML: {_short_line(str(error) or type(error).__name__)}") from error
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error


def _check_plain(config: Any, at: tuple[str | int, ...] = (), before: int = 0) -> int:
    """
    Words as keys; values that JSON has, and finite: a schema lets NaN through every bound.

    :param before: how many values were seen before.
    :return: how many were seen, these included. A few lines whose aliases refer to each other can stand for billions.
    """
    seen = before + 1
    if seen > MOST_VALUES:
        raise ConfigError(f"there are more than {MOST_VALUES:,} values")
    if len(at) > DEEPEST:
        raise ConfigError(f"{_dotted(at[:4])}… goes on without end: some block contains itself")
    if isinstance(config, Mapping):
        for key, value in config.items():
            if not isinstance(key, str):
                raise ConfigError(f"the key {_short(key)} in {_dotted(at)} must be a word")
            seen = _check_plain(value, (*at, key), seen)
    elif isinstance(config, list | tuple):
        for i, value in enumerate(config):
            seen = _check_plain(value, (*at, i), seen)
    elif isinstance(config, float) and not math.isfinite(config):
        raise ConfigError(f"{_dotted(at)} is {config}; it must be a finite number")
    elif config is None and at:
        raise ConfigError(f"{_dotted(at)} is empty; give it a value or leave the key out")
    elif config is not None and not isinstance(config, bool | int | float | str):
        raise ConfigError(
            f"{_dotted(at)} is {_short(config)}, a {type(config).__name__}; it must be a number or a word"
        )
    return seen


@lru_cache(maxsize=16)
def _validator(schema: Path, definition: str | None) -> Any:
    """
    :param definition: one of the schema's ``$defs``; None for the whole.
    """
    content = read_yaml(schema)
    if definition is not None:
        content = {"$schema": content["$schema"], "$defs": content["$defs"], "$ref": f"#/$defs/{definition}"}
    base = jsonschema.Draft202012Validator
    # to JSON, 6.0 is an integer; to range() it is not
    types = base.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ).redefine("object", lambda _, value: isinstance(value, Mapping))
    return jsonschema.validators.extend(base, type_checker=types)(content)


def _check_schema(config: Any, validator: Any, prefix: tuple[str, ...] = (), hint: str = "") -> None:
    """
    :param prefix: where ``config`` stands in the whole.
    """
    errors = sorted(validator.iter_errors(config), key=lambda error: [str(part) for part in error.absolute_path])
    if errors:
        raise ConfigError(_explain(errors[0], prefix) + hint)


def _explain(error: Any, prefix: tuple[str, ...]) -> str:
    """:return: a schema's complaint, in words: key, value, what is allowed"""
    key = _dotted((*prefix, *error.absolute_path))
    value, schema, rule = error.instance, error.schema, error.validator
    if "propertyNames" in error.absolute_schema_path:
        return f"{key or 'the configuration'} has the key {_short(value)}; it must be {_expected(schema)}"
    if rule == "additionalProperties":
        allowed = list(schema.get("properties", {}))
        unknown = next(name for name in value if name not in allowed)
        close = get_close_matches(unknown, allowed, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        whose = f" of kind {value['kind']}" if isinstance(value.get("kind"), str) else ""
        return (
            f"{_dotted((key, unknown))} = {_short(value[unknown])} is no key here{meant}; "
            f"{key or 'a configuration'}{whose} takes {', '.join(sorted(allowed))}"
        )
    if rule == "required":
        missing = next(name for name in error.validator_value if name not in value)
        return (
            f"{_dotted((key, missing))} is missing; {key or 'a configuration'} needs {', '.join(error.validator_value)}"
        )
    if rule in ("minProperties", "minItems") and not value:
        return f"{key} is empty; it needs at least {error.validator_value}"
    if rule == "uniqueItems":
        twice = next(item for item in value if value.count(item) > 1)
        return f"{key} = {_short(value)} has {_short(twice)} more than once"
    if isinstance(value, str) and schema.get("type") in ("number", "integer") and (number := _number_meant(value)):
        return f"{key} = {value!r} is a string to YAML, not a number; write {number}; it must be {_expected(schema)}"
    return f"{key or 'the configuration'} = {_short(value)} must be {_expected(schema)}"


def _expected(schema: Mapping[str, Any]) -> str:
    """:return: what a schema without parts asks for, in words"""
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if "pattern" in schema:
        if "a-z" in schema["pattern"]:
            return f"a name of small letters, digits and _, at most {schema['maxLength']} of them, a letter first"
        return f"text without control characters, at most {schema['maxLength']} long"
    nouns = {
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
        "object": "a block of keys",
        "array": "a list",
        "string": "a word or a line of text",
    }
    bounds = (
        ("minimum", "of at least {}"),
        ("exclusiveMinimum", "above {}"),
        ("maximum", "at most {}"),
        ("exclusiveMaximum", "below {}"),
        ("multipleOf", "a multiple of {}"),
        ("minLength", "at least {} long"),
        ("maxLength", "at most {} long"),
        ("minItems", "of at least {} entries"),
        ("maxItems", "of at most {} entries"),
    )
    if "minItems" in schema and schema.get("minItems") == schema.get("maxItems"):
        return f"a list of {schema['minItems']} entries"
    said = [text.format(schema[bound]) for bound, text in bounds if bound in schema]
    return " ".join([nouns.get(str(schema.get("type")), "as the schema says"), " and ".join(said)]).strip()


def _number_meant(text: str) -> str | None:
    """:return: how to write in YAML the number that ``text`` looks like"""
    if len(text) > 40 or not re.fullmatch(r"\s*[-+]?(\d+(_\d+)*\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", text):
        return None
    written = repr(float(text))
    mantissa, e, exponent = written.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"


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
            _one_of(f"{_dotted(key)}.dataset", block["dataset"], config["datasets"])
            training = _training(config, name, variant)
            hint = f" (in what {_dotted(key)} is after merging; a block whose kind changes is replaced as a whole)"
            _check_schema(training, training_validator, (*key, "training"), hint)
            _check_run(_dotted(key), config["datasets"][block["dataset"]], block["orbit"], training)


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
    _one_of(f"{key}.experiment", experiment, config["experiments"])
    _one_of(f"{key}.variant", variant, config["experiments"][experiment]["variants"])
    seeds = config["experiments"][experiment]["seeds"]
    if seed not in seeds:
        raise ConfigError(f"{key}.seed = {seed} must be one of the seeds of {experiment}, {seeds}")
    return run_spec(config, Run(experiment, variant, seed))


def _at_most_test(key: str, value: int, spec: Mapping[str, Any]) -> None:
    test = spec["dataset"].get("test")
    if test is not None and value > test:
        raise ConfigError(f"{key} = {value} must be at most {test}, the test images of {spec['dataset']['name']}")


def _training(config: Mapping[str, Any], experiment: str, variant: str) -> dict[str, Any]:
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


def _one_of(key: str, value: Any, allowed: Mapping[str, Any]) -> None:
    if value not in allowed:
        close = get_close_matches(_short(value).strip("'"), list(allowed), n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        raise ConfigError(f"{key} = {_short(value)} must be one of {', '.join(allowed)}{meant}")


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not write out integers of thousands of digits
        text = f"a number of {value.bit_length()} bits"
    return text if len(text) <= 80 else text[:77] + "…"


def _short_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:299] + "…"


def _dotted(parts: Any) -> str:
    """:return: the keys to a value, each as it stands if it is printable and short"""
    return ".".join(_readable(str(part)) for part in parts if part != "")


def _readable(key: str) -> str:
    return key if key.isprintable() and len(key) <= 400 else _short(key)
