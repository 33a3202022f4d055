"""Sections 4.3 and B.2.1: what inducing variables in g save, and how the estimators' cost grows with the draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints

from orbitgp.datasets import ImageData, mnist
from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant
from orbitgp.orbits import QuantisedRotation
from orbitgp.schemes import paper_scheme


class Counting(gpflow.kernels.SquaredExponential):
    """A kernel that counts the values it has been asked for, outside of compiled functions."""

    evaluations = 0

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        """[..., N, D], [..., M, D] → [..., N, ..., M]"""
        found = super().K(X, X2)
        self.evaluations += int(tf.size(found))
        return found


def measure(settings: Mapping[str, Any], data: ImageData | None = None) -> pd.DataFrame:
    """
    Counts, for each size (P rotations of the orbit, or S draws from it), the values of k_g that are needed by

    - ``in_g``, ``in_f``: the covariances of q(f) at a batch, k_ff(x, x), K_fu and K_uu, with inducing variables in g
      or in f, over the whole orbit;
    - ``k_ff``, ``k_fu``: the estimators' parts, k_g between the draws of each image, and between draws and inducing
      points.

    :param settings: ``sizes``, ``images`` in the batch, and ``inducing`` points.
    :return: columns quantity, size, evaluations. Times, which depend on the machine, are in ``benchmarks/scaling.md``.
    """
    data = mnist() if data is None else data
    inputs = data.train.inputs()
    X, Z = inputs[: settings["images"]], inputs[settings["images"] :][: settings["inducing"]]
    rows = []
    for size in settings["sizes"]:
        base = Counting(lengthscales=6.0)
        kernel = Invariant(base, QuantisedRotation(data.train.shape, size))
        drawn = tf.reshape(paper_scheme(size).draw(kernel.orbit, X, [0, 0]), [len(X), size, -1])
        parts: dict[str, Callable[[], Any]] = {
            "in_g": partial(_covariances, BasePoints(Z), kernel, X),
            "in_f": partial(_covariances, InducingPoints(Z), kernel, X),
            "k_ff": partial(base, drawn),
            "k_fu": partial(base, drawn, Z),
        }
        for name, part in parts.items():
            base.evaluations = 0
            part()
            rows.append({"quantity": name, "size": size, "evaluations": base.evaluations})
    return pd.DataFrame(rows).sort_values("quantity", kind="stable", ignore_index=True)


def _covariances(inducing: Any, kernel: Invariant, X: np.ndarray) -> tuple[tf.Tensor, ...]:
    """k_ff(x, x) [N], K_uf [M, N] and K_uu [M, M]."""
    return kernel(X, full_cov=False), Kuf(inducing, kernel, X), Kuu(inducing, kernel)
