"""The logistic likelihood of two classes, under the Pólya-Gamma bound."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.base import Module, TensorType
from gpflow.likelihoods import ScalarLikelihood
from gpflow.utilities import positive

from orbitgp import checks
from orbitgp.likelihoods.sites import Batch, Sites, sites_of


def polya_gamma_precision(tilt: tf.Tensor) -> tf.Tensor:
    """θ(c) = E ω = tanh(c/2)/(2c) for ω ~ PG(1, c), with its limit ¼ at c = 0."""
    small = tilt < 1e-3
    safe = tf.where(small, tf.ones_like(tilt), tilt)
    return tf.where(small, 0.25 - tf.square(tilt) / 48, tf.tanh(safe / 2) / (2 * safe))


def polya_gamma_sites(Y: tf.Tensor, tilt: tf.Tensor) -> Sites:
    """
    :param Y: [N, P] of −1 and +1.
    :param tilt: [N, P] c ≥ 0.
    """
    log_two_cosh = tilt / 2 + tf.math.log1p(tf.exp(-tilt))  # no overflow, however large c is
    return Sites(0.5 * Y, polya_gamma_precision(tilt), 0.25 * tilt * tf.tanh(tilt / 2) - log_two_cosh)


@check_shapes("Y: [N, P]", "mean: [N, P]", "second: [N, P]", "tilt: [N, P]", "return: [N, P]")
def polya_gamma_bound(Y: TensorType, mean: TensorType, second: TensorType, tilt: TensorType) -> tf.Tensor:
    """
    E log σ(y f) ≥ ½ y μ − ½ θ(c)(μ² + σ²) − log 2 − log cosh(c/2) + ¼ c tanh(c/2), tightest at c² = μ² + σ².

    :param Y: [N, P] of −1 and +1.
    :param mean: [N, P] μ
    :param second: [N, P] μ² + σ²
    :param tilt: [N, P] c ≥ 0, which must not depend on the draws behind ``mean`` and ``second``.
    :return: [N, P]
    """
    Y, mean, second, tilt = (tf.convert_to_tensor(tensor) for tensor in (Y, mean, second, tilt))
    return polya_gamma_sites(Y, tilt).expectation(mean, second)


class Tilt(Module, metaclass=abc.ABCMeta):
    """How c is chosen for each datum."""

    @abc.abstractmethod
    def __call__(self, batch: Batch, independent_second: Callable[[], tf.Tensor]) -> tf.Tensor:
        """
        :param independent_second: makes an estimate [N, P] of μ² + σ² from draws of its own.
        :return: [N, P], c ≥ 0
        """


class RecognitionNetwork(Tilt):
    """
    c(x, y), the paper's choice: layers of rectified linear units, with softplus at the end.

    What it must find is how large f is at each x. One narrow layer leaves a gap to the best c that is larger than what
    one angle of Fig. 3 has over another (``benchmarks/network.md``).
    """

    def __init__(
        self,
        input_dim: int,
        hidden: Sequence[int] = (64,),
        outputs: int = 1,
        seed: int = 0,
        name: str | None = None,
    ) -> None:
        """
        :param input_dim: D, the length of an input.
        :param hidden: widths of the hidden layers.
        :param outputs: P.
        :param seed: of the first weights.
        """
        super().__init__(name=name)
        rng = np.random.default_rng(checks.integer("seed", seed, least=0))
        widths = [
            checks.integer("input_dim", input_dim, least=1) + checks.integer("outputs", outputs, least=1),
            *(checks.integer(f"hidden[{i}]", width, least=1) for i, width in enumerate(hidden)),
            outputs,
        ]
        pairs = list(pairwise(widths))
        self.weights = [Parameter(rng.normal(size=pair) * np.sqrt(2 / pair[0])) for pair in pairs]  # as He et al. do
        self.offsets = [Parameter(np.zeros(width)) for _, width in pairs]
        self.offsets[-1].assign(np.full(outputs, np.log(np.e - 1)))  # c close to one: a prior of unit variance

    def __call__(self, batch: Batch, independent_second: Callable[[], tf.Tensor]) -> tf.Tensor:
        """The network's output; the estimate is not asked for."""
        values = tf.concat([tf.cast(batch.X, batch.Y.dtype), batch.Y], axis=-1)
        *inner, last = zip(self.weights, self.offsets, strict=True)
        for weights, offsets in inner:
            values = tf.nn.relu(values @ weights + offsets)
        return tf.nn.softplus(values @ last[0] + last[1])


class TiltTable(Tilt):
    """One free c for each datum: no amortisation gap, but N numbers to learn and a row number in every batch."""

    def __init__(self, num_data: int, outputs: int = 1, name: str | None = None) -> None:
        """
        :param num_data: N, the size of the whole data.
        :param outputs: P.
        """
        super().__init__(name=name)
        shape = (checks.integer("num_data", num_data, least=1), checks.integer("outputs", outputs, least=1))
        self.values = Parameter(np.ones(shape), transform=positive())

    def __call__(self, batch: Batch, independent_second: Callable[[], tf.Tensor]) -> tf.Tensor:
        """The rows of the table."""
        if batch.index is None:
            raise ValueError("a TiltTable needs the rows' numbers: pass data as (X, Y, index)")
        return tf.gather(self.values, batch.index)


class IndependentGroups(Tilt):
    """c² = μ² + σ², estimated from draws of their own: nothing to learn, at twice the draws."""

    def __call__(self, batch: Batch, independent_second: Callable[[], tf.Tensor]) -> tf.Tensor:
        """The root; an estimate below zero gives c = 0. At the best c the bound is flat in c: no gradient needed."""
        return tf.stop_gradient(tf.sqrt(tf.maximum(independent_second(), 0.0)))


class PolyaGammaBernoulli(ScalarLikelihood):
    """p(y | f) = σ(y f) for y ∈ {−1, +1}, with the bound above in training and the exact likelihood in prediction."""

    def __init__(self, tilt: Tilt, **kwargs: Any) -> None:
        """
        :param tilt: how c is chosen: :class:`RecognitionNetwork`, :class:`TiltTable` or :class:`IndependentGroups`.
        """
        super().__init__(**kwargs)
        self._tilt = checks.instance("tilt", tilt, Tilt)

    def tilt(self, batch: Batch, independent_second: Callable[[], tf.Tensor]) -> tf.Tensor:
        """
        :return: [N, P], c of each datum, after a look at the labels.
        """
        one = tf.ones([], batch.Y.dtype)
        with tf.control_dependencies([tf.debugging.assert_equal(tf.abs(batch.Y), one, "labels must be −1 or +1")]):
            return self._tilt(batch, independent_second)

    @check_shapes("Fmu: [N, P]", "Fvar: [N, P]", "return: [N, P]")
    def predict_probability(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """P(y = +1) = E σ(f), by quadrature."""
        none = tf.zeros([tf.shape(Fmu)[0], 0], dtype=Fmu.dtype)
        return 0.5 * (1 + self.predict_mean_and_var(none, Fmu, Fvar)[0])

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return tf.math.log_sigmoid(Y * F)

    @inherit_check_shapes
    def _conditional_mean(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return tf.tanh(F / 2)  # σ(f) − σ(−f)

    @inherit_check_shapes
    def _conditional_variance(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return 1 - tf.square(tf.tanh(F / 2))


@sites_of.register(PolyaGammaBernoulli, object, object)
def _polya_gamma_sites(
    likelihood: PolyaGammaBernoulli, batch: Batch, independent_second: Callable[[], tf.Tensor]
) -> Sites:
    return polya_gamma_sites(batch.Y, likelihood.tilt(batch, independent_second))
