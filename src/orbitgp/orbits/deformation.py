"""Local deformations of images, after infiniteMNIST (Loosli, Canu and Bottou, 2007)."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow import Parameter

from orbitgp import checks
from orbitgp._ops.bijectors import Reflect
from orbitgp._ops.warp import displace
from orbitgp.orbits.image import ImageOrbit

GENERATORS = ("shift_x", "shift_y", "rotation", "scaling", "hyperbolic_axis", "hyperbolic_diagonal")
MODES = ("warp", "tangent")


def gaussian_smoother(length: int, width: float) -> np.ndarray:
    """
    :param width: standard deviation of the Gaussian, in pixels, more than 0.
    :return: [length, length], the matrix that smooths a signal with zeros beyond its ends; rows of the untruncated
        Gaussian sum to one.
    """
    distance = np.arange(length)[:, None] - np.arange(length)[None, :]
    reach = np.arange(-int(np.ceil(8 * width)), int(np.ceil(8 * width)) + 1)
    return np.exp(-0.5 * (distance / width) ** 2) / np.sum(np.exp(-0.5 * (reach / width) ** 2))


def smooth_noise_basis(length: int, width: float, kept: float = 0.999) -> np.ndarray:
    """
    A basis of smoothed white noise. With the smoother A = U diag(s) Vᵀ, smoothed white noise A E Bᵀ has the same law as
    (U s) E' (U' s')ᵀ, and all but the few largest s are nearly zero: a field of H × W pixels needs only some ten
    by ten random numbers.

    :param kept: share of the variance Σ s² that is kept.
    :return: [length, rank], the columns of U diag(s) that carry it.
    """
    U, s, _ = np.linalg.svd(gaussian_smoother(length, width))
    rank = int(np.searchsorted(np.cumsum(s**2), kept * np.sum(s**2)) + 1)
    return U[:, :rank] * s[:rank]


class LocalDeformation(ImageOrbit):
    """
    Displacement u(p) = deformation · F(p) + Σ_j generators_j ε_j v_j(p), plus thickening, with ε ~ U(−1, 1).

    F is white noise smoothed by a Gaussian and scaled to a root mean square of one in each draw; the v_j are
    (1, 0), (0, 1), (y, −x), (x, y), (x, −y) and (y, x). ``warp`` shows x + thickening ε ‖∇x̃‖ at p + u;
    ``tangent`` adds u · ∇x̃ + thickening ε ‖∇x̃‖ to the image, the form of infiniteMNIST, where x̃ is the image
    smoothed a little. Lengths are in the coordinates of :class:`ImageOrbit`: 1 is half the image.
    """

    def __init__(
        self,
        shape: Any,
        deformation: float = 0.02,
        generators: Any = (0.02, 0.02, 0.02, 0.02, 0.02, 0.02),
        thickening: float = 0.02,
        *,
        mode: str = "warp",
        field_width: float = 0.3,
        gradient_width: float = 0.9,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        """
        :param deformation: amplitude of the smooth field.
        :param generators: amplitudes of the six generators, in the order of ``GENERATORS``.
        :param thickening: amplitude of the change in stroke width.
        :param mode: ``"warp"`` or ``"tangent"``.
        :param field_width: standard deviation of the Gaussian that smooths the field, in half images.
        :param gradient_width: standard deviation of the Gaussian that smooths x̃, in pixels.
        :param trainable: whether the amplitudes, none of them negative, are learned.
        """
        super().__init__(shape, name=name)
        self.mode = checks.one_of("mode", mode, MODES)
        generators = checks.vector("generators", generators, len(GENERATORS))
        if np.any(generators < 0):
            raise ValueError(f"generators must not be negative, got {generators}")

        def amplitude(value: Any) -> Parameter:
            return Parameter(value, transform=Reflect(), trainable=trainable)

        self.deformation = amplitude(checks.number("deformation", deformation, least=0.0))
        self.generators = amplitude(generators)
        self.thickening = amplitude(checks.number("thickening", thickening, least=0.0))

        height, width, _ = self.shape
        pixels = checks.number("field_width", field_width, least=1e-3) * (max(height, width) - 1) / 2
        self._rows, self._columns = (smooth_noise_basis(side, pixels) for side in (height, width))
        gradient_width = checks.number("gradient_width", gradient_width, least=1e-3)
        self._smoothers = [gaussian_smoother(side, gradient_width) for side in (height, width)]

    @property
    def num_uniforms(self) -> int:
        """Those of six generators, the thickening and two fields, in this order: a Sobol set's first are its best."""
        return len(GENERATORS) + 1 + 2 * self._rows.shape[1] * self._columns.shape[1]

    @inherit_check_shapes
    def apply(self, X: tf.Tensor, U: tf.Tensor) -> tf.Tensor:
        """Deforms each image as described above."""
        images = self._images(X)
        dtype, last = images.dtype, len(GENERATORS)
        signs = 2 * U[:, :, : last + 1] - 1
        ux, uy = self._displacement(signs[:, :, :last], U[:, :, last + 1 :])
        along_x, along_y = self._image_gradient(images)
        steepness = _norm(along_x, along_y)
        thicker = (tf.cast(self.thickening, dtype) * signs[:, :, last])[:, :, None, None, None]
        if self.mode == "warp":
            h, _, _ = self._coordinates(dtype)
            both = displace(tf.concat([images, steepness], axis=-1), h * ux, h * uy)
            shown, edges = tf.split(both, 2, axis=-1)
            drawn = shown + thicker * edges
        else:
            moved = ux[..., None] * along_x[:, None] + uy[..., None] * along_y[:, None]
            drawn = images[:, None] + moved + thicker * steepness[:, None]
        return tf.reshape(drawn, tf.concat([tf.shape(U)[:2], [np.prod(self.shape)]], axis=0))

    def _displacement(self, signs: tf.Tensor, field_uniforms: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """
        :param signs: [N, S, 6] in (−1, 1).
        :param field_uniforms: [N, S, 2 · ranks]
        :return: u_x and u_y, each [N, S, H, W]
        """
        dtype = signs.dtype
        field = tf.cast(self.deformation, dtype) * self._smooth_field(field_uniforms)
        _, x, y = self._coordinates(dtype)
        shift_x, shift_y, turn, grow, axis, diagonal = tf.unstack(
            (tf.cast(self.generators, dtype) * signs)[..., None, None], axis=2
        )
        ux = field[:, :, 0] + shift_x + (grow + axis) * x + (diagonal + turn) * y
        uy = field[:, :, 1] + shift_y + (grow - axis) * y + (diagonal - turn) * x
        return ux, uy

    def _smooth_field(self, field_uniforms: tf.Tensor) -> tf.Tensor:
        """
        :param field_uniforms: [N, S, 2 · rank_rows · rank_columns]
        :return: [N, S, 2, H, W], smooth, of root mean square one in each draw.
        """
        dtype = field_uniforms.dtype
        rows, columns = tf.constant(self._rows, dtype), tf.constant(self._columns, dtype)
        ranks = [2, rows.shape[1], columns.shape[1]]
        noise = tf.reshape(tf.math.ndtri(field_uniforms), tf.concat([tf.shape(field_uniforms)[:2], ranks], 0))
        field = tf.einsum("hr,nscrq,wq->nschw", rows, noise, columns)
        size = tf.sqrt(tf.reduce_mean(tf.square(field), axis=[2, 3, 4], keepdims=True))
        return tf.math.divide_no_nan(field, size)

    def _image_gradient(self, images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """
        Central differences of the smoothed image, in units of intensity per half image.

        :param images: [N, H, W, C]
        :return: ∂x̃/∂x and ∂x̃/∂y, each [N, H, W, C]
        """
        h, _, _ = self._coordinates(images.dtype)
        rows, columns = (tf.constant(smoother, images.dtype) for smoother in self._smoothers)
        smooth = tf.einsum("ih,nhwc,jw->nijc", rows, images, columns)
        padded = tf.pad(smooth, [[0, 0], [1, 1], [1, 1], [0, 0]])
        along_x = (padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]) * (h / 2)
        along_y = (padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]) * (h / 2)
        return along_x, along_y


def _norm(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """√(a² + b²), with derivative zero where both are zero (the background of most images)."""
    square = tf.square(a) + tf.square(b)
    positive = square > 0
    return tf.where(positive, tf.sqrt(tf.where(positive, square, tf.ones_like(square))), tf.zeros_like(square))
