"""Choices of a bound's local parameters: by a recognition network, from a table, or from independent draws."""

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
    Chooses the local parameters of each datum. The likelihood defines them: for the logistic one, the tilt c of each
    output; in general, L numbers, the positive ones first and then those of either sign.
    """

    @abc.abstractmethod
    def __call__(self, batch: Batch, best: Callable[[], tf.Tensor]) -> tf.Tensor:
        """
        :param best: returns the local parameters [N, L] that are best for moments of f estimated by independent draws.
        :return: [N, L], the local parameters.
        """


class RecognitionNetwork(Tilt):
    """
    c(x, y), the paper's choice: layers of rectified linear units, with softplus at the end.

    It has to learn how large f is at each x. With one narrow layer, the bound lies further below that of the best c
    than the bounds of different angles in Fig. 3 lie apart (``benchmarks/network.md``).
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
        :param outputs: number of positive outputs.
        :param seed: seed of the initial weights.
        :param labels: number of columns of y; ``outputs`` if None.
        :param real: number of outputs of either sign, after the positive ones.
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
        """The network's output; ``best`` is not used."""
        values = tf.concat([tf.cast(batch.X, batch.Y.dtype), batch.Y], axis=-1)
        *inner, last = zip(self.weights, self.offsets, strict=True)
        for weights, offsets in inner:
            values = tf.nn.relu(values @ weights + offsets)
        values = values @ last[0] + last[1]
        return tf.concat([tf.nn.softplus(values[:, : self._outputs]), values[:, self._outputs :]], axis=-1)


class TiltTable(Tilt):
    """Free parameters for each datum: no amortisation gap, but N rows to learn, and batches must have row numbers."""

    def __init__(self, num_data: int, outputs: int = 1, name: str | None = None, *, real: int = 0) -> None:
        """
        :param num_data: N, the size of the whole data.
        :param outputs: number of positive parameters of a datum.
        :param real: number of parameters of either sign, after the positive ones.
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
    """The best local parameters for moments estimated by independent draws: nothing to learn, but twice the draws."""

    def __call__(self, batch: Batch, best: Callable[[], tf.Tensor]) -> tf.Tensor:
        """The best local parameters, without a gradient: there the bound is flat in them."""
        return tf.stop_gradient(best())
