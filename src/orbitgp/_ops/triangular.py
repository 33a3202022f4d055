"""Inverse Cholesky factors: a GPU multiplies by one in a fraction of the time of a triangular solve."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from gpflow.base import TensorType

#: Frobenius norm of W K Wᵀ − I before Newton's last step, which squares it
CLOSE = 1e-4

#: steps of Newton's method before the first look at that norm
USUAL_STEPS = 2

#: steps before the matrix is factorised instead
MOST_STEPS = 20


def inverse_triangle(L: TensorType) -> tf.Tensor:
    """
    :param L: [..., M, M], lower triangular.
    :return: [..., M, M] L⁻¹, lower triangular.
    """
    return tf.linalg.triangular_solve(L, tf.eye(tf.shape(L)[-1], batch_shape=tf.shape(L)[:-2], dtype=L.dtype))


def lower_half(E: tf.Tensor) -> tf.Tensor:
    """The lower triangular P with P + Pᵀ = E, of symmetric E [..., M, M]."""
    P = tf.linalg.band_part(E, -1, 0)
    return tf.linalg.set_diag(P, 0.5 * tf.linalg.diag_part(P))


def whitener(K: tf.Tensor, near: TensorType | None = None) -> tf.Tensor:
    """
    W = L⁻¹ with K = L Lᵀ, so that W turns draws from N(0, K) into white noise.

    Its derivative needs products only: for P the lower triangle of −W̄ Wᵀ with half of its diagonal,
    K̄ = ½ Wᵀ (P + Pᵀ) W.

    :param K: [M, M], positive.
    :param near: [M, M], the W of a similar K, to be refined by products alone. A factorisation is a chain of small
        operations, and a GPU makes many products in its time.
    :return: [M, M], lower triangular.
    """

    @tf.custom_gradient
    def found(K: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        W = _factorised(K) if near is None else _refined(tf.convert_to_tensor(near), K)

        def derivative(upstream: tf.Tensor) -> tf.Tensor:
            P = lower_half(-tf.matmul(upstream, W, transpose_b=True))
            return 0.5 * tf.matmul(W, tf.matmul(P + tf.transpose(P), W), transpose_a=True)

        return W, derivative

    return found(K)


def _factorised(K: tf.Tensor) -> tf.Tensor:
    return inverse_triangle(tf.linalg.cholesky(K))


def _refined(W: tf.Tensor, K: tf.Tensor) -> tf.Tensor:
    """
    Newton's method for W K Wᵀ = I among lower triangular W: with E = W K Wᵀ − I and E = P + Pᵀ, (I − P) W has an error
    of the order of E². The first steps are taken without a look at E: for each look a GPU stands still until the host
    has decided. They suffice for what a step of a training changes; if not, more follow, and if those do not converge,
    K is factorised.
    """
    eye = tf.eye(K.shape[0], dtype=K.dtype)

    def error(W: tf.Tensor) -> tf.Tensor:
        return tf.matmul(tf.matmul(W, K), W, transpose_b=True) - eye

    def better(W: tf.Tensor, E: tf.Tensor) -> tf.Tensor:
        return W - tf.matmul(lower_half(E), W)

    def step(number: tf.Tensor, W: tf.Tensor, E: tf.Tensor) -> tuple[tf.Tensor, ...]:
        W = better(W, E)
        return number + 1, W, error(W)

    def further(W: tf.Tensor, E: tf.Tensor) -> tf.Tensor:
        _, W, E = tf.while_loop(
            lambda number, W, E: (tf.norm(E) > CLOSE) & (number < MOST_STEPS),  # false for NaN
            step,
            (tf.constant(USUAL_STEPS), W, E),
            parallel_iterations=1,
        )
        return tf.cond(tf.norm(E) <= CLOSE, lambda: better(W, E), lambda: _factorised(K))

    E = error(W)
    for _ in range(USUAL_STEPS):
        _, W, E = step(tf.constant(0), W, E)
    return tf.cond(tf.norm(E) <= CLOSE, lambda: better(W, E), lambda: further(W, E))
