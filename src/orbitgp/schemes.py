r"""
How a model draws from its orbit, and the weights that make its estimates unbiased.

Every term of the bound is linear in quantities of the form :math:`I = E_a E_{a'} r(x_a, x_a')` with a and a'
independent: μ², ‖φ̄‖², ‖Tᵀφ̄‖² and k_ff. From values :math:`v_g`, each the average over a group of draws,

.. math:: \hat I = \sum_{g, g'} w_{gg'} \, v_g v_{g'}

is unbiased if only independent pairs have weight, or if the weights correct for dependence. There are only two
different weights: one for a group with itself and one for two different groups.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType

from orbitgp import checks
from orbitgp.orbits import SAMPLERS, FiniteOrbit, Orbit


@dataclass(frozen=True)
class PairWeights:
    """Weights of a group with itself, w_gg (``same``), and of two groups, w_gg' for g ≠ g' (``different``)."""

    same: float
    different: float


def independent_pairs(groups: int) -> PairWeights:
    """
    G independent groups: pairs of different groups only, each 1/(G(G−1)). With groups of one draw this is the
    paper's estimator; with larger ones the draws inside a group may depend on each other in any way.
    """
    checks.integer("groups", groups, least=2)
    return PairWeights(same=0.0, different=1.0 / (groups * (groups - 1)))


def distinct_pairs(order: int, count: int) -> PairWeights:
    """
    Weights for M = ``count`` distinct points of an orbit of P = ``order``: P(P−1)/(M(M−1)) and, on the diagonal, P/M
    (appendix B.1), both divided by P², since f is a mean here and not a sum.
    """
    checks.integer("order", order, least=1)
    checks.integer("count", count, least=min(2, order), most=order)
    if order == 1:
        return PairWeights(same=1.0, different=0.0)
    return PairWeights(same=1 / (order * count), different=(order - 1) / (order * count * (count - 1)))


def all_pairs(groups: int) -> PairWeights:
    """Equal weights 1/G²: right if the groups together are the whole orbit, each point once."""
    checks.integer("groups", groups, least=1)
    return PairWeights(same=1.0 / groups**2, different=1.0 / groups**2)


@check_shapes("values: [N, G, K]", "return: [N, K]")
def average(values: TensorType) -> tf.Tensor:
    """The mean over groups: an unbiased estimate of E_a v(x_a), [N, G, K] → [N, K]."""
    return tf.reduce_mean(values, axis=1)


@check_shapes("values: [N, G, K]", "return: [N, K]")
def square_of_average(values: TensorType, weights: PairWeights) -> tf.Tensor:
    """
    Estimates (E_a v(x_a))² for each column: w_different (Σ_g v_g)² + (w_same − w_different) Σ_g v_g².

    The estimate can be negative. It enters the bound linearly, so clipping it would bias the bound.

    :param values: [N, G, K] averages over each group.
    :return: [N, K]
    """
    values = tf.convert_to_tensor(values)
    across = weights.different * tf.square(tf.reduce_sum(values, axis=1))
    return across + (weights.same - weights.different) * tf.reduce_sum(tf.square(values), axis=1)


@check_shapes("values: [N, G, K]", "return: [N]")
def square_norm_of_average(values: TensorType, weights: PairWeights) -> tf.Tensor:
    """Estimates ‖E_a v(x_a)‖², [N, G, K] → [N]."""
    return tf.reduce_sum(square_of_average(values, weights), axis=-1)


@check_shapes("values: [K, N, G]", "scale: [N, Q]", "return[0]: [Q, K, K]", "return[1]: [Q, K, K]")
def outer_of_average(values: TensorType, scale: TensorType, weights: PairWeights) -> tuple[tf.Tensor, tf.Tensor]:
    """
    Estimates Σ_n s_nq v̄_n v̄_nᵀ with v̄_n = E_a v(x_na), by Σ_n s_nq Σ_gg' w_gg' v_ng v_ng'ᵀ, for each of Q scales.

    :param values: [K, N, G] averages over each group.
    :param scale: [N, Q] s.
    :return: the estimates, [Q, K, K]; and their ceilings Σ_n s_nq (1/G) Σ_g v_ng v_ngᵀ, which pair each group with
        itself only: positive, never below the estimates, biased, and without a gradient.
    """
    values, scale = tf.convert_to_tensor(values), tf.convert_to_tensor(scale)

    @tf.custom_gradient
    def outer(values: tf.Tensor, scale: tf.Tensor) -> Any:
        K, groups, scales = values.shape[0], values.shape[2], tf.transpose(scale)  # [Q, N]
        total, own = tf.reduce_sum(values, axis=2), weights.same - weights.different

        def scaled(columns: tf.Tensor, scales: tf.Tensor) -> tf.Tensor:
            """One product for all scales, [K, L] and [Q, L] → [Q, K, K]."""
            tall = tf.reshape(scales[:, None] * columns, [-1, tf.shape(columns)[1]])
            return tf.reshape(tf.matmul(tall, columns, transpose_b=True), [-1, K, K])

        with_itself = scaled(tf.reshape(values, [K, -1]), tf.repeat(scales, groups, axis=1))
        across = scaled(total, scales)

        def gradient(upstream: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            # the results are symmetric: one product, of each v_g with the sum of its partners
            partners = tf.reshape(weights.different * total[:, :, None] + own * values, [K, -1])
            both = tf.reshape(upstream + tf.linalg.matrix_transpose(upstream), [-1, K])
            pull = tf.reshape(tf.matmul(both, partners), [-1, *tf.unstack(tf.shape(values))])  # [Q, K, N, G]
            by_scale = 0.5 * tf.reduce_sum(values * pull, axis=[1, 3])
            return tf.reduce_sum(scales[:, None, :, None] * pull, axis=0), tf.transpose(by_scale)

        return (weights.different * across + own * with_itself, with_itself / groups), gradient

    return outer(values, scale)


@check_shapes("Kaa: [N, S, S]", "return: [N]")
def variance_of_average(Kaa: TensorType, groups: int, weights: PairWeights) -> tf.Tensor:
    """
    Estimates k_ff(x, x) = E_a E_a' k_g(x_a, x_a') from the kernel between all draws of an input.

    :param Kaa: [N, S, S], S = groups · size, the draws of a group side by side.
    :return: [N]
    """
    Kaa = tf.convert_to_tensor(Kaa)
    checks.integer("groups", groups, least=1)
    if Kaa.shape[1] is not None and Kaa.shape[1] % groups:
        raise ValueError(f"groups must divide the {Kaa.shape[1]} draws, got {groups}")
    N, size = tf.shape(Kaa)[0], tf.shape(Kaa)[1] // groups
    blocks = tf.reduce_mean(tf.reshape(Kaa, [N, groups, size, groups, size]), axis=[2, 4])
    on_diagonal = tf.linalg.trace(blocks)
    across = weights.different * tf.reduce_sum(blocks, axis=[1, 2])
    return across + (weights.same - weights.different) * on_diagonal


class Scheme(abc.ABC):
    """A way to draw transformed inputs in groups, with the weights for pairs of groups."""

    @abc.abstractmethod
    def draw(self, orbit: Orbit, X: TensorType, seed: TensorType) -> tf.Tensor:
        """
        :param X: [N, D]
        :param seed: [2] integers.
        :return: [N, groups, size, E], transformed inputs.
        """

    @property
    @abc.abstractmethod
    def group_count(self) -> int:
        """Number of groups that :meth:`draw` makes."""

    @abc.abstractmethod
    def weights(self, orbit: Orbit) -> PairWeights:
        """The weights of pairs of groups as :meth:`draw` makes them."""

    @abc.abstractmethod
    def check(self, orbit: Orbit) -> None:
        """Raises an error if the scheme cannot draw from this orbit."""

    @abc.abstractmethod
    @check_shapes("X: [N, D]", "return: [N, S, E]")
    def draw_for_prediction(self, orbit: Orbit, X: TensorType, samples: int, seed: TensorType) -> tf.Tensor:
        """
        Transformed inputs whose plain average is that over the orbit, or an estimate of it. The transformations are the
        same at every input.

        :param samples: number of draws, unless the scheme lists the orbit.
        :return: [N, S, E]
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
    shared: bool = (
        False  #: the same draws for all inputs of a batch: as unbiased, but noise does not average out over inputs
    )

    def __post_init__(self) -> None:
        checks.integer("groups", self.groups, least=2)
        checks.integer("size", self.size, least=1)
        checks.one_of("sampler", self.sampler, SAMPLERS)

    def draw(self, orbit: Orbit, X: TensorType, seed: TensorType) -> tf.Tensor:
        """Independent groups."""
        return orbit.sample(X, self.groups, self.size, seed, self.sampler, shared=self.shared)

    @property
    def group_count(self) -> int:
        """Number of independent groups."""
        return self.groups

    def weights(self, orbit: Orbit) -> PairWeights:
        """Pairs of different groups only."""
        return independent_pairs(self.groups)

    def check(self, orbit: Orbit) -> None:
        """Accepts any orbit."""

    def draw_for_prediction(self, orbit: Orbit, X: TensorType, samples: int, seed: TensorType) -> tf.Tensor:
        """``samples`` draws by the scheme's sampler, made of the same uniforms at every input."""
        checks.integer("samples", samples, least=1)
        return orbit.sample(X, 1, samples, seed, self.sampler, shared=True)[:, 0]


