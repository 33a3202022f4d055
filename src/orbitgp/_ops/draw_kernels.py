"""The base kernel at groups of draws: where most of a training step is spent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel, SquaredExponential
from gpflow.utilities.ops import square_distance

Product = Callable[..., tf.Tensor]  #: as tf.matmul, of two matrices


class DrawKernels:
    """
    A base kernel between draws, and between draws and Z. What depends on Z alone is computed once, here: within a loop
    over blocks of draws TensorFlow would compute it, and keep it for the gradient, in each turn anew.
    """

    @check_shapes("Z: [M, D]")
    def __init__(self, base: Kernel, Z: TensorType, product: Product = tf.matmul) -> None:
        """
        :param base: k_g
        :param Z: [M, D]
        :param product: of the large matrices.
        """
        self._base, self._Z, self._product = base, tf.convert_to_tensor(Z), product
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
            between, average = _exponentials(base.slice(X, None)[0], base.lengthscales, Z, size, self._product)
            Kaa, Kfu = base.variance * between, base.variance * average
        else:
            Kaa = base(X)
            Kfu = tf.reduce_mean(tf.reshape(base(tf.reshape(X, [-1, D]), Z), [N * groups, size, M]), axis=1)
        return Kaa, tf.reshape(Kfu, [N, groups, M])


def _exponentials(
    X: tf.Tensor, lengthscales: TensorType, Z: tf.Tensor, size: int | tf.Tensor, product: Product
) -> list[tf.Tensor]:
    """
    exp(−½ ‖x − x'‖²) between all draws of an input, and mean_n exp(−½ ‖x_n − z‖²) over each ``size`` draws that follow
    each other, with x = X/ℓ.

    The derivative is written out. TensorFlow's own would keep and make some ten matrices of the size [N S, M], which
    would set the peak of a training step's memory, and several copies of the draws. This one keeps one of each.

    :param X: [N, S, D]
    :param lengthscales: [] or [D]
    :param Z: [M, D], divided by the lengthscales.
    :return: [N, S, S] and [N S / size, M]
    """

    @tf.custom_gradient
    def exponentials(X: tf.Tensor, lengthscales: tf.Tensor, Z: tf.Tensor) -> Any:
        scaled = X / lengthscales
        M, D = tf.unstack(tf.shape(Z))
        flat = tf.reshape(scaled, [-1, D])
        x_square = tf.einsum("nd,nd->n", flat, flat)[:, None]
        z_square = tf.einsum("md,md->m", Z, Z)
        to_Z = tf.exp(product(flat, Z, transpose_b=True) - 0.5 * x_square - 0.5 * z_square)
        grouped = tf.reshape(to_Z, [-1, size, M])
        between = tf.exp(-0.5 * square_distance(scaled, None))

        def gradient(of_between: tf.Tensor, of_average: tf.Tensor) -> tuple[tf.Tensor, ...]:
            flat = tf.reshape(scaled, [-1, D])  # anew: a compiled function would keep a copy of what is reshaped
            pull = tf.reshape(grouped * of_average[:, None, :] / tf.cast(size, flat.dtype), [-1, M])
            of_Z = product(pull, flat, transpose_a=True) - Z * tf.reduce_sum(pull, axis=0)[:, None]
            each = of_between * between
            both = each + tf.linalg.matrix_transpose(each)
            of_scaled = tf.reshape(product(pull, Z), tf.shape(scaled)) + tf.matmul(both, scaled)
            weight = tf.reshape(tf.reduce_sum(pull, axis=1), tf.shape(scaled)[:2]) + tf.reduce_sum(both, axis=2)
            of_scaled -= scaled * weight[:, :, None]
            along = -tf.einsum("nsd,nsd->d", of_scaled, scaled) / lengthscales
            return of_scaled / lengthscales, along if lengthscales.shape.rank else tf.reduce_sum(along), of_Z

        return (between, tf.reduce_mean(grouped, axis=1)), gradient

    lengthscales = tf.convert_to_tensor(lengthscales)
    if lengthscales.shape.rank:  # one in a list stands for all
        lengthscales = tf.broadcast_to(lengthscales, tf.shape(X)[-1:])
    return exponentials(X, lengthscales, Z)
