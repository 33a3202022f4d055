"""Finite orbits that only move coordinates: exact, without interpolation and without parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from orbitgp import checks
from orbitgp.orbits.base import FiniteOrbit


class Identity(FiniteOrbit):
    """The orbit {x}: with it, an invariant model is the ordinary one."""

    @property
    def order(self) -> int:
        """One point."""
        return 1

    def full(self, X: TensorType) -> tf.Tensor:
        """X itself, as [N, 1, D]."""
        return tf.convert_to_tensor(X)[:, None, :]


class Permutation(FiniteOrbit):
    """Coordinate permutations: point p of the orbit of x is x[tables[p]]."""

    def __init__(self, tables: Sequence[Sequence[int]] | np.ndarray, name: str | None = None) -> None:
        """
        :param tables: [P, D] integers, each row a permutation of 0 … D−1; ``[[0, 1], [1, 0]]`` swaps two
            coordinates. For strict invariance the rows must form a group.
        """
        super().__init__(name=name)
        try:
            array = np.asarray(tables)
        except ValueError as error:
            raise ValueError("tables must have rows of one length") from error
        if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"tables must be integers of shape [P, D], got {array.dtype} of shape {array.shape}")
        wrong = np.flatnonzero(np.any(np.sort(array, axis=1) != np.arange(array.shape[1]), axis=1))
        if array.size == 0 or len(wrong):
            row = f"row {wrong[0]} is {array[wrong[0]]}" if len(wrong) else "there are no rows"
            raise ValueError(f"each row of tables must be a permutation of 0 … {array.shape[1] - 1}; {row}")
        self._tables = array.astype(np.int32)

    @property
    def order(self) -> int:
        """The number of permutations."""
        return len(self._tables)

    @inherit_check_shapes
    def full(self, X: TensorType) -> tf.Tensor:
        """Gathers x[tables[p]] for every p."""
        X = tf.convert_to_tensor(X)
        D = self._tables.shape[1]
        if X.shape[-1] is not None and X.shape[-1] != D:
            raise ValueError(f"X has {X.shape[-1]} columns, the permutations are of {D} coordinates")
        return tf.gather(X, self._tables, axis=1)


class RightAngles(Permutation):
    """Rotations of a square image by 0°, 90°, 180° and 270°: four permutations of its pixels."""

    def __init__(self, shape: Any, name: str | None = None) -> None:
        """
        :param shape: (H, W) or (H, W, C) with H = W.
        """
        height, width, channels = checks.image_shape(shape)
        if height != width:
            raise ValueError(f"right angles need a square image, got shape ({height}, {width})")
        pixels = np.arange(height * width * channels).reshape(height, width, channels)
        super().__init__(np.stack([np.rot90(pixels, turns).ravel() for turns in range(4)]), name=name)
