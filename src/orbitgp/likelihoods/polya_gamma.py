"""The logistic likelihood of two classes, under the Pólya-Gamma bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.likelihoods import ScalarLikelihood

from orbitgp import checks
from orbitgp.likelihoods.sites import Batch, Moments, Sites, sites_of
from orbitgp.likelihoods.tilts import Tilt


def polya_gamma_precision(tilt: tf.Tensor) -> tf.Tensor:
    """θ(c) = E ω = tanh(c/2)/(2c) for ω ~ PG(1, c), with its limit ¼ at c = 0."""
    small = tilt < 1e-3
    safe = tf.where(small, tf.ones_like(tilt), tilt)
    return tf.where(small, 0.25 - tf.square(tilt) / 48, tf.tanh(safe / 2) / (2 * safe))


def polya_gamma_sites(Y: tf.Tensor, tilt: tf.Tensor) -> Sites:
    """
    Sites of the bound in :func:`polya_gamma_bound`.

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


def best_tilt(moments: Moments) -> tf.Tensor:
    """[N, P], c = √(μ² + σ²); an estimate below zero gives c = 0."""
    return tf.sqrt(tf.maximum(moments.second, 0.0))


class PolyaGammaBernoulli(ScalarLikelihood):
    """
    p(y | f) = σ(y f) for y ∈ {−1, +1}, with the bound of :func:`polya_gamma_bound` in training and the exact likelihood
    in prediction.
    """

    def __init__(self, tilt: Tilt, **kwargs: Any) -> None:
        """
        :param tilt: how c is chosen: :class:`~orbitgp.likelihoods.RecognitionNetwork`,
            :class:`~orbitgp.likelihoods.TiltTable` or :class:`~orbitgp.likelihoods.IndependentGroups`.
        """
        super().__init__(**kwargs)
        self._tilt = checks.instance("tilt", tilt, Tilt)

    def tilt(self, batch: Batch, independent: Callable[[], Moments]) -> tf.Tensor:
        """
        :param independent: returns estimates of the moments of f from independent draws.
        :return: [N, P], c of each datum, after checking the labels.
        """
        one = tf.ones([], batch.Y.dtype)
        with tf.control_dependencies([tf.debugging.assert_equal(tf.abs(batch.Y), one, "labels must be −1 or +1")]):
            return self._tilt(batch, lambda: best_tilt(independent()))

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
def _polya_gamma_sites(likelihood: PolyaGammaBernoulli, batch: Batch, independent: Callable[[], Moments]) -> Sites:
    return polya_gamma_sites(batch.Y, likelihood.tilt(batch, independent))
