"""Inverse factors: a GPU makes a product with one in a fraction of the time of a triangular solve."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import TensorType


def inverse_triangle(L: TensorType) -> tf.Tensor:
    """
    :param L: [M, M], lower triangular.
    :return: [M, M] L⁻¹, lower triangular.
    """
    return tf.linalg.triangular_solve(L, tf.eye(tf.shape(L)[0], dtype=L.dtype))


@tf.custom_gradient
def whitener(K: tf.Tensor) -> tuple[tf.Tensor, object]:
    """
    W = L⁻¹ with K = L Lᵀ, so that W turns draws from N(0, K) into white noise.

    Its derivative takes products only: for P the lower triangle of −W̄ Wᵀ with half of its diagonal,
    K̄ = ½ Wᵀ (P + Pᵀ) W.

    :param K: [M, M], positive.
    :return: [M, M], lower triangular.
    """
    W = inverse_triangle(tf.linalg.cholesky(K))

    def derivative(upstream: tf.Tensor) -> tf.Tensor:
        P = tf.linalg.band_part(-tf.matmul(upstream, W, transpose_b=True), -1, 0)
        P = tf.linalg.set_diag(P, 0.5 * tf.linalg.diag_part(P))
        return 0.5 * tf.matmul(W, tf.matmul(P + tf.transpose(P), W), transpose_a=True)

    return W, derivative
