"""Products of float32 matrices by a GPU's fast bfloat16 units, in three passes for more precision."""

from __future__ import annotations

import tensorflow as tf


def worthwhile(dtype: tf.DType, compiled: bool) -> bool:
    """Whether :func:`three_passes` works and saves time: for float32, in what XLA compiles for a GPU."""
    return compiled and dtype == tf.float32 and bool(tf.config.list_logical_devices("GPU"))


def three_passes(a: tf.Tensor, b: tf.Tensor, transpose_a: bool = False, transpose_b: bool = False) -> tf.Tensor:
    """
    a b with a = a₁ + a₂ and b = b₁ + b₂ in numbers of eight bits each: a₁ b₁ + a₁ b₂ + a₂ b₁, added up in float32, as
    one product of three times the length. What is left out is of the order of 2⁻¹⁷ of each product of two numbers, with
    random signs.

    :param a: [n, k], float32, or [k, n] to be transposed.
    :param b: [k, m], likewise.
    :return: [n, m], float32.
    """
    (a_1, a_2), (b_1, b_2) = _halves(a), _halves(b)
    along = (0 if transpose_a else 1), (1 if transpose_b else 0)
    return tf.raw_ops.BatchMatMulV3(
        x=tf.concat([a_1, a_1, a_2], axis=along[0]),
        y=tf.concat([b_1, b_2, b_1], axis=along[1]),
        adj_x=transpose_a,
        adj_y=transpose_b,
        Tout=tf.float32,
    )


def _halves(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """x rounded to bfloat16, and what is left; by its bits, as XLA takes a cast to and fro for nothing."""
    bits = tf.bitcast(x, tf.int32) + 0x8000
    rounded = tf.bitcast(tf.bitwise.bitwise_and(bits, tf.constant(-0x10000, tf.int32)), tf.float32)
    return tf.cast(rounded, tf.bfloat16), tf.cast(x - rounded, tf.bfloat16)
