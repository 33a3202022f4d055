"""A transform for parameters that are confined to an interval."""

from __future__ import annotations

import sys

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from orbitgp import checks


class Reflect(tfp.bijectors.Bijector):
    r"""
    Real line → [0, upper], folded at both ends ("walls"), times ``unit``.

    A sigmoid cannot start at a wall, and loses its gradient near one. A fold has the slope ±unit everywhere, and a step
    through a wall is reflected. Rotations need this to start learning at ±180°, and so do amplitudes, whose sign does
    not matter.
    """

    def __init__(self, upper: float = np.inf, unit: float = 1.0) -> None:
        """
        :param upper: the upper wall in constrained units; infinity for none.
        :param unit: constrained change for an unconstrained change of one.
        """
        parameters = dict(locals())
        if upper != np.inf:
            checks.number("upper", upper, least=sys.float_info.min)
        checks.number("unit", unit, least=sys.float_info.min)
        super().__init__(
            forward_min_event_ndims=0,
            is_constant_jacobian=True,
            parameters=parameters,
            dtype=gpflow.default_float(),
            name="reflect",
        )
        self._upper, self._unit = float(upper), float(unit)

    def _forward(self, x: tf.Tensor) -> tf.Tensor:
        x = tf.where(x < 0, -x, x)  # slope +1 at zero itself, where tf.abs has slope 0 and would be stuck
        if np.isfinite(self._upper):
            wall = tf.constant(self._upper / self._unit, x.dtype)
            x = tf.math.floormod(x, 2 * wall)
            x = tf.where(x > wall, 2 * wall - x, x)
        y = x * self._unit
        # rounding may put the wall's own image slightly outside; this removes the excess, but not the slope
        return y - tf.stop_gradient(tf.nn.relu(y - tf.constant(self._upper, y.dtype)))

    def _inverse(self, y: tf.Tensor) -> tf.Tensor:
        tf.debugging.assert_greater_equal(y, tf.zeros([], y.dtype), "below the wall at 0")
        tf.debugging.assert_less_equal(y, tf.constant(self._upper, y.dtype), f"above the wall at {self._upper}")
        return y / self._unit

    def _forward_log_det_jacobian(self, x: tf.Tensor) -> tf.Tensor:
        return tf.math.log(tf.constant(self._unit, x.dtype))