def paper_scheme(samples: int, shared: bool = False) -> Groups:
    """
    The paper's estimator: S independent draws, each a group of its own, all pairs s ≠ s'.

    :param samples: S, the number of draws.
    :param shared: whether all inputs of a batch have the same draws, as in the authors' released code.
    """
    checks.integer("samples", samples, least=2)
    return Groups(groups=samples, size=1, sampler="iid", shared=shared)


@dataclass(frozen=True)
class FullOrbit(Scheme):
    """Every point of a finite orbit: no sampling, the exact kernel and the exact bound."""

    def draw(self, orbit: Orbit, X: TensorType, seed: TensorType) -> tf.Tensor:
        """One group, which is the whole orbit."""
        return orbit.full(X)[:, None]

    @property
    def group_count(self) -> int:
        """One group of all points."""
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
        """One group for each point."""
        return self.count

    def weights(self, orbit: Orbit) -> PairWeights:
        """Corrects for the pairs that drawing without replacement never makes."""
        return distinct_pairs(orbit.order, self.count)

    def check(self, orbit: Orbit) -> None:
        """Needs a finite orbit of at least ``count`` points."""
        _require_finite(self, orbit)
        distinct_pairs(orbit.order, self.count)

    def draw_for_prediction(self, orbit: Orbit, X: TensorType, samples: int, seed: TensorType) -> tf.Tensor:
        """The whole orbit, since it can be listed."""
        return orbit.full(X)


def _require_finite(scheme: Scheme, orbit: Orbit) -> None:
    if not isinstance(orbit, FiniteOrbit):
        raise TypeError(
            f"{type(scheme).__name__} needs a finite orbit, {type(orbit).__name__} is not; use Groups(…) instead"
        )
