"""Whole configurations: a file, over the one that it is based on, and the runs that they define."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from orbitgp_paper.config.places import Paths, Run
from orbitgp_paper.spec import (
    Block,
    Count,
    Dataset,
    Distinct,
    Draws,
    Name,
    Orbit,
    Positive,
    RunSpec,
    Seed,
    Text,
    Training,
    merge,
)
from orbitgp_paper.yaml_files import ConfigError, one_of, read_yaml, validate

Points = Annotated[int, Field(ge=1, le=1000)]
Even = Annotated[int, Field(ge=2, le=1024, multiple_of=2)]

NOT_TIERS = ("claims", "paper_values")  # what else lies in the folder of configurations

#: folders and tables that are no training experiment's
RESERVED = (
    *("toy", "toy_halves", "toy_bounds", "toy_draws", "toy_rates", "samples", "insensitivity", "estimators", "costs"),
    *("monitor", "runs", "claims"),
)

CLASSES = {"mnist": 10, "rotated": 10, "parity": 2}

#: the kinds of blocks that a file leaves out
KINDS = {"likelihood": {"kind": "gaussian"}, "scheme": {"kind": "groups"}, "optimiser": {"kind": "natural"}}


class _Patch(Block):
    model_config = ConfigDict(use_attribute_docstrings=False)  # a made class has no source to look for them in


def _patch(name: str, *blocks: type[BaseModel]) -> type[BaseModel]:
    """A model with the keys of all these blocks, each of which may be left out; null stands for the default."""
    fields: dict[str, Any] = {}
    for key in dict.fromkeys(key for block in blocks for key in block.model_fields):
        found = [block.model_fields[key] for block in blocks if key in block.model_fields]
        inner = [part for field in found for part in (get_args(field.annotation) or (field.annotation,))]
        if all(isinstance(part, type) and issubclass(part, BaseModel) for part in inner):
            kind: Any = _patch(f"{name}{key.title()}", *inner)
        elif key == "kind":
            kind = Literal[tuple(inner)]
        else:
            kind = found[0].annotation
            for constraint in found[0].metadata:
                kind = Annotated[kind, constraint]
        fields[key] = (kind | None, Field(None, description=found[0].description))
    return create_model(name, __base__=_Patch, __doc__=f"Part of: {blocks[0].__doc__}", **fields)


if TYPE_CHECKING:
    TrainingPatch = Block
else:
    TrainingPatch = _patch("Patch", Training)


class Variant(Block):
    """One model of an experiment."""

    dataset: str = Field(description="Key of the data set.")
    orbit: Orbit
    label: Text = Field(description="What it is called in figures and tables.")
    training: TrainingPatch = Field(TrainingPatch(), description="What differs from the experiment's training.")


class Experiment(Block):
    """Models that are compared."""

    seeds: Distinct[Seed] = Field(min_length=1, max_length=1000, description="Seeds that each variant is trained from.")
    training: TrainingPatch = Field(TrainingPatch(), description="What differs from the file's training.")
    variants: dict[Name, Variant] = Field(min_length=1, description="The models, by name.")


class Toy(Block):
    """Fig. 2: a symmetric function of two variables."""

    seed: Seed = 0
    train: int = Field(40, ge=4, le=1000, description="Number of training points.")
    inducing: Distinct[Points] = Field(min_length=1, description="Numbers of inducing points for the bound.")


class ToyDraws(Block):
    """Fig. 2 repeated over many draws of function and points."""

    seed: Seed = Field(0, description="Seed of the first draw, which is the figure's; later draws have the next seeds.")
    train: int = Field(40, ge=4, le=1000, description="Number of training points.")
    draws: int = Field(200, ge=1, le=100_000, description="Number of draws.")


class Samples(Block):
    """Fig. 1: digits moved along the orbit that a run has learned."""

    experiment: Name
    variant: Name
    seed: Seed = 0
    digits: int = Field(4, ge=1, le=100, description="Number of test digits.")
    draws: int = Field(12, ge=1, le=1000, description="Number of draws of each digit.")

    @property
    def run(self) -> Run:
        """The run whose orbit is drawn from."""
        return Run(self.experiment, self.variant, self.seed)


class Insensitivity(Block):
    """Appendix A: how often trained models deviate under their own orbit."""

    experiment: Name
    variants: Distinct[Name] = Field(min_length=1, description="Names of its variants.")
    seed: Seed = 0
    images: Count = Field(1000, description="Number of test images.")
    draws: Draws = Field(32, description="Points of the orbit at which f is compared with f at the image.")
    samples: Draws = Field(128, multiple_of=2, description="Draws of each prediction, in two independent sets.")
    thresholds: Distinct[Positive] = Field(min_length=1, description="Deviations whose probability is measured.")

    def run(self, variant: str) -> Run:
        """The run of one of the variants."""
        return Run(self.experiment, variant, self.seed)


class Estimators(Block):
    """Appendix B: bias and spread of the estimators of the bound's terms."""

    samples: Distinct[Even] = Field(min_length=1, description="Numbers of draws; groups have half of them each.")
    repeats: int = Field(2000, ge=2, le=1_000_000, description="Repeats of each estimate.")
    images: int = Field(50, ge=1, le=10_000, description="Number of images.")
    inducing: int = Field(100, ge=1, le=10_000, description="Number of inducing points.")
    order: int = Field(64, ge=2, le=1024, description="Number of rotations in the orbit.")
    seed: Seed = 0


