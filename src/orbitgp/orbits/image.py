"""Orbits of images under rotations and affine maps."""

from __future__ import annotations

import abc
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.base import TensorType

from orbitgp import checks
from orbitgp._ops.bijectors import Reflect
from orbitgp._ops.warp import displace_affinely, pixel_coordinates
from orbitgp.orbits.base import FiniteOrbit, Orbit

DEGREE = 180.0 / np.pi  #: degrees in a radian

TRANSFORMS = ("fold", "sigmoid")


class ImageOrbit(Orbit):
    """
    An orbit of images [H, W, C], flattened row by row.

    Coordinates are x to the right and y downwards from the centre of the image, and both are divided by half the
    longer side, h = (max(H, W) − 1)/2 pixels: a square image spans [−1, 1]² between the centres of its corner
    pixels, and a rotation stays rigid in an image that is not square.
    """

    def __init__(self, shape: Any, name: str | None = None) -> None:
        """
        :param shape: (H, W) or (H, W, C) of the images behind the rows of X.
        """
        super().__init__(name=name)
        self.shape = checks.image_shape(shape)

    def _images(self, X: TensorType) -> tf.Tensor:
        """[N, D] → [N, H, W, C]"""
        X = tf.convert_to_tensor(X)
        D = int(np.prod(self.shape))
        if X.shape[-1] is not None and X.shape[-1] != D:
            raise ValueError(f"X has {X.shape[-1]} columns, images of shape {self.shape} have {D} values")
        return tf.reshape(X, [-1, *self.shape])

    def _coordinates(self, dtype: tf.DType) -> tuple[float, tf.Tensor, tf.Tensor]:
        """
        :return: h in pixels, x [1, W], y [H, 1]
        """
        half, x, y = pixel_coordinates(*self.shape[:2])
        return half, tf.constant(x, dtype), tf.constant(y, dtype)


class AffineOrbit(ImageOrbit):
    """The image at point p of a draw is the input at A p + t; a subclass says how u becomes A and t."""

    @abc.abstractmethod
    @check_shapes("U: [N, S, num_uniforms]", "return: [N, S, 2, 3]")
    def matrices(self, U: TensorType) -> tf.Tensor:
        """
        :param U: [N, S, num_uniforms]
        :return: [N, S, 2, 3], the matrix [A | t] of each draw.
        """

    @inherit_check_shapes
    def apply(self, X: tf.Tensor, U: tf.Tensor) -> tf.Tensor:
        """Samples each image at A p + t."""
        return warp_affine(self, X, self.matrices(U))


@check_shapes("X: [N, D]", "maps: [N, S, 2, 3]", "return: [N, S, D]")
def warp_affine(orbit: ImageOrbit, X: TensorType, maps: TensorType) -> tf.Tensor:
    """
    :param X: [N, D] images of the orbit's shape.
    :param maps: [N, S, 2, 3], the matrix [A | t] of each draw.
    :return: [N, S, D]
    """
    warped = displace_affinely(orbit._images(X), maps)
    return tf.reshape(warped, tf.concat([tf.shape(maps)[:2], [np.prod(orbit.shape)]], axis=0))


@check_shapes("radians: [N, S]", "return: [N, S, 2, 3]")
def rotation_matrices(radians: TensorType) -> tf.Tensor:
    """
    :param radians: [N, S], counter-clockwise as one sees it, as ``numpy.rot90`` turns.
    :return: [N, S, 2, 3]
    """
    cos, sin, zero = tf.cos(radians), tf.sin(radians), tf.zeros_like(radians)
    return tf.stack([tf.stack([cos, -sin, zero], -1), tf.stack([sin, cos, zero], -1)], -2)


class Rotation(AffineOrbit):
    """Rotation by an angle ~ U(−α, α)."""

    def __init__(
        self,
        shape: Any,
        alpha: float = 45.0,
        trainable: bool = True,
        transform: str = "fold",
        name: str | None = None,
    ) -> None:
        """
        :param alpha: largest angle in degrees, in [0, 180]. At exactly 0 the gradient is one-sided, since bilinear
            interpolation has a kink at every pixel: start a little above.
        :param trainable: whether α is learned.
        :param transform: how α stays in [0°, 180°]. ``"fold"``: a number in radians, folded at both ends, so that
            learning can start at any angle, ±180° included; ``"sigmoid"``: 180° σ(·), as in the authors' released code,
            which cannot start at the ends, where its slope vanishes.
        """
        super().__init__(shape, name=name)
        alpha = checks.number("alpha", alpha, least=0.0, most=180.0)
        if checks.one_of("transform", transform, TRANSFORMS) == "sigmoid" and alpha in (0.0, 180.0):
            raise ValueError(f"alpha must lie between 0 and 180 with transform='sigmoid', got {alpha:g}")
        sigmoid = tfp.bijectors.Sigmoid(*tf.constant([0.0, 180.0], gpflow.default_float()))
        behind = Reflect(180.0, unit=DEGREE) if transform == "fold" else sigmoid
        self.alpha = Parameter(alpha, transform=behind, trainable=trainable)

    @property
    def num_uniforms(self) -> int:
        """One uniform, the angle."""
        return 1

    @inherit_check_shapes
    def matrices(self, U: TensorType) -> tf.Tensor:
        """Rotations by α (2u − 1)."""
        U = tf.convert_to_tensor(U)
        alpha = tf.cast(self.alpha, U.dtype) / DEGREE
        return rotation_matrices(alpha * (2 * U[:, :, 0] - 1))


