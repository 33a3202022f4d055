"""Which images a step takes."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from orbitgp import checks
from orbitgp.orbits.sampling import split

KINDS = ("drawn", "shuffled")


class Batches:
    """
    Rows of the data for each step, from nothing but a seed and the number of the step, so that a training goes on
    anywhere.

    ``"drawn"`` takes each row of each batch at random, with replacement. ``"shuffled"`` orders all rows anew for each
    epoch and takes them one batch after another, so that an epoch has each row once (but for the N mod size rows that
    make no batch; they are others in every epoch). Every batch is then still as likely as any other of its size, and
    its bound unbiased; but what one batch of an epoch has too much of, the others have too little of, so that over
    steps that hardly move the noise of batches cancels instead of adding up.
    """

    def __init__(self, count: int, size: int, kind: str = "drawn") -> None:
        """
        :param count: N, how many rows there are.
        :param size: of a batch; as many as N or more are all rows, in their order.
        :param kind: ``"drawn"`` or ``"shuffled"``.
        """
        self._count, self._kind = count, checks.one_of("optimiser.batches", kind, KINDS)
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
        if self._kind == "drawn" or self.whole:
            return self.draw(split(seed, stream))
        in_epoch = self._count // self.size
        epoch, place = seed[1] // in_epoch, seed[1] % in_epoch
        keys = tf.random.stateless_uniform(
            [self._count], split(tf.stack([seed[0], epoch]), stream), minval=None, maxval=None, dtype=tf.int32
        )
        order = tf.argsort(keys, direction="DESCENDING")
        # gathered, not sliced: where a slice begins has to be known to the host, which would wait for the device
        return tf.gather(order, place * self.size + np.arange(self.size))

    def draw(self, seed: tf.Tensor) -> tf.Tensor:
        """
        :param seed: [2] integers, of one batch.
        :return: [size] numbers of rows, with replacement.
        """
        if self.whole:
            return tf.range(self._count)
        return tf.random.stateless_uniform([self.size], seed, 0, self._count, tf.int32)
