"""The base kernel at groups of draws: where most of a training step is spent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel, SquaredExponential

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

    @check_shapes("drawn: [N, G, n, D]", "return[0]: [N, s, s]", "return[1]: [N, G, M]")
    def __call__(self, drawn: TensorType, across: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """
        :param drawn: [N, G, n, D], for each input G groups of n draws, S = G n.
        :param across: of two groups, whether only pairs of a draw of the first and one of the second are wanted.
        :return: [N, S, S], k_g between all draws of an input, or [N, n, n] between the groups; and [N, G, M], k_g
            between draws and Z, averaged over each group.
        """
        drawn, base, Z = tf.convert_to_tensor(drawn), self._base, self._Z
        N, groups, size, D = tf.unstack(tf.shape(drawn))
        X, M = tf.reshape(drawn, [N, groups * size, D]), tf.shape(Z)[0]
        if self._is_exponential:
            X = base.slice(X, None)[0]
            between, average = _exponentials(X, base.lengthscales, Z, size, across, self._product)
            Kaa, Kfu = base.variance * between, base.variance * average
        else:
            Kaa = base(X)[:, :size, size:] if across else base(X)
            Kfu = tf.reduce_mean(tf.reshape(base(tf.reshape(X, [-1, D]), Z), [N * groups, size, M]), axis=1)
        return Kaa, tf.reshape(Kfu, [N, groups, M])


def _exponentials(
    X: tf.Tensor, lengthscales: TensorType, Z: tf.Tensor, size: int | tf.Tensor, across: bool, product: Product
) -> list[tf.Tensor]:
    """
    exp(−½ ‖x − x'‖²) between all draws of an input, or between the first ``size`` and the others, and
    mean_n exp(−½ ‖x_n − z‖²) over each ``size`` draws that follow each other, with x = X/ℓ.

    The derivative is written out. TensorFlow's own would keep and make some ten matrices of the size [N S, M], which
    would set the peak of a training step's memory, and several copies of the draws. This one keeps one of each.

    :param X: [N, S, D]
    :param lengthscales: [] or [D]
    :param Z: [M, D], divided by the lengthscales.
    :return: [N, S, S] or [N, size, size], and [N S / size, M]
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
        first, second = (scaled[:, :size], scaled[:, size:]) if across else (scaled, scaled)
        between = tf.exp(-0.5 * _square_distances(first, second))

        def gradient(of_between: tf.Tensor, of_average: tf.Tensor) -> tuple[tf.Tensor, ...]:
            flat = tf.reshape(scaled, [-1, D])  # anew: a compiled function would keep a copy of what is reshaped
            pull = tf.reshape(grouped * of_average[:, None, :] / tf.cast(size, flat.dtype), [-1, M])
            of_Z = product(pull, flat, transpose_a=True) - Z * tf.reduce_sum(pull, axis=0)[:, None]
            weight = tf.reshape(tf.reduce_sum(pull, axis=1), tf.shape(scaled)[:2])
            of_scaled = tf.reshape(product(pull, Z), tf.shape(scaled)) - scaled * weight[:, :, None]
            each = of_between * between
            back = tf.linalg.matrix_transpose(each)
            if across:
                of_scaled += tf.concat([_pull(each, first, second), _pull(back, second, first)], axis=1)
            else:
                of_scaled += _pull(each + back, first, second)
            along = -tf.einsum("nsd,nsd->d", of_scaled, scaled) / lengthscales
            return of_scaled / lengthscales, along if lengthscales.shape.rank else tf.reduce_sum(along), of_Z

        return (between, tf.reduce_mean(grouped, axis=1)), gradient

    lengthscales = tf.convert_to_tensor(lengthscales)
    if lengthscales.shape.rank:  # one in a list stands for all
        lengthscales = tf.broadcast_to(lengthscales, tf.shape(X)[-1:])
    return exponentials(X, lengthscales, Z)


@check_shapes("Z: [M, D]", "return: [M, M]")
def kernel_matrix(base: Kernel, Z: TensorType) -> tf.Tensor:
    """
    k_g between all rows of Z. Of a squared exponential the derivative is written out: it is symmetric, so that one
    product is enough, where TensorFlow would make one for each side.
    """
    if type(base) is not SquaredExponential:
        return base(Z)

    @tf.custom_gradient
    def exponentials(scaled: tf.Tensor) -> Any:
        K = tf.exp(-0.5 * _square_distances(scaled, scaled))

        def gradient(of_K: tf.Tensor) -> tf.Tensor:
            each = of_K * K
            return _pull(each + tf.linalg.matrix_transpose(each), scaled, scaled)

        return K, gradient

    scaled = base.scale(base.slice(tf.convert_to_tensor(Z), None)[0])
    return base.variance * exponentials(scaled[None])[0]


def _square_distances(A: tf.Tensor, B: tf.Tensor) -> tf.Tensor:
    """‖a − b‖² for the rows of each pair of matrices, [N, a, D] and [N, b, D] → [N, a, b]"""
    squares = [tf.einsum("nsd,nsd->ns", side, side) for side in (A, B)]
    return squares[0][:, :, None] + squares[1][:, None, :] - 2 * tf.matmul(A, B, transpose_b=True)


def _pull(weight: tf.Tensor, A: tf.Tensor, B: tf.Tensor) -> tf.Tensor:
    """Σ_b w_ab (b − a), [N, a, D]: the derivative of Σ_ab w_ab (−½ ‖a − b‖²) by a."""
    return tf.matmul(weight, B) - A * tf.reduce_sum(weight, axis=2)[:, :, None]
