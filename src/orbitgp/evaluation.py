"""The base kernel at groups of draws: where most of a training step is spent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel, SquaredExponential
from gpflow.utilities.ops import square_distance


class DrawKernels:
    """
    A base kernel between draws, and between draws and Z. What depends on Z alone is computed once, here: within a loop
    over blocks of draws TensorFlow would compute it, and keep it for the gradient, in each turn anew.
    """

    @check_shapes("Z: [M, D]")
    def __init__(self, base: Kernel, Z: TensorType) -> None:
        self._base, self._Z = base, tf.convert_to_tensor(Z)
        self._is_exponential = type(base) is SquaredExponential  # no subclass: it may be another function of distance
        if self._is_exponential:
            self._Z = base.scale(base.slice(self._Z, None)[0])

    @check_shapes("drawn: [N, G, n, D]", "return[0]: [N, S, S]", "return[1]: [N, G, M]")
    def __call__(self, drawn: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """
        :param drawn: [N, G, n, D], for each input G groups of n draws, S = G n.
        :return: [N, S, S], k_g between all draws of an input; and [N, G, M], k_g between draws and Z, averaged over
            each group.
        """
        drawn, base, Z = tf.convert_to_tensor(drawn), self._base, self._Z
        N, groups, size, D = tf.unstack(tf.shape(drawn))
        X, M = tf.reshape(drawn, [N, groups * size, D]), tf.shape(Z)[0]
        if self._is_exponential:
            X = _divided(base.slice(X, None)[0], base.lengthscales)
            Kaa = base.K_r2(square_distance(X, None))
            Kfu = base.variance * _averaged_exponential(tf.reshape(X, [N * groups, size, tf.shape(X)[-1]]), Z)
        else:
            Kaa = base(X)
            Kfu = tf.reduce_mean(tf.reshape(base(tf.reshape(X, [-1, D]), Z), [N * groups, size, M]), axis=1)
        return Kaa, tf.reshape(Kfu, [N, groups, M])


def _divided(X: tf.Tensor, lengthscales: TensorType) -> tf.Tensor:
    """X/ℓ, [..., D], with a derivative that needs only the result: X itself need not stay in memory."""

    @tf.custom_gradient
    def divided(X: tf.Tensor, lengthscales: tf.Tensor) -> Any:
        scaled = X / lengthscales

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            along = -tf.einsum("nsd,nsd->d", upstream, scaled) / lengthscales
            return upstream / lengthscales, along if lengthscales.shape.rank else tf.reduce_sum(along)

        return scaled, gradient

    ones = tf.ones_like(lengthscales) if lengthscales.shape.rank == 0 else tf.ones([tf.shape(X)[-1]], X.dtype)
    return divided(X, ones * lengthscales)


@tf.custom_gradient
def _averaged_exponential(
    X: tf.Tensor, Z: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """
    mean_n exp(−½ ‖x_n − z‖²), with its derivative written out: TensorFlow's own would keep and make some ten
    matrices of the size [R n, M], and these would set the peak of a training step's memory.

    :param X: [R, n, D]
    :param Z: [M, D]
    :return: [R, M]
    """
    shape = tf.shape(X)
    flat = tf.reshape(X, [-1, shape[2]])
    x_square = tf.einsum("nd,nd->n", flat, flat)[:, None]
    z_square = tf.einsum("md,md->m", Z, Z)
    exponentials = tf.exp(tf.matmul(flat, Z, transpose_b=True) - 0.5 * x_square - 0.5 * z_square)
    grouped = tf.reshape(exponentials, [shape[0], shape[1], tf.shape(Z)[0]])

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        share = upstream / tf.cast(shape[1], upstream.dtype)
        pull = tf.reshape(grouped * share[:, None, :], tf.shape(exponentials))
        of_X = tf.matmul(pull, Z) - flat * tf.reduce_sum(pull, axis=1, keepdims=True)
        of_Z = tf.matmul(pull, flat, transpose_a=True) - Z * tf.reduce_sum(pull, axis=0)[:, None]
        return tf.reshape(of_X, shape), of_Z

    return tf.reduce_mean(grouped, axis=1), gradient