class Costs(Block):
    """Sections 4.3 and B.2.1: numbers of kernel evaluations."""

    sizes: Distinct[Draws] = Field(min_length=2, description="Numbers of rotations in the orbit, and of draws from it.")
    images: int = Field(20, ge=1, le=10_000, description="Number of images.")
    inducing: int = Field(50, ge=1, le=10_000, description="Number of inducing points.")


def _named(datasets: Any) -> Any:
    """Gives each data set its key as its name."""
    if not isinstance(datasets, Mapping):
        return datasets
    return {key: {**block, "name": key} if isinstance(block, Mapping) else block for key, block in datasets.items()}


Named = Annotated[dict[Name, Dataset], BeforeValidator(_named)]


class Config(Block):
    """A whole configuration: data sets, the experiments on them, and what else is measured."""

    tier: Name = Field(description="The name of the file, and of the folder of results.")
    title: str = Field("", max_length=200, description="Title of the page of results.")
    about: str = Field("", max_length=2000, description="What the results can and cannot show, for their page.")
    base: Name | None = Field(None, description="Another file here that this one changes; null removes a key.")
    runs: Literal["archive", "build"] = Field("build", description="Runs are read from the results, or trained.")
    datasets: Named = Field(min_length=1, description="Data sets by name.")
    training: TrainingPatch = Field(TrainingPatch(), description="Settings of every run that says nothing else.")
    experiments: dict[Name, Experiment] = Field(default_factory=dict, description="Experiments by name.")
    claims: Text | None = Field(None, description="File of claims that the results are judged by; none if null.")
    toy: Toy | None = None
    toy_draws: ToyDraws | None = None
    samples: Samples | None = None
    insensitivity: Insensitivity | None = None
    estimators: Estimators | None = None
    costs: Costs | None = None

    def all_runs(self) -> list[Run]:
        """Every training, in the order of the file."""
        return [
            Run(name, variant, seed)
            for name, experiment in self.experiments.items()
            for variant in experiment.variants
            for seed in experiment.seeds
        ]

    def paths(self, runs: str | None = None) -> Paths:
        """
        :param runs: ``"archive"`` or ``"build"``, if another mode than the file's own is wanted. Its results lie in
            a folder of their own, so that trainings never touch those that came with the repository.
        :return: where everything lies, below ``results`` or the folder that the variable ORBITGP_RESULTS names.
        """
        folder = self.tier if runs in (None, self.runs) else f"{self.tier}_{runs}"
        return Paths(Path(os.environ.get("ORBITGP_RESULTS") or "results") / folder)

    def dataset(self, name: str) -> Dataset:
        """A data set by its key."""
        one_of("dataset", name, self.datasets)
        return self.datasets[name]

    def spec(self, run: Run) -> RunSpec:
        """
        :return: everything that decides the result of a run, with all defaults filled in. Keys that the run does not
            use are left out, so that changing them touches no run that does not care.
        """
        one_of("experiment", run.experiment, self.experiments)
        experiment = self.experiments[run.experiment]
        one_of(f"experiments.{run.experiment}.variant", run.variant, experiment.variants)
        one_of(f"experiments.{run.experiment}.seed", str(run.seed), map(str, experiment.seeds))
        variant = experiment.variants[run.variant]
        key = f"experiments.{run.experiment}.variants.{run.variant}"
        one_of(f"{key}.dataset", variant.dataset, self.datasets)
        training: dict[str, Any] = KINDS
        for patch in (self.training, experiment.training, variant.training):
            training = merge(training, patch.model_dump(exclude_unset=True))
        if variant.orbit.kind == "identity" and "scheme" not in variant.training.model_fields_set:
            training["scheme"] = {"kind": "full"}  # there is nothing to draw
        optimiser = training.get("optimiser", {})  # there is none where the file says null; validation names it
        unused = "variational" if optimiser.get("kind") == "natural" else "natural"
        optimiser.pop(unused, None)
        optimiser.get("rates", {}).pop(unused, None)
        if training.get("components"):  # which have numbers of their own
            training.get("inducing", {}).pop("count", None)
        identity = {"experiment": run.experiment, "variant": run.variant, "label": variant.label, "seed": run.seed}
        blocks = {"dataset": self.datasets[variant.dataset].model_dump(), "orbit": variant.orbit.model_dump()}
        try:
            return validate(RunSpec, identity | blocks | training)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None

    def check(self) -> None:
        """Checks that the blocks fit together; raises :class:`ConfigError`."""
        for run in self.all_runs():
            if run.experiment in RESERVED:
                raise ConfigError(f"experiments.{run.experiment} has a reserved name: {', '.join(RESERVED)}")
            self.spec(run)
        if self.samples:
            self._check_images("samples", self.samples.run, "digits", self.samples.digits)
        if block := self.insensitivity:
            for variant in block.variants:
                self._check_images("insensitivity", block.run(variant), "images", block.images, each_class=True)
        if self.estimators and max(self.estimators.samples) > self.estimators.order:
            raise ConfigError(
                f"estimators.samples = {list(self.estimators.samples)} must be at most estimators.order = "
                f"{self.estimators.order}, since they are drawn without replacement too"
            )

    def _check_images(self, key: str, run: Run, count: str, value: int, each_class: bool = False) -> None:
        """Checks that a run, which another block names, has as many test images as the block needs."""
        try:
            data = self.spec(run).dataset
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None
        least = CLASSES.get(data.kind, 1) if each_class else 1
        most = getattr(data, "test", None)
        if value < least or (most is not None and value > most):
            raise ConfigError(
                f"{key}.{count} = {value} must be at least {least} (one of each class) and at most {most}, the test "
                f"images of {data.name}"
            )


