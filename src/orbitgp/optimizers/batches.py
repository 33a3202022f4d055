"""Which images a step takes."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from orbitgp import checks
from orbitgp.optimizers.recipe import Recipe
from orbitgp.orbits.sampling import split, uniforms

SHARE = 0.5  # of a hard batch that is drawn by how wrong the model is


def make_batches(count: int, recipe: Recipe) -> Batches:
    """
    :param count: N, how many rows there are.
    :param recipe: says how many rows a step takes, and which.
    """
    if recipe.batches == "hard":
        return HardBatches(count, recipe.batch)
    return Batches(count, recipe.batch, shuffled=recipe.batches == "shuffled")


class Batches:
    """
    Rows of the data for each step, from nothing but a seed and the number of the step, so that a training goes on
    anywhere.

    Drawn ones take each row of each batch at random, with replacement. For shuffled ones all rows are ordered anew for
    each epoch and taken one batch after another, so that an epoch has each row once (but for the N mod size rows that
    make no batch; they are others in every epoch). Every batch is then still as likely as any other of its size, and
    its bound unbiased; but what one batch of an epoch has too much of, the others have too little of, so that over
    steps that hardly move the noise of batches cancels instead of adding up.
    """

    def __init__(self, count: int, size: int, *, shuffled: bool = False) -> None:
        """
        :param count: N, how many rows there are.
        :param size: of a batch; as many as N or more are all rows, in their order.
        :param shuffled: whether they are, or drawn.
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
        :param stream: of random numbers.
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
        :return: [size], how many times each counts, so that batches are unbiased; None for once.
        """
        return None

    def draw(self, seed: tf.Tensor) -> tf.Tensor:
        """
        :param seed: [2] integers, of one batch.
        :return: [size] numbers of rows, with replacement.
        """
        if self.whole:
            return tf.range(self._count)
        return tf.random.stateless_uniform([self.size], seed, 0, self._count, tf.int32)


class HardBatches(Batches):
    """
    Batches that have more of the images that the model gets wrong. Row i is drawn with the probability

        p_i = (1 − share) / N + share h_i / Σ h

    where h_i is how hard its label pulled at f when the model last looked (:func:`orbitgp.likelihoods.slope`), and it
    counts 1 / (N p_i) times, so that the bound stays unbiased. The rows that pull hard have much of the gradient, and
    where they are few, how many of them there happen to be is much of a uniform batch's noise (what it comes to is in
    benchmarks/batches.md). No weight is above 1 / (1 − share), and so the mean square of no gradient grows by more
    than that factor, whatever h was.

    The j-th place of a batch draws from the j-th part of the cumulated probability, so that how often a row comes
    varies less than by chance.
    """

    def __init__(self, count: int, size: int, *, share: float = SHARE) -> None:
        """
        :param count: N, how many rows there are.
        :param size: of a batch; as many as N or more are all rows, each once.
        :param share: of the batch that is drawn by h.
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
        return tf.minimum(tf.searchsorted(cumulated, levels, side="right"), self._count - 1)

    def weights(self, rows: tf.Tensor) -> tf.Tensor | None:
        """[size], 1 / (N p) of each."""
        return None if self.whole else 1 / (self._count * tf.gather(self.probability, rows))

    def weigh(self, hardness: tf.Tensor) -> None:
        """
        :param hardness: [N] h ≥ 0; where it is zero for all, all are as likely.
        """
        positive = tf.cast(hardness, self.probability.dtype) + np.finfo(np.float64).tiny
        relative = positive / tf.reduce_sum(positive)
        self.probability.assign((1 - self._share) / self._count + self._share * relative)
