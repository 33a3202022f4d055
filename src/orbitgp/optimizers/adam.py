"""Adam, with a step scale for each number as usual, or one for each row."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from gpflow.base import TensorType

from orbitgp import checks
from orbitgp.optimizers.recipe import INDUCING_SCALES

BETA_1 = 0.9

#: a memory of a hundred steps for the scale of gradients: they shrink by orders of magnitude as q settles
BETA_2 = 0.99

EPSILON = 1e-7


class Adam:
    """
    m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g², x ← x − rate · m̂ / (√v̂ + ε),
    with m̂ and v̂ corrected for their start at 0.

    This is one TensorFlow operation for each variable. Keras has some twenty, a third of all in a training step.

    With a scale for each row, v [rows, 1, …] follows the mean of g² over the row, so that a row moves along m. Rows of
    inducing points are images: with scales of their own, pixels with hardly any gradient take as long steps as others,
    for which a kernel of distances has no reason.
    """

    def __init__(self, variables: Sequence[tf.Variable], scale: str = "element") -> None:
        """
        :param variables: the variables to train.
        :param scale: ``"element"`` or ``"row"``.
        """
        self._by_row = checks.one_of("scale", scale, INDUCING_SCALES) == "row"
        self._moved = list(variables)
        self._first = [tf.Variable(tf.zeros_like(variable), trainable=False) for variable in variables]
        self._second = [tf.Variable(tf.zeros_like(self._squares(variable)), trainable=False) for variable in variables]

    @property
    def variables(self) -> list[tf.Variable]:
        """Adam's own state: the first and second moments."""
        return [*self._first, *self._second]

    def apply(self, gradients: Sequence[tf.Tensor], rate: TensorType, number: tf.Tensor) -> None:
        """
        :param gradients: gradients of the loss, for each variable.
        :param rate: [] the learning rate of this step.
        :param number: [] the number of steps before this one.
        """
        rate = tf.convert_to_tensor(rate)
        beta_1, beta_2, epsilon = (tf.constant(value, rate.dtype) for value in (BETA_1, BETA_2, EPSILON))
        power = tf.cast(number + 1, rate.dtype)
        settings = dict(
            beta1_power=beta_1**power, beta2_power=beta_2**power, lr=rate, beta1=beta_1, beta2=beta_2, epsilon=epsilon
        )
        for gradient, variable, first, second in zip(gradients, self._moved, self._first, self._second, strict=True):
            gradient = tf.convert_to_tensor(gradient)  # a table's is sparse
            if self._by_row:
                first.assign(beta_1 * first + (1 - beta_1) * gradient)
                second.assign(beta_2 * second + (1 - beta_2) * self._squares(gradient))
                length = rate * tf.sqrt(1 - settings["beta2_power"]) / (1 - settings["beta1_power"])
                variable.assign_sub(length * first / (tf.sqrt(second) + epsilon))
            else:
                tf.raw_ops.ResourceApplyAdam(
                    var=variable.handle, m=first.handle, v=second.handle, grad=gradient, **settings
                )

    def _squares(self, gradient: TensorType) -> tf.Tensor:
        """[rows, …] → what the second moment is a mean of: [rows, …], or [rows, 1, …]"""
        squares = tf.square(gradient)
        if not self._by_row or squares.shape.rank < 2:
            return squares
        return tf.reduce_mean(squares, axis=list(range(1, squares.shape.rank)), keepdims=True)
