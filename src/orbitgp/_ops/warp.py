"""Bilinear sampling of images at any points, exact at the pixels themselves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType

from orbitgp._ops.fusion import Fused


def pixel_coordinates(height: int, width: int) -> tuple[float, np.ndarray, np.ndarray]:
    """
    x to the right and y downwards from the centre of the image, both divided by half the longer side.

    :return: half the longer side in pixels; x [1, W]; y [H, 1]
    """
    half = (max(height, width) - 1) / 2
    x, y = (np.arange(width) - (width - 1) / 2) / half, (np.arange(height) - (height - 1) / 2) / half
    return half, x[None, :], y[:, None]


@check_shapes("images: [N, H, W, C]", "dx: [N, S, H, W]", "dy: [N, S, H, W]", "return: [N, S, H, W, C]")
def displace(images: TensorType, dx: TensorType, dy: TensorType) -> tf.Tensor:
    """
    Pixel (i, j) of draw s shows image n at row i + dy and column j + dx, between pixels by bilinear interpolation
    and zero outside. Coordinates are integers plus a displacement, so a displacement of zero returns the image bit
    by bit.

    :param images: [N, H, W, C]
    :param dx: [N, S, H, W] displacement along columns, in pixels.
    :param dy: [N, S, H, W] displacement along rows, in pixels.
    :return: [N, S, H, W, C]
    """
    images, dx, dy = (tf.convert_to_tensor(tensor) for tensor in (images, dx, dy))
    return _fused_displace((images, dx, dy), dx.shape)


@check_shapes("images: [N, H, W, C]", "maps: [N, S, 2, 3]", "return: [N, S, H, W, C]")
def displace_affinely(images: TensorType, maps: TensorType) -> tf.Tensor:
    """
    Pixel p of draw s shows image n at A p + t, in the coordinates of :func:`pixel_coordinates`.

    :param images: [N, H, W, C], with H and W known.
    :param maps: [N, S, 2, 3], the matrix [A | t] of each draw.
    :return: [N, S, H, W, C]
    """
    images, maps = tf.convert_to_tensor(images), tf.convert_to_tensor(maps)
    return _fused_displace_affinely((images, maps), [*maps.shape[:2], *images.shape[1:3]])


def _displace_affinely(images: tf.Tensor, maps: tf.Tensor) -> tf.Tensor:
    height, width = images.shape[1:3]
    half, x, y = (tf.constant(part, maps.dtype) for part in pixel_coordinates(height, width))
    # (A − I) p + t: exactly zero for the identity. Written out, it becomes part of the loops that it is used in; a GPU
    # would write the result of a product of matrices, and read it back several times.
    steps = half * (maps - tf.eye(2, 3, dtype=maps.dtype))
    dx, dy = (row[0] * x + row[1] * y + row[2] for row in _entries(steps))
    return _displace(images, dx, dy)


def _entries(maps: tf.Tensor) -> list[list[tf.Tensor]]:
    """[N, S, 2, 3] → two rows of three tensors [N, S, 1, 1]"""
    return [tf.unstack(row[..., None, None], axis=2) for row in tf.unstack(maps, axis=2)]


def _displace(images: tf.Tensor, dx: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
    N, H, W, C = tf.unstack(tf.shape(images))
    dtype = images.dtype
    one = tf.ones([], dtype)
    columns = dx + tf.range(tf.cast(W, dtype), dtype=dtype)[None, :]
    rows = dy + tf.range(tf.cast(H, dtype), dtype=dtype)[:, None]
    x, left = _cell(columns, W)
    y, top = _cell(rows, H)
    # cells are numbered in floating point, exact below 2²⁴: integer arithmetic of TensorFlow has no GPU kernels
    cell = tf.cast(top * (tf.cast(W, dtype) + one) + left, tf.int32)
    cells = tf.reshape(_cell_polynomials(images), [N, (H + 1) * (W + 1), 4 * C])
    return _interpolate(cells, cell, x, y)


_fused_displace = Fused(_displace)
_fused_displace_affinely = Fused(_displace_affinely)


def _cell(coordinate: tf.Tensor, length: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param coordinate: in pixels; anything at or beyond one pixel outside falls on the zeros around the image.
    :return: the position inside its cell, in [0, 1], and the cell's number, 0 for the one that begins at pixel −1,
        a whole number in floating point.
    """
    end = tf.cast(length, coordinate.dtype)
    inside = tf.clip_by_value(coordinate, -tf.ones([], coordinate.dtype), end)
    begin = tf.minimum(tf.floor(inside), end - 1)
    return inside - begin, begin + 1


def _cell_polynomials(images: tf.Tensor) -> tf.Tensor:
    """
    Coefficients of a + b x + c y + d x y in each cell between four pixels, the ring of zeros included: one index for
    all four, and the derivatives come from the same four.

    :return: [N, H + 1, W + 1, 4 C]
    """
    padded = tf.pad(images, [[0, 0], [1, 1], [1, 1], [0, 0]])
    a, right = padded[:, :-1, :-1], padded[:, :-1, 1:]
    below, across = padded[:, 1:, :-1], padded[:, 1:, 1:]
    return tf.concat([a, right - a, below - a, across - right - below + a], axis=-1)


@tf.custom_gradient
def _interpolate(
    cells: tf.Tensor, index: tf.Tensor, x: tf.Tensor, y: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor | None, ...]]]:
    """
    a + b x + c y + d x y for each index. The gradient gathers again instead of keeping what was gathered, which
    is five times the size of the result and would set the peak of a training step's memory.

    :param cells: [N, K, 4 C]
    :param index: [N, ...] into the cells of each image.
    :param x: [N, ...] horizontal positions inside the cells.
    :param y: [N, ...] vertical positions inside the cells.
    :return: [N, ..., C]
    """

    def coefficients() -> list[tf.Tensor]:  # each by itself: XLA makes them part of the loop that they are used in
        return [tf.gather(part, index, batch_dims=1) for part in tf.split(cells, 4, axis=-1)]

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor | None, ...]:
        _, b, c, d = coefficients()
        of_x = tf.reduce_sum(upstream * (b + y[..., None] * d), axis=-1)
        of_y = tf.reduce_sum(upstream * (c + x[..., None] * d), axis=-1)
        xs, ys = x[..., None], y[..., None]
        terms = tf.concat([upstream, upstream * xs, upstream * ys, upstream * xs * ys], axis=-1)
        N, K = tf.shape(cells, tf.int64)[0], tf.shape(cells, tf.int64)[1]
        first = tf.reshape(tf.range(N) * K, [-1] + [1] * (len(index.shape) - 1))
        flat = tf.math.unsorted_segment_sum(terms, first + tf.cast(index, tf.int64), N * K)
        return tf.reshape(flat, tf.shape(cells)), None, of_x, of_y

    a, b, c, d = coefficients()
    xs, ys = x[..., None], y[..., None]
    return a + xs * b + ys * (c + xs * d), gradient
