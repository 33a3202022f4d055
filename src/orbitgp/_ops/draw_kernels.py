"""The base kernel at groups of draws: where most of a training step is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, Protocol

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel, Product, SquaredExponential

from orbitgp._ops.blocks import recomputed
from orbitgp._ops.precision import values_of, with_values
from orbitgp._ops.products import MatrixProduct

TOGETHER = 2**27  #: numbers in the largest matrix: few enough to fit into memory, and enough to keep a GPU busy


class Listed(Protocol):
    """An orbit whose points can be listed, :class:`orbitgp.orbits.FiniteOrbit`."""

    order: int

    def full(self, X: tf.Tensor) -> tf.Tensor:
        """[N, D] → [N, order, E]"""


class DrawKernels:
    """
    k_h between draws, and between draws and Z, of a process h(x) = E_p g(x_p) that averages g ~ GP(0, k_g) over every
    point of finite orbits, with u = g(Z). Without such orbits h is g.

    What depends on Z alone is computed once, here: in a loop over blocks of draws, TensorFlow would compute it, and
    keep it for the gradient, in every iteration.
    """

    @check_shapes("Z: [M, E]")
    def __init__(
        self, base: Kernel, Z: TensorType, product: MatrixProduct = tf.matmul, *, listed: Sequence[Listed] = ()
    ) -> None:
        """
        :param base: k_g
        :param Z: [M, E]
        :param product: multiplies the large matrices.
        :param listed: finite orbits, one after the other, from draws to the points of g.
        """
        Z = tf.convert_to_tensor(Z)
        self._base, self._product, self._listed = base, product, tuple(listed)
        self._count, self._length = Z.shape
        self._factors = _exponential_factors(base)
        if self._factors:
            variance, lengthscales = _variance(self._factors), _lengthscales(self._factors, self._length)
            self._shared: list[tf.Tensor] = [_columns(self._factors, Z) / lengthscales, lengthscales, variance]
        else:
            self._shared = [Z, *map(tf.convert_to_tensor, values_of(base))]

    @check_shapes("drawn: [N, G, n, D]", "return[0]: [N, s, s]", "return[1]: [N, G, M]")
    def __call__(self, drawn: TensorType, across: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """
        :param drawn: [N, G, n, D], for each input G groups of n draws, S = G n.
        :param across: whether to return k_h only between the draws of the first group and those of the second.
        :return: [N, S, S], k_h between all draws of an input, or [N, n, n] between the groups; and [N, G, M], the
            covariance of h at the draws with u, averaged over each group.
        """
        drawn = tf.convert_to_tensor(drawn)
        evaluate = partial(self._evaluate, across)
        return recomputed(evaluate, drawn, self._shared, self._rows(drawn, across), (drawn.dtype,) * 2)

    def _rows(self, drawn: tf.Tensor, across: bool) -> int:
        """Number of inputs processed at a time."""
        draws = [side or 1 for side in drawn.shape[1:3]]
        points = math.prod(draws) * self._order
        pairs = (draws[1] * self._order) ** 2 if across else points**2
        return max(1, TOGETHER // max(points * self._count, pairs))

    @property
    def _order(self) -> int:
        """Number of points of g for each draw."""
        return math.prod(orbit.order for orbit in self._listed)

    def _points(self, drawn: tf.Tensor) -> tf.Tensor:
        """[N, …, n, D] → [N, …, n order, E]"""
        points = drawn
        for orbit in self._listed:
            *outer, count, D = tf.unstack(tf.shape(points))
            full = orbit.full(tf.reshape(points, [-1, D]))
            points = tf.reshape(full, [*outer, count * orbit.order, tf.shape(full)[2]])
        if points.shape[-1] is not None and points.shape[-1] != self._length:
            raise ValueError(f"inducing points have {self._length} values each, but g takes {points.shape[-1]}")
        return points

    def _evaluate(self, across: bool, drawn: tf.Tensor, *shared: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """As :meth:`__call__`, for some inputs."""
        points = self._points(drawn)
        N, groups, size, E = tf.unstack(tf.shape(points))
        X = tf.reshape(points, [N, groups * size, E])
        if self._factors:
            Z, lengthscales, variance = shared
            X = _columns(self._factors, X)
            between, average = _exponentials(X, lengthscales, Z, size, across, self._product)
            Kaa, Kfu = variance * between, variance * average
        else:
            Z, *values = shared
            base = with_values(self._base, values)
            Kaa = base(X)[:, :size, size:] if across else base(X)
            to_Z = base(tf.reshape(X, [-1, E]), Z)
            Kfu = tf.reduce_mean(tf.reshape(to_Z, [N * groups, size, self._count]), axis=1)
        draws, order = tf.shape(Kaa)[1] // self._order, self._order
        Kaa = tf.reduce_mean(tf.reshape(Kaa, [N, draws, order, draws, order]), axis=[2, 4])
        return Kaa, tf.reshape(Kfu, [N, groups, self._count])


class SumKernels:
    """As :class:`DrawKernels`, for a sum of independent processes; their inducing variables follow one another."""

    def __init__(self, parts: Sequence[DrawKernels]) -> None:
        """
        :param parts: the kernels of the processes.
        """
        self._parts = tuple(parts)

    def __call__(self, drawn: TensorType, across: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """Adds kernels between draws, and concatenates those with inducing variables."""
        Kaa, Kfu = zip(*(part(drawn, across) for part in self._parts), strict=True)
        return tf.add_n(Kaa), tf.concat(Kfu, axis=2)

    @check_shapes("drawn: [N, S, D]", "return: [N, N]")
    def between_inputs(self, drawn: TensorType) -> tf.Tensor:
        """
        :param drawn: [N, S, D]
        :return: [N, N], k_h between the draws of any two inputs, averaged over pairs of draws.
        """
        drawn = tf.convert_to_tensor(drawn)

        def row(one: tf.Tensor) -> tf.Tensor:
            pairs = tf.stack([tf.broadcast_to(one, tf.shape(drawn)), drawn], axis=1)
            return tf.reduce_mean(self(pairs, across=True)[0], axis=[1, 2])

        return tf.map_fn(tf.autograph.experimental.do_not_convert(row), drawn, parallel_iterations=1)


def _exponential_factors(base: Kernel) -> list[SquaredExponential]:
    """The squared exponentials whose product a kernel is, mostly one; none if it is something else."""
    factors = base.kernels if type(base) is Product else [base]
    # no subclass: it may be another function of distance
    return list(factors) if all(type(factor) is SquaredExponential for factor in factors) else []


def _columns(factors: Sequence[SquaredExponential], X: tf.Tensor) -> tf.Tensor:
    """[…, E] → […, L], the columns that each factor looks at, side by side."""
    return tf.concat([factor.slice(X, None)[0] for factor in factors], axis=-1)


def _lengthscales(factors: Sequence[SquaredExponential], length: int) -> tf.Tensor:
    """Lengthscales of :func:`_columns`, [] or [L]."""
    found = [tf.convert_to_tensor(factor.lengthscales) for factor in factors]
    if len(found) == 1 and not found[0].shape.rank:
        return found[0]
    widths = [_columns([factor], tf.zeros([1, length])).shape[-1] for factor in factors]
    return tf.concat([tf.broadcast_to(scale, [width]) for scale, width in zip(found, widths, strict=True)], axis=0)


def _variance(factors: Sequence[SquaredExponential]) -> tf.Tensor:
    return reduce(tf.multiply, [tf.convert_to_tensor(factor.variance) for factor in factors])


def _exponentials(
    X: tf.Tensor, lengthscales: TensorType, Z: tf.Tensor, size: int | tf.Tensor, across: bool, product: MatrixProduct
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
            if across:  # groups next to each other, as they lie in memory: what is pulled is the other one, by its side
                halves = tf.reshape(scaled, [-1, 2, size, D])
                pulled = tf.reverse(tf.matmul(tf.stack([back, each], axis=1), halves), axis=[1])
                sums = tf.stack([tf.reduce_sum(each, axis=2), tf.reduce_sum(back, axis=2)], axis=1)
                of_scaled += tf.reshape(pulled - halves * sums[..., None], tf.shape(scaled))
            else:
                of_scaled += _pull(each + back, first, second)
            along = tf.einsum("nsd,nsd->d" if lengthscales.shape.rank else "nsd,nsd->", of_scaled, scaled)
            return of_scaled / lengthscales, -along / lengthscales, of_Z

        return (between, tf.reduce_mean(grouped, axis=1)), gradient

    return exponentials(X, lengthscales, Z)


@check_shapes("Z: [M, D]", "return: [M, M]")
def kernel_matrix(base: Kernel, Z: TensorType, product: MatrixProduct | None = None) -> tf.Tensor:
    """
    k_g between all rows of Z. Of a squared exponential the derivative is written out: it is symmetric, so that one
    product is enough, where TensorFlow would make one for each side.

    :param product: multiplies matrices, instead of ``tf.matmul``.
    """
    factors, Z = _exponential_factors(base), tf.convert_to_tensor(Z)
    if not factors:
        return base(Z)

    @tf.custom_gradient
    def exponentials(scaled: tf.Tensor) -> Any:
        if product is None:
            K = tf.exp(-0.5 * _square_distances(scaled, scaled))
        else:
            squares = tf.einsum("msd,msd->ms", scaled, scaled)
            inner = product(scaled[0], scaled[0], transpose_b=True)[None]
            K = tf.exp(inner - 0.5 * squares[:, :, None] - 0.5 * squares[:, None, :])

        def gradient(of_K: tf.Tensor) -> tf.Tensor:
            each = of_K * K
            return _pull(each + tf.linalg.matrix_transpose(each), scaled, scaled)

        return K, gradient

    scaled = _columns(factors, Z) / _lengthscales(factors, Z.shape[1])
    return _variance(factors) * exponentials(scaled[None])[0]


def _square_distances(A: tf.Tensor, B: tf.Tensor) -> tf.Tensor:
    """‖a − b‖² for the rows of each pair of matrices, [N, a, D] and [N, b, D] → [N, a, b]"""
    squares = [tf.einsum("nsd,nsd->ns", side, side) for side in (A, B)]
    return squares[0][:, :, None] + squares[1][:, None, :] - 2 * tf.matmul(A, B, transpose_b=True)


def _pull(weight: tf.Tensor, A: tf.Tensor, B: tf.Tensor) -> tf.Tensor:
    """Σ_b w_ab (b − a), [N, a, D]: the derivative of Σ_ab w_ab (−½ ‖a − b‖²) by a."""
    return tf.matmul(weight, B) - A * tf.reduce_sum(weight, axis=2)[:, :, None]
