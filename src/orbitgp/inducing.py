"""Inducing variables in the function before averaging, and ways to place them."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorLike, TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables.inducing_variables import InducingPointsBase
from gpflow.kernels import Kernel
from scipy import sparse

from orbitgp import checks
from orbitgp._ops.draw_kernels import kernel_matrix
from orbitgp.kernels import Invariant, orbit_Kfu
from orbitgp.orbits import Orbit

METHODS = ("kmeans", "greedy")


class BasePoints(InducingPointsBase):
    """u = g(Z), values of the function before it is averaged: k_uu has no orbit in it and is exact."""


@Kuu.register(BasePoints, Invariant)
@check_shapes("inducing_variable: [M, D, 1]", "return: [M, M]")
def _Kuu_base_points(inducing_variable: BasePoints, kernel: Invariant, *, jitter: float = 0.0) -> tf.Tensor:
    """k_uu(z, z') = k_g(z, z')"""
    K = kernel_matrix(kernel.base, inducing_variable.Z)
    return tf.linalg.set_diag(K, tf.linalg.diag_part(K) + jitter)


@Kuf.register(BasePoints, Invariant, TensorLike)
@check_shapes("inducing_variable: [M, D, 1]", "Xnew: [N, D]", "return: [M, N]")
def _Kuf_base_points(inducing_variable: BasePoints, kernel: Invariant, Xnew: TensorType) -> tf.Tensor:
    """k_uf(z, x) = E_a k_g(z, x_a)"""
    return tf.transpose(orbit_Kfu(kernel.orbit, kernel.base, Xnew, inducing_variable.Z))


def place(
    kernel: Invariant, X: Any, count: int, *, method: str = "kmeans", seed: int = 0, candidates: int = 10_000
) -> BasePoints:
    """
    Inducing points from augmented data: g is only ever evaluated at transformed inputs, so that is where its values
    are worth knowing.

    :param kernel: whose orbit transforms the inputs, and whose base kernel ``"greedy"`` measures them with.
    :param X: [N, D]
    :param count: M.
    :param method: ``"kmeans"`` or ``"greedy"`` (largest conditional variance first).
    :param candidates: at most so many inputs, chosen at random, are looked at.
    """
    checks.instance("kernel", kernel, Invariant)
    checks.one_of("method", method, METHODS)
    X = _matrix(X)
    checks.integer("candidates", candidates, least=1)
    checks.integer("count", count, least=1, most=min(len(X), candidates))
    rng = np.random.default_rng(checks.integer("seed", seed, least=0))
    looked_at = augmented(X[rng.permutation(len(X))[:candidates]], kernel.orbit, seed)
    if method == "greedy":
        return BasePoints(greedy_variance(looked_at, kernel.base, count))
    return BasePoints(kmeans(looked_at, count, seed))


@check_shapes("X: [N, D]", "return: [N, D]")
def augmented(X: TensorType, orbit: Orbit, seed: int) -> np.ndarray:
    """
    :param X: [N, D]
    :return: [N, D], one independent draw from the orbit of each input: where g, not f, is looked at.
    """
    seed = checks.integer("seed", seed, least=0)
    checks.instance("orbit", orbit, Orbit)
    X = tf.convert_to_tensor(_matrix(X))
    blocks = [orbit.sample(block, 1, 1, [seed, i], "iid") for i, block in enumerate(_blocks(X))]
    return tf.concat(blocks, axis=0)[:, 0, 0].numpy()


def _blocks(X: tf.Tensor, rows: int = 4096) -> list[tf.Tensor]:
    return [X[start : start + rows] for start in range(0, X.shape[0], rows)]


def kmeans(X: Any, count: int, seed: int, iterations: int = 10) -> np.ndarray:
    """
    Lloyd's algorithm from distinct inputs chosen at random; a centre that loses all its points moves to the point
    that is farthest from its own centre.

    :param X: [N, D]
    :param count: number of centres, at most N.
    :return: [count, D]
    """
    X = _matrix(X)
    checks.integer("count", count, least=1, most=len(X))
    checks.integer("iterations", iterations, least=1)
    distinct = len({row.tobytes() for row in X})
    if distinct < count:
        raise ValueError(f"X has only {distinct} distinct points, {count} were asked for")
    rng = np.random.default_rng(checks.integer("seed", seed, least=0))
    centres = X[rng.choice(len(X), count, replace=False)]
    for _ in range(iterations):
        distances = np.square(centres).sum(1) - 2 * X @ centres.T  # up to ‖x‖², the same for all centres
        nearest = distances.argmin(1)
        members = np.bincount(nearest, minlength=count)
        membership = sparse.csr_matrix((np.ones(len(X)), (nearest, np.arange(len(X)))), shape=(count, len(X)))
        centres = membership @ X / np.maximum(members, 1)[:, None]
        empty = np.flatnonzero(members == 0)
        farthest = np.argsort(distances.min(1) + np.square(X).sum(1))[::-1]
        centres[empty] = X[farthest[: len(empty)]]
    return centres


def greedy_variance(X: Any, kernel: Kernel, count: int) -> np.ndarray:
    """
    Each point in turn is the one whose prior variance, given those chosen before, is largest (a Cholesky
    factorisation with pivots, stopped after ``count`` columns; Burt, Rasmussen and van der Wilk, 2020).

    :param X: [N, D]
    :param kernel: k_g.
    :param count: number of points, at most N.
    :return: [count, D]; fewer than ``count`` informative points is an error, since the rest would be copies.
    """
    X = _matrix(X)
    checks.instance("kernel", kernel, Kernel)
    checks.integer("count", count, least=1, most=len(X))
    variance = np.array(kernel(X, full_cov=False))
    floor = 1e-10 * variance.max()
    factor = np.zeros((count, len(X)))
    chosen: list[int] = []
    for m in range(count):
        pivot = int(variance.argmax())
        if variance[pivot] <= floor:
            raise ValueError(f"X has only {m} points that differ under this kernel, {count} were asked for")
        column = kernel(X[pivot : pivot + 1], X).numpy()[0]
        factor[m] = (column - factor[:m, pivot] @ factor[:m]) / np.sqrt(variance[pivot])
        variance = np.maximum(variance - np.square(factor[m]), 0.0)
        variance[pivot] = 0.0
        chosen.append(pivot)
    return X[chosen]


def _matrix(X: Any) -> np.ndarray:
    try:
        X = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"X must be a matrix of numbers, got {X!r}") from error
    if X.ndim != 2 or not len(X):
        raise ValueError(f"X must be a matrix [N, D] with at least one row, got shape {X.shape}")
    if not np.all(np.isfinite(X)):
        raise ValueError("X must be finite")
    return X
