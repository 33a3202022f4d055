"""What an estimator chooses from the data: sizes, and the rates that go with the number of steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from orbitgp import checks
from orbitgp.optimizers.recipe import NaturalRate, Recipe


@dataclass(frozen=True)
class Sizes:
    """Sizes of a model and its training."""

    inducing: int  #: M, number of inducing points
    draws: int  #: draws from the orbit for each image of a batch, in two groups
    batch: int  #: images in a step
    steps: int  #: training steps

    def __str__(self) -> str:
        return f"{self.inducing} inducing points, {self.steps:,} steps of {self.batch} images with {self.draws} draws"


#: for two cores, and for a GPU: as in the quick and the paper's size of the reproduction
ON_CPU = Sizes(inducing=150, draws=8, batch=200, steps=300)
ON_GPU = Sizes(inducing=750, draws=16, batch=2000, steps=9000)


def choose(count: int, distinct: int, gpu: bool, **given: int | None) -> Sizes:
    """
    :param count: N, the number of training images.
    :param distinct: how many of them differ; inducing points must.
    :param gpu: whether there is a GPU.
    :param given: the sizes that the user has set; None for the others.
    """
    sizes = ON_GPU if gpu else ON_CPU
    sizes = replace(sizes, inducing=min(sizes.inducing, distinct), batch=min(sizes.batch, count))
    wanted = {name: checks.integer(name, value, least=1) for name, value in given.items() if value is not None}
    sizes = replace(sizes, **wanted)
    if sizes.draws < 4 or sizes.draws % 2:
        raise ValueError(f"draws must be even and at least 4, for two groups, got {sizes.draws}")
    if sizes.inducing > count:
        raise ValueError(f"inducing = {sizes.inducing} must be at most {count}, the images to train on")
    return replace(sizes, batch=min(sizes.batch, count))


@dataclass(frozen=True)
class Anchor:
    """Rates that were tried at a number of steps."""

    steps: int
    rates: Mapping[str, float]
    natural: tuple[float, float]


#: by likelihood: a short training and a long one
ANCHORS = {
    "gaussian": (
        Anchor(300, {"inducing": 0.02, "kernel": 0.04, "likelihood": 0.04, "orbit": 0.02}, (0.5, 0.05)),
        Anchor(9000, {"inducing": 0.006, "kernel": 0.006, "likelihood": 0.006, "orbit": 0.002}, (0.3, 0.01)),
    ),
    "logistic": (
        Anchor(300, {"inducing": 0.02, "kernel": 0.04, "likelihood": 0.01, "orbit": 0.04}, (0.5, 0.05)),
        Anchor(7500, {"inducing": 0.007, "kernel": 0.15, "likelihood": 0.003, "orbit": 0.03}, (0.3, 0.01)),
    ),
}


def recipe(likelihood: str, sizes: Sizes) -> Recipe:
    """Rates between those of the two anchors, geometrically in the number of steps; beyond them, the nearer one's."""
    short, long = ANCHORS[likelihood]
    share = min(max(math.log(sizes.steps / short.steps) / math.log(long.steps / short.steps), 0.0), 1.0)

    def between(first: float, second: float) -> float:
        return first ** (1 - share) * second**share

    settings: dict[str, Any] = {
        "rates": {name: between(rate, long.rates[name]) for name, rate in short.rates.items()},
        "natural": NaturalRate(
            first=between(short.natural[0], long.natural[0]), last=between(short.natural[1], long.natural[1])
        ),
    }
    # hard batches need passes over all images, which are expensive where steps are few
    batches = "hard" if sizes.steps >= 1000 else "drawn"
    return Recipe(steps=sizes.steps, batch=sizes.batch, batches=batches, inducing_scale="row", **settings)
