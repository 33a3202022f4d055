"""Products with matrices that all outputs share, or of which each has its own: a leading axis of 1 or P."""

from __future__ import annotations

import tensorflow as tf


def times_each(matrices: tf.Tensor, columns: tf.Tensor, transpose: bool = False) -> tf.Tensor:
    """
    A_p v_p for each output p; with a single matrix, one product serves all outputs.

    :param matrices: [1, M, M] or [P, M, M] A
    :param columns: [M, P] v
    :param transpose: whether to use Aᵀ instead of A.
    :return: [M, P]
    """
    count, M = matrices.shape[0], matrices.shape[-1]
    rows = tf.reshape(tf.transpose(columns), [count, -1, M])  # those of one matrix side by side
    return tf.transpose(tf.reshape(tf.matmul(rows, matrices, transpose_b=not transpose), [-1, M]))
