"""How a model draws from its orbit, and which weights make its estimates unbiased."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType

from orbitgp import checks
from orbitgp.estimators import PairWeights, all_pairs, distinct_pairs, independent_pairs
from orbitgp.orbits import SAMPLERS, FiniteOrbit, Orbit


class Scheme(abc.ABC):
    """A way to draw transformed inputs in groups, with the weights for pairs of groups."""

    @abc.abstractmethod
    def draw(self, orbit: Orbit, X: TensorType, seed: TensorType) -> tf.Tensor:
        """
        :param X: [N, D]
        :param seed: [2] integers.
        :return: [N, groups, size, D]
        """

    @property
    @abc.abstractmethod
    def group_count(self) -> int:
        """How many groups :meth:`draw` makes."""

    @abc.abstractmethod
    def weights(self, orbit: Orbit) -> PairWeights:
        """The weights of pairs of groups as :meth:`draw` makes them."""

    @abc.abstractmethod
    def check(self, orbit: Orbit) -> None:
        """Raises an error if the scheme cannot draw from this orbit."""

    @abc.abstractmethod
    @check_shapes("X: [N, D]", "return: [N, S, D]")
    def draw_for_prediction(self, orbit: Orbit, X: TensorType, samples: int, seed: TensorType) -> tf.Tensor:
        """
        :param samples: how many draws, where the orbit cannot be listed.
        :return: [N, S, D], one set of points whose plain average stands for the orbit's.
        """


@dataclass(frozen=True)
class Groups(Scheme):
    """
    ``groups`` independent groups of ``size`` draws.

    ``Groups(2, 16)`` is a good start: averaging inside the groups first makes the solves and products with the
    variational covariance cost two columns an image instead of 32, and a Sobol set has far less variance.
    """

    groups: int = 2
    size: int = 8
    sampler: str = "sobol"

    def __post_init__(self) -> None:
        checks.integer("groups", self.groups, least=2)
        checks.integer("size", self.size, least=1)
        checks.one_of("sampler", self.sampler, SAMPLERS)

    def draw(self, orbit: Orbit, X: TensorType, seed: TensorType) -> tf.Tensor:
        """Independent groups."""
        return orbit.sample(X, self.groups, self.size, seed, self.sampler)

    @property
    def group_count(self) -> int:
        """As asked for."""
        return self.groups

    def weights(self, orbit: Orbit) -> PairWeights:
        """Pairs of different groups only."""
        return independent_pairs(self.groups)

    def check(self, orbit: Orbit) -> None:
        """Any orbit can be drawn from."""

    def draw_for_prediction(self, orbit: Orbit, X: TensorType, samples: int, seed: TensorType) -> tf.Tensor:
        """One group of ``samples``."""
        checks.integer("samples", samples, least=1)
        return orbit.sample(X, 1, samples, seed, self.sampler)[:, 0]


def paper_scheme(samples: int) -> Groups:
    """
    The paper's estimator: S independent draws, each a group of its own, all pairs s ≠ s'.

    :param samples: S.
    """
    checks.integer("samples", samples, least=2)
    return Groups(groups=samples, size=1, sampler="iid")


@dataclass(frozen=True)
class FullOrbit(Scheme):
    """Every point of a finite orbit: no sampling, the exact kernel and the exact bound."""

    def draw(self, orbit: Orbit, X: TensorType, seed: TensorType) -> tf.Tensor:
        """One group, which is the whole orbit."""
        return orbit.full(X)[:, None]

    @property
    def group_count(self) -> int:
        """One, of all points."""
        return 1

    def weights(self, orbit: Orbit) -> PairWeights:
        """The one group with itself."""
        return all_pairs(1)

    def check(self, orbit: Orbit) -> None:
        """Only a finite orbit can be listed."""
        _require_finite(self, orbit)

    def draw_for_prediction(self, orbit: Orbit, X: TensorType, samples: int, seed: TensorType) -> tf.Tensor:
        """The whole orbit, whatever ``samples`` says."""
        return orbit.full(X)


@dataclass(frozen=True)
class WithoutReplacement(Scheme):
    """``count`` distinct points of a finite orbit, drawn anew for each input (appendix B.1)."""

    count: int

    def __post_init__(self) -> None:
        checks.integer("count", self.count, least=1)

    def draw(self, orbit: Orbit, X: TensorType, seed: TensorType) -> tf.Tensor:
        """Groups of one point each."""
        return orbit.sample_without_replacement(X, self.count, seed)[:, :, None]

    @property
    def group_count(self) -> int:
        """One for each point."""
        return self.count

    def weights(self, orbit: Orbit) -> PairWeights:
        """Corrects for the pairs that drawing without replacement never makes."""
        return distinct_pairs(orbit.order, self.count)

    def check(self, orbit: Orbit) -> None:
        """Needs a finite orbit of at least ``count`` points."""
        _require_finite(self, orbit)
        distinct_pairs(orbit.order, self.count)

    def draw_for_prediction(self, orbit: Orbit, X: TensorType, samples: int, seed: TensorType) -> tf.Tensor:
        """The whole orbit: where it can be listed, a prediction need not guess."""
        return orbit.full(X)


def _require_finite(scheme: Scheme, orbit: Orbit) -> None:
    if not isinstance(orbit, FiniteOrbit):
        raise TypeError(
            f"{type(scheme).__name__} needs a finite orbit, {type(orbit).__name__} is not; use Groups(…) instead"
        )
