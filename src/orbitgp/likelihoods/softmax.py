"""The softmax likelihood of several classes, under Bouchard's bound with that of Jaakkola and Jordan."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType

from orbitgp.likelihoods.classes import TiltedClassLikelihood
from orbitgp.likelihoods.polya_gamma import best_tilt, polya_gamma_precision, polya_gamma_sites
from orbitgp.likelihoods.sites import Batch, Moments, Sites, sites_of

ROUNDS = 20  #: of updates of c and a in turn, each in closed form; more gain less than 0.02 nats for each datum


def softmax_sites(Y: tf.Tensor, tilt: tf.Tensor, offset: tf.Tensor) -> Sites:
    """
    Bouchard's log Σ_j e^{f_j} ≤ a + Σ_j log(1 + e^{f_j − a}) makes log softmax a sum over classes of one class against
    the rest, Σ_j log σ(±(f_j − a)) with + for the label alone. Each term has the Pólya-Gamma bound.

    :param Y: [N, K] one-hot rows.
    :param tilt: [N, K] c ≥ 0.
    :param offset: [N, 1] a.
    """
    return polya_gamma_sites(2 * Y - 1, tilt).of_remainder(-offset)


@check_shapes("Y: [N, K]", "mean: [N, K]", "variance: [N, K]", "tilt: [N, K]", "offset: [N, 1]", "return: [N]")
def softmax_bound(
    Y: TensorType, mean: TensorType, variance: TensorType, tilt: TensorType, offset: TensorType
) -> tf.Tensor:
    """
    E log softmax_y(f) ≥ μ_y − a − Σ_j [log(1 + e^{c_j}) + ½ (μ_j − a − c_j) + ½ θ(c_j)(σ_j² + (μ_j − a)² − c_j²)] with
    θ(c) = tanh(c/2)/(2c).

    Tightest at c_j² = σ_j² + (μ_j − a)² and a = (Σ_j θ_j μ_j + K/2 − 1) / Σ_j θ_j.

    :param Y: [N, K] one-hot rows.
    :param mean: [N, K] μ
    :param variance: [N, K] σ²
    :param tilt: [N, K] c ≥ 0, which must not depend on the draws behind ``mean`` and ``variance``.
    :param offset: [N, 1] a, which must not either.
    """
    Y, mean, variance, tilt, offset = (tf.convert_to_tensor(part) for part in (Y, mean, variance, tilt, offset))
    sites = softmax_sites(Y, tilt, offset)
    return tf.reduce_sum(sites.expectation(mean, tf.square(mean) + variance), axis=-1)


class Softmax(TiltedClassLikelihood):
    """
    p(y = k | f) = e^{f_k} / Σ_j e^{f_j}, with the bound of :func:`softmax_bound` in training and the exact likelihood
    in prediction.

    Each class has its own site precision θ(c_k): natural steps need a model with ``covariance="per_output"``. The bound
    is not tight (``benchmarks/slack.md``). This biases the scale of f, and makes bounds of other likelihoods hard to
    compare with this one.
    """

    @staticmethod
    def local_numbers(classes: int) -> tuple[int, int]:
        """A tilt c for each class, and the offset a."""
        return classes, 1

    @staticmethod
    def best_local(moments: Moments) -> tf.Tensor:
        """[N, K + 1], c and a, by updating both in turn."""
        mean, K = moments.mean, moments.mean.shape[-1]
        precision = tf.fill(tf.shape(mean), tf.constant(0.25, mean.dtype))
        for _ in range(ROUNDS):
            weighted = tf.reduce_sum(precision * mean, axis=-1, keepdims=True)
            offset = (weighted + K / 2 - 1) / tf.reduce_sum(precision, axis=-1, keepdims=True)
            tilt = best_tilt(moments.shifted(-offset))
            precision = polya_gamma_precision(tilt)
        return tf.concat([tilt, offset], axis=-1)

    def log_probabilities(self, F: TensorType) -> tf.Tensor:
        """log softmax(f)"""
        return tf.nn.log_softmax(F, axis=-1)


@sites_of.register(Softmax, object, object)
def _softmax_sites(likelihood: Softmax, batch: Batch, independent: Callable[[], Moments]) -> Sites:
    Y, local = likelihood.checked(batch.Y), likelihood.local(batch, independent)
    return softmax_sites(Y, local[:, :-1], local[:, -1:])
