"""Additive Gaussian noise: the continuous orbit whose kernels have a closed form."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow import Parameter
from gpflow.utilities import positive

from orbitgp import checks
from orbitgp.orbits.base import Orbit


class GaussianNoise(Orbit):
    """x_a = x + scale · ε with ε ~ N(0, I): insensitivity in every direction, and the reference in tests."""

    def __init__(self, input_dim: int, scale: float = 0.1, trainable: bool = True, name: str | None = None) -> None:
        """
        :param input_dim: D, the length of an input.
        :param scale: standard deviation of the noise in each coordinate, more than 0.
        :param trainable: whether the scale is learned.
        """
        super().__init__(name=name)
        self._input_dim = checks.integer("input_dim", input_dim, least=1)
        if checks.number("scale", scale, least=0.0) == 0.0:
            raise ValueError("scale must be more than 0; orbitgp.orbits.Identity is the orbit without noise")
        self.scale = Parameter(scale, transform=positive(), trainable=trainable)

    @property
    def num_uniforms(self) -> int:
        """One uniform for each coordinate."""
        return self._input_dim

    def check_length(self, X: tf.Tensor) -> None:
        """Raises an error unless inputs are as long as the noise."""
        if X.shape[-1] is not None and X.shape[-1] != self._input_dim:
            raise ValueError(f"X has {X.shape[-1]} columns, the noise has {self._input_dim}")

    @inherit_check_shapes
    def apply(self, X: tf.Tensor, U: tf.Tensor) -> tf.Tensor:
        """X + scale Φ⁻¹(U)"""
        self.check_length(X)
        return X[:, None, :] + tf.cast(self.scale, X.dtype) * tf.math.ndtri(U)