def load(tier: str, folder: Path = Path("config")) -> Config:
    """
    :param tier: ``smoke``, ``quick``, ``paper`` or the stem of another file in ``folder``.
    :return: the file's content, over that of its ``base``, checked.
    """
    return parse(_read(tier, Path(folder), ()), Path(folder) / f"{tier}.yaml")


def parse(content: Any, source: str | Path) -> Config:
    """
    :param content: a whole configuration as plain values.
    :param source: what to call it in errors; if it is a file, its stem must be the tier.
    """
    try:
        config = validate(Config, content)
        if Path(source).suffix == ".yaml" and Path(source).stem != config.tier:
            raise ConfigError(f"tier = {config.tier!r} must be {Path(source).stem!r}, the file's name")
        config.check()
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    return config


def json_schema() -> dict[str, Any]:
    """The JSON schema of a configuration, for editors. A file with a ``base`` need not have any other block."""
    schema = Config.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "required": ["tier"]}


def _read(tier: str, folder: Path, above: tuple[str, ...]) -> Any:
    """:return: the content of a file, over that of its base; ``above`` are the files that are based on it."""
    there = sorted(file.stem for file in folder.glob("*.yaml") if file.stem not in NOT_TIERS)
    what = f"{folder / above[-1]}.yaml: base" if above else "tier"
    if tier not in there:
        raise ConfigError(f"{what} is {tier!r}; {folder} has {', '.join(there) or 'no configuration'}")
    if tier in above:
        raise ConfigError(f"{what} is {tier!r}, which is based on this file: {' → '.join((*above, tier))}")
    content = read_yaml(folder / f"{tier}.yaml")
    base = content.get("base") if isinstance(content, dict) else None
    return content if base is None else merge(_read(base, folder, (*above, tier)), content)
