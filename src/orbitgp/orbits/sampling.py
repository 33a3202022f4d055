"""Uniform numbers in groups: independent between groups and images, independent or Sobol inside a group."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import tensorflow as tf

from orbitgp import checks

SAMPLERS = ("sobol", "iid")
_MOST_DIMENSIONS = 21200  # of TensorFlow's direction numbers
_BITS = 23  # (2k + 1) / 2^24 is exact in float32, never 0 and never 1, so both precisions see the same draws


@lru_cache(maxsize=64)
def sobol_integers(size: int, num_uniforms: int) -> np.ndarray:
    """
    The first ``size`` points of the unscrambled Sobol sequence as integers of 23 bits.

    :return: [size, num_uniforms] int32
    """
    points = np.zeros((size, num_uniforms))  # the first one is zero, and TensorFlow leaves it out
    if size > 1:
        with tf.init_scope():  # numbers, also while a graph is traced
            points[1:] = tf.math.sobol_sample(num_uniforms, size - 1, dtype=tf.float64)
    return (points * 2.0**_BITS).astype(np.int32)


def uniforms(
    images: int | tf.Tensor,
    groups: int,
    size: int,
    num_uniforms: int,
    seed: tf.Tensor,
    sampler: str = "sobol",
    dtype: tf.DType = tf.float64,
) -> tf.Tensor:
    """
    Draws u ∈ (0, 1)^num_uniforms, marginally uniform for every single draw.

    ``iid``: all draws are independent. ``sobol``: the draws of a group are one Sobol set under a digital shift
    (exclusive or with random bits) that is independent for each image, group and coordinate. The shift makes each
    draw exactly uniform and the groups exactly independent, while the draws *inside* a group depend on each other:
    products of two draws of one group are biased, products across groups are not.

    :param images: N, which may be a scalar tensor.
    :param seed: [2] integers; the same seed gives the same draws on every device, eager or compiled, by XLA too.
    :return: [N, groups, size, num_uniforms]
    """
    checks.integer("groups", groups, least=1)
    checks.integer("size", size, least=1)
    checks.integer("num_uniforms", num_uniforms, least=1)
    checks.one_of("sampler", sampler, SAMPLERS)
    if sampler == "sobol" and num_uniforms > _MOST_DIMENSIONS:
        raise ValueError(
            f"Sobol sets have at most {_MOST_DIMENSIONS} dimensions, got {num_uniforms}; use sampler 'iid'"
        )

    def random_bits(draws: int) -> tf.Tensor:
        shape = [images, groups, draws, num_uniforms]
        return tf.random.stateless_uniform(shape, portable(seed), minval=0, maxval=2**_BITS, dtype=tf.int32)

    if sampler == "sobol":
        bits = tf.bitwise.bitwise_xor(random_bits(1), tf.constant(sobol_integers(size, num_uniforms)))
    else:
        bits = random_bits(size)
    return (tf.cast(bits, dtype) + tf.constant(0.5, dtype)) * tf.constant(2.0**-_BITS, dtype)


def split(seed: tf.Tensor, stream: int) -> tf.Tensor:
    """
    :param seed: [2] integers.
    :return: [2] the seed of an independent stream of random numbers.
    """
    return portable(tf.random.experimental.stateless_fold_in(portable(seed), stream))


def portable(seed: tf.Tensor) -> tf.Tensor:
    """
    :param seed: [2] integers.
    :return: [2] int64, the last 32 bits of each: XLA looks at no others, and not at the sign.
    """
    return tf.bitwise.bitwise_and(tf.cast(seed, tf.int64), tf.constant(0xFFFFFFFF, tf.int64))
