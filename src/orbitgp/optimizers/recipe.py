"""Settings of a training: kind and number of steps, batches and learning rates. Loads no TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orbitgp import checks

KINDS = ("natural", "adam")
BATCHES = ("drawn", "shuffled", "hard")
INDUCING_SCALES = ("element", "row")
NATURAL_SCALES = ("ceiling", "precision")


@dataclass(frozen=True)
class NaturalRate:
    """ρ of the natural steps: from ``first`` to ``last`` by the same factor in every step."""

    first: float = 0.3
    last: float = 0.01
    scale: str = "ceiling"  #: what scales the mean's step, see :class:`orbitgp.optimizers.natural.NaturalPosterior`

    def __post_init__(self) -> None:
        checks.number("natural.first", self.first, least=1e-9, most=1.0)
        checks.number("natural.last", self.last, least=1e-9, most=self.first)
        checks.one_of("natural.scale", self.scale, NATURAL_SCALES)


@dataclass(frozen=True)
class Recipe:
    """
    The settings of a training; the default rates are for some 12,000 steps on all of MNIST.

    ``kind``: ``"natural"``, conjugate natural steps for q and Adam for the rest, or ``"adam"`` for everything.
    ``rates``: Adam's peak rate for each group of parameters: inducing, kernel, likelihood, orbit, and for ``"adam"``
    also variational. They rise linearly over the first ``warmup`` of the steps, then fall as half a cosine to ``floor``
    of the peak. ``batches``: rows ``"drawn"`` at random, ``"shuffled"`` anew in each epoch, or ``"hard"``: more of
    those that the model gets wrong (importance-sampled, :class:`orbitgp.optimizers.batches.HardBatches`).
    ``inducing_scale``: whether Adam has a step scale for each ``"element"`` of Z, or for each ``"row"``, a point.
    """

    kind: str = "natural"
    steps: int = 12_000
    batch: int = 2_000
    batches: str = "drawn"
    rates: Mapping[str, float] = field(
        default_factory=lambda: {"inducing": 0.004, "kernel": 0.006, "likelihood": 0.006, "orbit": 0.002}
    )
    inducing_scale: str = "element"
    natural: NaturalRate = NaturalRate()
    warmup: float = 0.02
    floor: float = 0.01

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        checks.integer("steps", self.steps, least=1)
        checks.integer("batch", self.batch, least=1)
        checks.one_of("batches", self.batches, BATCHES)
        checks.one_of("inducing_scale", self.inducing_scale, INDUCING_SCALES)
        checks.number("warmup", self.warmup, least=0.0, most=0.99)
        checks.number("floor", self.floor, least=0.0, most=1.0)
        needed = {"inducing", "kernel", "likelihood", "orbit"} | ({"variational"} if self.kind == "adam" else set())
        if set(self.rates) != needed:
            raise ValueError(f"rates must be set for {', '.join(sorted(needed))}, got {', '.join(sorted(self.rates))}")
        for name, rate in self.rates.items():
            checks.number(f"rates[{name!r}]", rate, least=0.0)
