"""How the local parameters of a bound are chosen: by a network, from a table, or from draws of their own."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.base import Module
from gpflow.utilities import positive

from orbitgp import checks
from orbitgp.likelihoods.sites import Batch


class Tilt(Module, metaclass=abc.ABCMeta):
    """
    A choice of the local parameters of each datum. What they are, the likelihood says: the tilt c of each output for
    the logistic one; some positive numbers, and perhaps some of either sign after them, in general.
    """

    @abc.abstractmethod
    def __call__(self, batch: Batch, best: Callable[[], tf.Tensor]) -> tf.Tensor:
        """
        :param best: makes the local parameters [N, L] that are best for moments of f, by draws of their own.
        :return: [N, L]
        """


class RecognitionNetwork(Tilt):
    """
    c(x, y), the paper's choice: layers of rectified linear units, with softplus at the end.

    What it must find is how large f is at each x. One narrow layer leaves a gap to the best c that is larger than what
    one angle of Fig. 3 has over another (``benchmarks/network.md``).
    """

    def __init__(
        self,
        input_dim: int,
        hidden: Sequence[int] = (64,),
        outputs: int = 1,
        seed: int = 0,
        name: str | None = None,
        *,
        labels: int | None = None,
        real: int = 0,
    ) -> None:
        """
        :param input_dim: D, the length of an input.
        :param hidden: widths of the hidden layers.
        :param outputs: how many positive numbers it gives.
        :param seed: of the first weights.
        :param labels: columns of y; as many as ``outputs`` if None.
        :param real: how many numbers of either sign come after the positive ones.
        """
        super().__init__(name=name)
        rng = np.random.default_rng(checks.integer("seed", seed, least=0))
        self._outputs = checks.integer("outputs", outputs, least=1)
        labels = outputs if labels is None else checks.integer("labels", labels, least=1)
        widths = [
            checks.integer("input_dim", input_dim, least=1) + labels,
            *(checks.integer(f"hidden[{i}]", width, least=1) for i, width in enumerate(hidden)),
            outputs + checks.integer("real", real, least=0),
        ]
        pairs = list(pairwise(widths))
        self.weights = [Parameter(rng.normal(size=pair) * np.sqrt(2 / pair[0])) for pair in pairs]  # as He et al. do
        self.offsets = [Parameter(np.zeros(width)) for _, width in pairs]
        # positive numbers close to one: c under a prior of unit variance
        self.offsets[-1].assign(np.repeat([np.log(np.e - 1), 0.0], [outputs, real]))

    def __call__(self, batch: Batch, best: Callable[[], tf.Tensor]) -> tf.Tensor:
        """The network's output; what would be best is not asked for."""
        values = tf.concat([tf.cast(batch.X, batch.Y.dtype), batch.Y], axis=-1)
        *inner, last = zip(self.weights, self.offsets, strict=True)
        for weights, offsets in inner:
            values = tf.nn.relu(values @ weights + offsets)
        values = values @ last[0] + last[1]
        return tf.concat([tf.nn.softplus(values[:, : self._outputs]), values[:, self._outputs :]], axis=-1)


class TiltTable(Tilt):
    """Free numbers for each datum: no amortisation gap, but N of them to learn and a row number in every batch."""

    def __init__(self, num_data: int, outputs: int = 1, name: str | None = None, *, real: int = 0) -> None:
        """
        :param num_data: N, the size of the whole data.
        :param outputs: how many positive numbers a datum has.
        :param real: how many numbers of either sign come after the positive ones.
        """
        super().__init__(name=name)
        shape = (checks.integer("num_data", num_data, least=1), checks.integer("outputs", outputs, least=1))
        self.values = Parameter(np.ones(shape), transform=positive())
        self.real = Parameter(np.zeros((num_data, real))) if checks.integer("real", real, least=0) else None

    def __call__(self, batch: Batch, best: Callable[[], tf.Tensor]) -> tf.Tensor:
        """The rows of the table."""
        if batch.index is None:
            raise ValueError("a TiltTable needs the rows' numbers: pass data as (X, Y, index)")
        columns = [self.values] if self.real is None else [self.values, self.real]
        return tf.concat([tf.gather(part, batch.index) for part in columns], axis=-1)


class IndependentGroups(Tilt):
    """The best local parameters for moments that draws of their own estimate: nothing to learn, at twice the draws."""

    def __call__(self, batch: Batch, best: Callable[[], tf.Tensor]) -> tf.Tensor:
        """Where the local parameters are best, the bound is flat in them: no gradient needed."""
        return tf.stop_gradient(best())
