"""Products of matrices: by a GPU's bfloat16 units in three passes; with the same bits on any number of threads."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

MatrixProduct = Callable[..., tf.Tensor]  #: as tf.matmul, of two matrices

#: rows, inner numbers and columns of blocks so small that TensorFlow gives each product of two to a single thread
ROWS, INNER, COLUMNS = 16, 32, 32


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


def steady_product(dtype: tf.DType) -> MatrixProduct:
    """The product for predictions, which must not depend on the number of threads."""
    # float32 products of oneDNN are steady themselves, and a GPU has no threads of this kind
    return tf.matmul if dtype != tf.float64 or tf.config.list_logical_devices("GPU") else steady


def steady(a: tf.Tensor, b: tf.Tensor, transpose_b: bool = False) -> tf.Tensor:
    """
    a b with the same bits whatever the number of threads. TensorFlow shares a large product among its threads, in
    blocks that depend on their number, and so does the order of sums. Here blocks are fixed. It takes about twice the
    time.

    :param a: [n, k]
    :param b: [k, m], or [m, k] to be transposed.
    :return: [n, m]
    """
    b = tf.transpose(b) if transpose_b else b
    n, m = tf.shape(a)[0], tf.shape(b)[1]
    left = tf.transpose(_blocks(a, ROWS, INNER), [0, 2, 1, 3])[:, :, None]  # [n', k', 1, ROWS, INNER]
    right = tf.transpose(_blocks(b, INNER, COLUMNS), [0, 2, 1, 3])[None]  # [1, k', m', INNER, COLUMNS]
    found = tf.transpose(tf.reduce_sum(tf.matmul(left, right), axis=1), [0, 2, 1, 3])  # [n', ROWS, m', COLUMNS]
    return tf.reshape(found, [tf.shape(found)[0] * ROWS, -1])[:n, :m]


def _blocks(matrix: tf.Tensor, rows: int, columns: int) -> tf.Tensor:
    """[n, m] → [n', rows, m', columns], filled up with zeros."""
    shape = tf.shape(matrix)
    counts = -(-shape[0] // rows), -(-shape[1] // columns)
    more = [[0, counts[0] * rows - shape[0]], [0, counts[1] * columns - shape[1]]]
    return tf.reshape(tf.pad(matrix, more), [counts[0], rows, counts[1], columns])
