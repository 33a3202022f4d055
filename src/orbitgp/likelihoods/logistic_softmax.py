"""The logistic-softmax likelihood of several classes (Galy-Fajou and others, 2020), by three tangents."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from gpflow.base import TensorType

from orbitgp.likelihoods.classes import TiltedClassLikelihood
from orbitgp.likelihoods.polya_gamma import best_tilt, polya_gamma_sites
from orbitgp.likelihoods.sites import Batch, Moments, Sites, sites_of

#: lower limit for noisy estimates of −E log σ(−f), which is positive
LEAST = 1e-6


def logistic_softmax_sites(Y: tf.Tensor, tilt: tf.Tensor, rate: tf.Tensor) -> Sites:
    """
    Sites of a bound to log σ(f_y) − log Σ_j σ(f_j), by three tangents. For any λ > 0,
    −log s ≥ 1 + log λ − λ s. With σ(f_j) = 1 − σ(−f_j), for any γ_j > 0,
    λ σ(−f_j) ≥ γ_j (1 + log λ − log γ_j + log σ(−f_j)). And log σ has the Pólya-Gamma bound. The best λ is
    (1 + G)/K with G = Σ_j γ_j, which leaves

        log p(y | f) ≥ log σ(f_y) + Σ_j γ_j log σ(−f_j) + (1 + G) log((1 + G)/K) − Σ_j γ_j log γ_j.

    Linear terms ½ (y − γ) and precisions (y + γ) θ(c) are those of Galy-Fajou and others, whose Gamma and Poisson
    variables have the same γ as a mean; the constant is higher, by the entropy of their λ.

    :param Y: [N, K] one-hot rows.
    :param tilt: [N, K] c ≥ 0.
    :param rate: [N, K] γ > 0.
    """
    logistic, best = polya_gamma_sites(Y - rate, tilt), (1 + tf.reduce_sum(rate, axis=-1, keepdims=True)) / Y.shape[-1]
    constant = (Y + rate) * logistic.constant - tf.math.xlogy(rate, rate) + best * tf.math.log(best)
    return Sites(logistic.linear, (Y + rate) * logistic.precision, constant)


class LogisticSoftmax(TiltedClassLikelihood):
    """
    p(y = k | f) = σ(f_k) / Σ_j σ(f_j), with the bound of :func:`logistic_softmax_sites` in training and the exact
    likelihood in prediction.

    It is close to the softmax only where all f_k are far below zero. Each class has its own site precision: natural
    steps need a model with ``covariance="per_output"``.
    """

    @staticmethod
    def local_numbers(classes: int) -> tuple[int, int]:
        """A tilt c and a rate γ for each class."""
        return 2 * classes, 0

    @staticmethod
    def best_local(moments: Moments) -> tf.Tensor:
        """
        [N, 2 K], c² = E f², and γ_j = e^{b_j} / (K − Σ_i e^{b_i}) with b_j the bound to E log σ(−f_j).

        Under noise it needs moments ``of_one_gaussian``: with E f² < (E f)², b_j can come out at zero or above, where γ
        has no limit.
        """
        moments = moments.of_one_gaussian
        tilt, K = best_tilt(moments), moments.mean.shape[-1]
        against = polya_gamma_sites(-tf.ones_like(tilt), tilt).expectation(moments.mean, moments.second)
        share = tf.exp(tf.minimum(against, -LEAST))
        return tf.concat([tilt, share / (K - tf.reduce_sum(share, axis=-1, keepdims=True))], axis=-1)

    def log_probabilities(self, F: TensorType) -> tf.Tensor:
        """log σ(f_k) − log Σ_j σ(f_j)"""
        return tf.nn.log_softmax(tf.math.log_sigmoid(F), axis=-1)


@sites_of.register(LogisticSoftmax, object, object)
def _logistic_softmax_sites(likelihood: LogisticSoftmax, batch: Batch, independent: Callable[[], Moments]) -> Sites:
    Y, local = likelihood.checked(batch.Y), likelihood.local(batch, independent)
    return logistic_softmax_sites(Y, *tf.split(local, 2, axis=-1))
