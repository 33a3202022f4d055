"""Batches of training images: drawn, shuffled or hard."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from orbitgp import checks
from orbitgp.optimizers.recipe import Recipe
from orbitgp.orbits.sampling import split, uniforms

SHARE = 0.5  # part of a hard batch that is drawn by how wrong the model is


def make_batches(count: int, recipe: Recipe) -> Batches:
    """
    :param count: N, the number of rows in the data.
    :param recipe: has the batch size and the kind of batches.
    """
    if recipe.batches == "hard":
        return HardBatches(count, recipe.batch)
    return Batches(count, recipe.batch, shuffled=recipe.batches == "shuffled")


class Batches:
    """
    Rows of the data for each step. They depend only on a seed and the number of the step, so that a training can
    resume at any step.

    Drawn batches are random rows, with replacement. Shuffled batches go through all rows in a new random order in each
    epoch, so that an epoch has each row once, but for N mod size random rows that fill no batch. A shuffled batch's
    bound is unbiased too, and over an epoch of small steps the noise of batches cancels instead of adding up.
    """

    def __init__(self, count: int, size: int, *, shuffled: bool = False) -> None:
        """
        :param count: N, the number of rows in the data.
        :param size: rows in a batch; with N or more, every batch is all rows in order.
        :param shuffled: whether batches are shuffled instead of drawn.
        """
        self._count, self._shuffled = count, shuffled
        self.size = min(size, count)

    @property
    def whole(self) -> bool:
        """Whether every batch is all of the data."""
        return self.size == self._count

    def rows(self, seed: tf.Tensor, stream: int) -> tf.Tensor:
        """
        :param seed: [2] int64, the seed of the training and the number of the step.
        :param stream: stream of random numbers to use.
        :return: [size] numbers of rows.
        """
        if not self._shuffled or self.whole:
            return self.draw(split(seed, stream))
        in_epoch = self._count // self.size
        epoch, place = seed[1] // in_epoch, seed[1] % in_epoch
        keys = tf.random.stateless_uniform(
            [self._count], split(tf.stack([seed[0], epoch]), stream), minval=None, maxval=None, dtype=tf.int32
        )
        order = tf.argsort(keys, direction="DESCENDING")
        # gathered, not sliced: where a slice begins has to be known to the host, which would wait for the device
        return tf.gather(order, place * self.size + np.arange(self.size))

    def weights(self, rows: tf.Tensor) -> tf.Tensor | None:
        """
        :param rows: [size], as :meth:`rows` gave them.
        :return: [size], how many times each counts, so that the bound is unbiased; None if all count once.
        """
        return None

    def draw(self, seed: tf.Tensor) -> tf.Tensor:
        """
        :param seed: [2] integers, the seed of one batch.
        :return: [size] numbers of rows, with replacement.
        """
        if self.whole:
            return tf.range(self._count)
        return tf.random.stateless_uniform([self.size], seed, 0, self._count, tf.int32)


class HardBatches(Batches):
    """
    Importance-sampled batches, with more of the images that the model gets wrong. Row i is drawn with the probability

        p_i = (1 − share) / N + share h_i / Σ h

    where h_i is the slope of its log density in f when last evaluated (:func:`orbitgp.likelihoods.slope`). It counts
    1 / (N p_i) times, so that the bound stays unbiased. Few rows with steep slopes can have much of the gradient; how
    many of them a uniform batch happens to have is then much of its noise (benchmarks/batches.md). Weights are at most
    1 / (1 − share), so the mean square of a gradient grows by at most that factor, whatever h is.

    The j-th row of a batch is drawn from the j-th part of the cumulative probability (stratified sampling), so that a
    row's count varies less than by chance.
    """

    def __init__(self, count: int, size: int, *, share: float = SHARE) -> None:
        """
        :param count: N, the number of rows in the data.
        :param size: rows in a batch; with N or more, every batch is all rows, each once.
        :param share: part of the batch that is drawn by h.
        """
        super().__init__(count, size)
        self._share = checks.number("share", share, least=0.0, most=0.99)  # some of each, so that no weight is huge
        self.probability = tf.Variable(np.full(count, 1 / count), trainable=False, name="probability")

    def rows(self, seed: tf.Tensor, stream: int) -> tf.Tensor:
        """As in :class:`Batches`, but by the present probabilities."""
        if self.whole:
            return tf.range(self._count)
        cumulated = tf.cumsum(self.probability)
        within = tf.reshape(uniforms(self.size, 1, 1, 1, split(seed, stream), "iid", cumulated.dtype), [-1])
        levels = (np.arange(self.size) + within) / self.size * cumulated[-1]
        return tf.minimum(_count_up_to(levels, cumulated), self._count - 1)

    def weights(self, rows: tf.Tensor) -> tf.Tensor | None:
        """[size], 1 / (N p) of each."""
        return None if self.whole else 1 / (self._count * tf.gather(self.probability, rows))

    def weigh(self, hardness: tf.Tensor) -> None:
        """
        Sets the probabilities.

        :param hardness: [N] h ≥ 0; if all are zero, all rows are equally likely.
        """
        positive = tf.cast(hardness, self.probability.dtype) + np.finfo(np.float64).tiny
        relative = positive / tf.reduce_sum(positive)
        self.probability.assign((1 - self._share) / self._count + self._share * relative)


def _count_up_to(levels: tf.Tensor, increasing: tf.Tensor) -> tf.Tensor:
    """
    How many of N increasing numbers are at most each level, as ``tf.searchsorted(…, side="right")``. XLA's own compares
    a level with every number; here it is compared with the last one of each of √N blocks, and with those of one block.

    :param levels: [B]
    :param increasing: [N]
    :return: [B] int32
    """
    side = math.isqrt(increasing.shape[0]) + 1  # side² > N: the last block ends with infinity
    infinite = tf.fill([side**2 - increasing.shape[0]], tf.constant(np.inf, increasing.dtype))
    blocks = tf.reshape(tf.concat([increasing, infinite], axis=0), [side, side])

    def at_most(level: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.cast(numbers <= level[:, None], tf.int32), axis=1)

    block = at_most(levels, blocks[:, -1])
    return side * block + at_most(levels, tf.gather(blocks, block))
