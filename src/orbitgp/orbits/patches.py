"""Patches of images: a finite orbit whose points live in another space than the images."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from orbitgp import checks
from orbitgp.orbits.base import FiniteOrbit
from orbitgp.orbits.image import ImageOrbit


class Patches(ImageOrbit, FiniteOrbit):
    """
    All patches of size × size pixels, every ``stride`` pixels in both directions, each equally likely.

    f(x) = E_p g(x_p) is then the convolutional Gaussian process. A point is the patch's values [size, size, C],
    flattened row by row, and with ``location`` the x and y of its centre after them, in the coordinates of
    :class:`ImageOrbit`: a kernel on both makes f insensitive to small translations rather than to all of them.

    To average over the patches of transformed images, make the patches part of the base kernel,
    ``Invariant(Invariant(kernel, Patches(…)), Affine(…))``: every patch of every draw counts. Under ``Composed`` each
    draw is one patch at random, which has the same expectation and more noise.
    """

    def __init__(self, shape: Any, size: int, stride: int = 1, location: bool = True, name: str | None = None) -> None:
        """
        :param shape: (H, W) or (H, W, C) of the images.
        :param size: pixels along each side of a patch, at most the shorter side of the image.
        :param stride: pixels between two patches that follow each other.
        :param location: whether a point includes the place of its patch.
        """
        super().__init__(shape, name=name)
        height, width, channels = self.shape
        self._size = checks.integer("size", size, least=1, most=min(height, width))
        self._stride = checks.integer("stride", stride, least=1)
        self._counts = tuple((side - size) // stride + 1 for side in (height, width))
        self._values = size * size * channels
        self._location = bool(location)

    @property
    def order(self) -> int:
        """The number of patches."""
        return self._counts[0] * self._counts[1]

    @property
    def pixel_columns(self) -> slice:
        """Which columns of a point are the values of its patch."""
        return slice(0, self._values)

    @property
    def place_columns(self) -> slice | None:
        """Which columns of a point are the x and y of its patch; None without ``location``."""
        return slice(self._values, self._values + 2) if self._location else None

    def point_length(self, input_length: int) -> int:
        """The values of a patch, and its place."""
        return self._values + 2 * self._location

    @inherit_check_shapes
    def full(self, X: TensorType) -> tf.Tensor:
        """Every patch of every image, [N, P, size² C] or, with the place, [N, P, size² C + 2]."""
        images = self._images(X)
        # by rows, then by columns: 2 size slices, whose derivatives are pads and sums, where a gather's would scatter
        rows = self._shifted(images, axis=1)  # [N, rows, size, W, C]
        patches = self._shifted(rows, axis=3)  # [N, rows, size, columns, size, C]
        patches = tf.transpose(patches, [0, 1, 3, 2, 4, 5])
        points = tf.reshape(patches, [tf.shape(images)[0], self.order, self._values])
        if not self._location:
            return points
        places = tf.constant(self._places(), points.dtype)
        return tf.concat([points, tf.repeat(places[None], tf.shape(points)[0], axis=0)], axis=2)

    def _shifted(self, images: tf.Tensor, axis: int) -> tf.Tensor:
        """Splits an axis of pixels in two, the patch and the pixel inside it."""
        count = self._counts[0 if axis == 1 else 1]
        before, reach = (slice(None),) * axis, (count - 1) * self._stride + 1
        indices = [(*before, slice(i, i + reach, self._stride)) for i in range(self._size)]
        return tf.stack([images[index] for index in indices], axis=axis + 1)

    def _places(self) -> np.ndarray:
        """[P, 2], x and y of the centres."""
        (height, width), half = self.shape[:2], (max(self.shape[:2]) - 1) / 2
        firsts = [np.arange(count) * self._stride + (self._size - 1) / 2 for count in self._counts]
        y, x = ((first - (side - 1) / 2) / half for first, side in zip(firsts, (height, width), strict=True))
        return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
