"""What an orbit is: a differentiable map from uniform numbers to transformed inputs."""

from __future__ import annotations

import abc

import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import Module, TensorType

from orbitgp import checks
from orbitgp.orbits.sampling import portable, uniforms


class Orbit(Module, metaclass=abc.ABCMeta):
    """
    A distribution p(x_a | x), written x_a = t(x, u) with u uniform on (0, 1)^num_uniforms.

    A point x_a has E numbers: E = D, unless the orbit maps to another space, such as that of patches.

    A subclass says how many uniforms a draw takes (``num_uniforms``) and what they do (``apply``); each parameter is a
    ``gpflow.Parameter``, and the map is differentiable in it for fixed u (the reparameterisation trick).
    """

    @property
    @abc.abstractmethod
    def num_uniforms(self) -> int:
        """Number of uniforms that one draw takes."""

    def point_length(self, input_length: int) -> int:
        """
        :param input_length: D.
        :return: E, the length of a point.
        """
        return input_length

    @abc.abstractmethod
    @check_shapes("X: [N, D]", "U: [N, S, num_uniforms]", "return: [N, S, E]")
    def apply(self, X: tf.Tensor, U: tf.Tensor) -> tf.Tensor:
        """
        The map x_a = t(x, u). :meth:`transform` has checked the arguments: U has the right length and X's precision.
        """

    @check_shapes("X: [N, D]", "U: [N, S, num_uniforms]", "return: [N, S, E]")
    def transform(self, X: TensorType, U: TensorType) -> tf.Tensor:
        """
        The map x_a = t(x, u), after a check of its arguments.

        :param X: [N, D]
        :param U: [N, S, num_uniforms]; S draws for each input.
        :return: [N, S, E], in the precision of X.
        """
        X = tf.convert_to_tensor(X)
        U = tf.cast(U, X.dtype)
        if U.shape[2] != self.num_uniforms:
            raise ValueError(
                f"U must have {self.num_uniforms} uniforms a draw for {type(self).__name__}, got {U.shape[2]}"
            )
        return self.apply(X, U)

    @check_shapes("X: [N, D]", "return: [N, groups, size, E]")
    def sample(
        self, X: TensorType, groups: int, size: int, seed: TensorType, sampler: str = "sobol", *, shared: bool = False
    ) -> tf.Tensor:
        """
        Draws from p(x_a | x) in independent groups, see :func:`orbitgp.orbits.sampling.uniforms`.

        :param X: [N, D]
        :param groups: number of groups, independent of each other.
        :param size: draws in a group.
        :param seed: [2] integers that decide every draw.
        :param sampler: ``"sobol"`` or ``"iid"``: how the draws of one group depend on each other.
        :param shared: whether all inputs have the same uniforms, or each its own.
        :return: [N, groups, size, E]
        """
        X = tf.convert_to_tensor(X)
        N = tf.shape(X)[0]
        U = uniforms(1 if shared else N, groups, size, self.num_uniforms, seed, sampler, X.dtype)
        U = tf.repeat(U, N, axis=0) if shared else U
        drawn = self.transform(X, tf.reshape(U, [N, groups * size, self.num_uniforms]))
        return tf.reshape(drawn, [N, groups, size, tf.shape(drawn)[2]])


class FiniteOrbit(Orbit):
    """An orbit of P equally likely points, which can be listed, and drawn from without replacement."""

    @property
    @abc.abstractmethod
    def order(self) -> int:
        """P, the number of points."""

    @abc.abstractmethod
    @check_shapes("X: [N, D]", "return: [N, P, E]")
    def full(self, X: TensorType) -> tf.Tensor:
        """
        :param X: [N, D]
        :return: [N, P, E], every point of the orbit of every input.
        """

    @property
    def num_uniforms(self) -> int:
        """One uniform picks one of the P points."""
        return 1

    def chosen_points(self, U: tf.Tensor) -> tf.Tensor:
        """
        :param U: [N, S, 1]
        :return: [N, S], indices ⌊u P⌋, computed in float64 so that all precisions choose the same.
        """
        return tf.cast(tf.floor(tf.cast(U[:, :, 0], tf.float64) * self.order), tf.int32)

    @inherit_check_shapes
    def apply(self, X: tf.Tensor, U: tf.Tensor) -> tf.Tensor:
        """Gathers the chosen points of each orbit."""
        return tf.gather(self.full(X), self.chosen_points(U), batch_dims=1)

    @check_shapes("X: [N, D]", "return: [N, count, E]")
    def sample_without_replacement(self, X: TensorType, count: int, seed: TensorType) -> tf.Tensor:
        """
        :param X: [N, D]
        :param count: number of distinct points of each orbit, at most P.
        :param seed: [2] integers that decide every draw.
        :return: [N, count, E]; each subset of an orbit is equally likely, and independent for each input.
        """
        checks.integer("count", count, least=1, most=self.order)
        X = tf.convert_to_tensor(X)
        # integers, which XLA draws as the other devices do; of 64 bits, so that no two are the same
        keys = tf.random.stateless_uniform([tf.shape(X)[0], self.order], portable(seed), None, None, tf.int64)
        chosen = tf.argsort(keys, axis=1)[:, :count]
        return tf.gather(self.full(X), chosen, batch_dims=1)
