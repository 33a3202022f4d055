"""Rates as functions of the progress of a training, so that a resumed one continues where it was."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType


def cosine(progress: TensorType, warmup: float, floor: float) -> tf.Tensor:
    """
    :param progress: in [0, 1].
    :param warmup: fraction of the training over which the rate rises linearly to its peak.
    :param floor: share of the peak at the end.
    :return: the rate's share of its peak: a rise, then half a cosine from 1 to ``floor``.
    """
    progress = tf.convert_to_tensor(progress)
    rise = tf.minimum(progress / warmup, 1.0) if warmup > 0 else tf.ones_like(progress)
    fall = tf.maximum(progress - warmup, 0.0) / (1.0 - warmup)
    return rise * (floor + (1.0 - floor) * 0.5 * (1.0 + tf.cos(np.pi * fall)))


def geometric(progress: TensorType, first: float, last: float) -> tf.Tensor:
    """
    :param progress: in [0, 1].
    :return: the rate: from ``first`` to ``last``, by the same factor in every step.
    """
    progress = tf.convert_to_tensor(progress)
    return first * tf.pow(tf.constant(last / first, progress.dtype), progress)
