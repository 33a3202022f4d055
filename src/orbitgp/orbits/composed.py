"""One orbit after another."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from check_shapes import inherit_check_shapes

from orbitgp import checks
from orbitgp.orbits.base import Orbit


class Composed(Orbit):
    """x_a = t_K(… t_2(t_1(x, u_1), u_2) …, u_K), each step with uniforms of its own."""

    def __init__(self, orbits: Sequence[Orbit], name: str | None = None) -> None:
        """
        :param orbits: the steps, first to last.
        """
        super().__init__(name=name)
        if not isinstance(orbits, Sequence):
            raise TypeError(f"orbits must be a list of orbits, got {type(orbits).__name__}")
        if not orbits:
            raise ValueError("orbits must name at least one orbit, got none")
        self.orbits = [checks.instance(f"orbits[{i}]", orbit, Orbit) for i, orbit in enumerate(orbits)]

    @property
    def num_uniforms(self) -> int:
        """The uniforms of all steps."""
        return sum(orbit.num_uniforms for orbit in self.orbits)

    def point_length(self, input_length: int) -> int:
        """The length of a point after the last step."""
        for orbit in self.orbits:
            input_length = orbit.point_length(input_length)
        return input_length

    @inherit_check_shapes
    def apply(self, X: tf.Tensor, U: tf.Tensor) -> tf.Tensor:
        """Each step takes every draw of the step before as an input of its own."""
        N, S = tf.shape(X)[0], tf.shape(U)[1]
        first, *rest = tf.split(U, [orbit.num_uniforms for orbit in self.orbits], axis=-1)
        drawn = self.orbits[0].transform(X, first)
        for orbit, uniforms in zip(self.orbits[1:], rest, strict=True):
            single = tf.reshape(uniforms, [N * S, 1, orbit.num_uniforms])
            moved = orbit.transform(tf.reshape(drawn, [N * S, tf.shape(drawn)[2]]), single)
            drawn = tf.reshape(moved, [N, S, tf.shape(moved)[2]])
        return drawn