class QuantisedRotation(ImageOrbit, FiniteOrbit):
    """Rotations by k · 360°/P, k = 0 … P−1, each equally likely."""

    def __init__(self, shape: Any, order: int, name: str | None = None) -> None:
        """
        :param order: P, the number of angles.
        """
        super().__init__(shape, name=name)
        self._order = checks.integer("order", order, least=1)

    @property
    def order(self) -> int:
        """The number of angles."""
        return self._order

    @inherit_check_shapes
    def full(self, X: TensorType) -> tf.Tensor:
        """Every angle of every image."""
        return self._rotate(X, tf.range(self.order, dtype=tf.int32)[None, :])

    @inherit_check_shapes
    def apply(self, X: tf.Tensor, U: tf.Tensor) -> tf.Tensor:
        """Turns by the drawn angles only, where the listing would turn by all P."""
        return self._rotate(X, self.chosen_points(U))

    def _rotate(self, X: TensorType, steps: tf.Tensor) -> tf.Tensor:
        X = tf.convert_to_tensor(X)
        radians = tf.cast(steps, X.dtype) * (2 * np.pi / self.order)
        maps = rotation_matrices(tf.broadcast_to(radians, [tf.shape(X)[0], tf.shape(steps)[1]]))
        return warp_affine(self, X, maps)


class BoxAffineOrbit(AffineOrbit):
    """Affine maps whose parameters φ are uniform in a learned box, φ = lower + u (upper − lower)."""

    names: tuple[str, ...]
    identity: tuple[float, ...]
    #: change of each parameter for a unit change of what is learned: angles are in degrees, but learned in radians
    units: tuple[float, ...]

    def __init__(
        self,
        shape: Any,
        lower: Any = None,
        upper: Any = None,
        spread: float = 0.05,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        """
        :param lower: φ_min, one number for each of ``names``; by default the identity less ``spread``.
        :param upper: φ_max; by default the identity plus ``spread``. The two need no order: a box is the same
            when its ends change places.
        :param spread: half-width of the default box; for an angle in radians (0.05 is 2.9°).
        :param trainable: whether both ends are learned.
        """
        super().__init__(shape, name=name)
        spread = checks.number("spread", spread, least=0.0)
        centre, count = np.array(self.identity), len(self.identity)
        units = np.array(self.units)
        lower = centre - spread * units if lower is None else checks.vector("lower", lower, count)
        upper = centre + spread * units if upper is None else checks.vector("upper", upper, count)
        self.lower, self.upper = (
            Parameter(end, transform=tfp.bijectors.Scale(units), trainable=trainable) for end in (lower, upper)
        )

    @property
    def num_uniforms(self) -> int:
        """One uniform for each parameter."""
        return len(self.identity)

    def _parameters(self, U: TensorType) -> list[tf.Tensor]:
        """[N, S, num_uniforms] → num_uniforms times [N, S]"""
        U = tf.convert_to_tensor(U)
        lower, upper = tf.cast(self.lower, U.dtype), tf.cast(self.upper, U.dtype)
        # in this form a box without width gives its point exactly, such as the identity
        return tf.unstack(lower + U * (upper - lower), axis=-1)


class Affine(BoxAffineOrbit):
    """The paper's six-parameter affine maps: [A | t] has its own interval for each entry."""

    names = ("a_xx", "a_xy", "t_x", "a_yx", "a_yy", "t_y")
    identity = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    units = (1.0,) * 6

    @inherit_check_shapes
    def matrices(self, U: TensorType) -> tf.Tensor:
        """The box's six numbers, row by row."""
        a, b, c, d, e, f = self._parameters(U)
        return tf.stack([tf.stack([a, b, c], -1), tf.stack([d, e, f], -1)], -2)


class InterpretableAffine(BoxAffineOrbit):
    """
    Affine maps by what they do: A = R(angle) · diag(scale) · [[1, shear_x], [shear_y, 1]], t = shift.

    The angle is in degrees. The map takes a point of the output to a point of the input, so a scale above one
    shrinks what one sees, and a shift to the right moves it to the left.
    """

    names = ("angle", "scale_x", "scale_y", "shear_x", "shear_y", "shift_x", "shift_y")
    identity = (0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
    units = (DEGREE, *(1.0,) * 6)

    @inherit_check_shapes
    def matrices(self, U: TensorType) -> tf.Tensor:
        """The product above, written out."""
        angle, scale_x, scale_y, shear_x, shear_y, shift_x, shift_y = self._parameters(U)
        cos, sin = tf.cos(angle / DEGREE), tf.sin(angle / DEGREE)
        row_x = [cos * scale_x - sin * scale_y * shear_y, cos * scale_x * shear_x - sin * scale_y, shift_x]
        row_y = [sin * scale_x + cos * scale_y * shear_y, sin * scale_x * shear_x + cos * scale_y, shift_y]
        return tf.stack([tf.stack(row_x, -1), tf.stack(row_y, -1)], -2)


class Translation(BoxAffineOrbit):
    """Shifts in x and y; a shift of one is half of the longer side. To the right moves what one sees to the left."""

    names = ("shift_x", "shift_y")
    identity = (0.0, 0.0)
    units = (1.0, 1.0)

    @inherit_check_shapes
    def matrices(self, U: TensorType) -> tf.Tensor:
        """[I | shift]"""
        x, y = self._parameters(U)
        one, zero = tf.ones_like(x), tf.zeros_like(x)
        return tf.stack([tf.stack([one, zero, x], -1), tf.stack([zero, one, y], -1)], -2)


class Scaling(BoxAffineOrbit):
    """One factor for both axes: above one it shrinks what one sees."""

    names = ("scale",)
    identity = (1.0,)
    units = (1.0,)

    @inherit_check_shapes
    def matrices(self, U: TensorType) -> tf.Tensor:
        """[scale I | 0]"""
        (scale,) = self._parameters(U)
        zero = tf.zeros_like(scale)
        return tf.stack([tf.stack([scale, zero, zero], -1), tf.stack([zero, scale, zero], -1)], -2)
