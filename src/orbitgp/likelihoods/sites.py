"""
Bounds made of sites: where E log p(y | f) is linear in μ, μ² and σ², unbiased estimates of these make it unbiased.

A likelihood takes part by registering its sites with :data:`sites_of`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.likelihoods import Gaussian, Likelihood
from gpflow.utilities import Dispatcher

#: (likelihood, batch, a function that returns :class:`Moments` from independent draws) → :class:`Sites`
sites_of = Dispatcher("sites_of")


@dataclass(frozen=True)
class Moments:
    """Unbiased estimates of the moments of q(f) = N(μ, σ²), for each input and output."""

    mean: tf.Tensor  #: [N, P], of μ
    mean_square: tf.Tensor  #: [N, P], of μ²; not the square of ``mean``
    variance: tf.Tensor  #: [N, P] or, if all outputs share it, [N, 1], of σ²

    @property
    def second(self) -> tf.Tensor:
        """[N, P], of E f² = μ² + σ²"""
        return self.mean_square + self.variance

    @property
    def of_one_gaussian(self) -> Moments:
        """
        With the square of ``mean`` as ``mean_square`` and no variance below zero: biased, but a Gaussian has such
        moments. The unbiased ones can have E f² < (E f)², and what follows from both for a Gaussian is then far off.
        """
        return Moments(self.mean, tf.square(self.mean), tf.maximum(self.variance, 0.0))

    def shifted(self, by: tf.Tensor) -> Moments:
        """
        :param by: [N, P] or [N, 1], known numbers m.
        :return: the moments of f + m.
        """
        square = self.mean_square + 2 * by * self.mean + tf.square(by)
        return Moments(self.mean + by, square, self.variance)


@dataclass(frozen=True)
class Batch:
    """A batch of the data, as likelihoods see it."""

    X: tf.Tensor  #: [N, D], inputs
    Y: tf.Tensor  #: [N, P], targets
    index: tf.Tensor | None = None  #: [N], the rows' numbers in the whole data
    weight: tf.Tensor | None = None  #: [N], how many times each row counts; once, if None


class Sites(NamedTuple):
    """log p(y | f), or a lower bound to it, as linear · f − ½ precision · f² + constant for each input and output."""

    linear: tf.Tensor  #: [N, P]
    precision: tf.Tensor  #: [N, P], or [N, 1] where all outputs have the same
    constant: tf.Tensor  #: [N, P]

    def expectation(self, mean: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
        """
        :param mean: [N, P] μ
        :param second: [N, P] μ² + σ²
        :return: [N, P], the expectation under f ~ N(μ, σ²).
        """
        return self.linear * mean - 0.5 * self.precision * second + self.constant

    def of_remainder(self, known: tf.Tensor) -> Sites:
        """
        :param known: [N, P] or [N, 1], the known part m of f = m + h.
        :return: the same function, in terms of h.
        """
        linear = self.linear - self.precision * known
        return Sites(linear, self.precision, self.constant + known * (self.linear - 0.5 * self.precision * known))


def gaussian_sites(target: tf.Tensor, noise: tf.Tensor) -> Sites:
    """
    Sites of log N(y; f, s²), which are exact.

    :param target: [N, P] y
    :param noise: [N, P] or [N, 1] s²
    """
    return Sites(target / noise, 1 / noise, -0.5 * (tf.math.log(2 * np.pi * noise) + tf.square(target) / noise))


def quadratic_sites(likelihood: Likelihood, batch: Batch, independent: Callable[[], Moments]) -> Sites:
    """
    The sites of a batch, each row's multiplied by its weight.

    :param independent: returns estimates of the moments of q(f) from independent draws, for likelihoods that need them.
    """
    sites = sites_of(likelihood, batch, independent)
    if batch.weight is None:
        return sites
    return Sites(*(batch.weight[:, None] * term for term in sites))


def expected_log_density(
    likelihood: Likelihood, batch: Batch, moments: Moments, independent: Callable[[], Moments]
) -> tf.Tensor:
    """
    :param moments: unbiased estimates of the moments of q(f).
    :param independent: returns such estimates from other draws, independent of ``moments``.
    :return: [N], an unbiased estimate of E_q log p(y | f), or of a lower bound to it, summed over outputs, times the
        row's weight.
    """
    sites = quadratic_sites(likelihood, batch, independent)
    return tf.reduce_sum(sites.expectation(moments.mean, moments.second), axis=-1)


@check_shapes("X: [N, D]", "F: [N, P]", "Y: [N, P]", "return: [N]")
def slope(likelihood: Likelihood, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
    """
    ‖∂ log p(y | f) / ∂f‖: how hard a datum pulls at f. It is σ(−y f) for the logistic likelihood, and ‖y − f‖ divided
    by the noise variance for the Gaussian.
    """
    F = tf.convert_to_tensor(F)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(F)
        density = likelihood.log_prob(X, F, Y)
    return tf.norm(tape.gradient(density, F), axis=-1)


@sites_of.register(Likelihood, object, object)
def _no_sites(likelihood: Likelihood, batch: Batch, independent: Callable[[], Moments]) -> Sites:
    raise TypeError(
        f"the bound of {type(likelihood).__name__} is not linear in the moments of q(f), so draws from the orbit "
        "would bias it; use gpflow.likelihoods.Gaussian or one of orbitgp.likelihoods"
    )


@sites_of.register(Gaussian, object, object)
def _gaussian_sites(likelihood: Gaussian, batch: Batch, independent: Callable[[], Moments]) -> Sites:
    """log N(y; f, s²) itself, with a noise variance s² that may depend on x."""
    return gaussian_sites(batch.Y, likelihood.variance_at(tf.cast(batch.X, batch.Y.dtype)))
