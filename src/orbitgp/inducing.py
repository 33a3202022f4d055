"""Inducing variables in the function before averaging, and ways to place them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import Shape, check_shapes
from gpflow.base import TensorLike, TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables.inducing_variables import InducingPointsBase, InducingVariables
from gpflow.kernels import Kernel, Sum
from scipy import sparse

from orbitgp import checks
from orbitgp._ops.draw_kernels import DrawKernels, SumKernels, kernel_matrix
from orbitgp._ops.precision import in_precision
from orbitgp._ops.products import MatrixProduct
from orbitgp.kernels import Invariant, innermost, orbit_Kfu
from orbitgp.orbits import Composed, Orbit

METHODS = ("kmeans", "greedy")


class BasePoints(InducingPointsBase):
    """
    u = g(Z), values of the function g before averaging, so that k_uu involves no orbit and is exact. If the base
    kernel itself averages over finite orbits, g is the innermost function, and Z are its inputs, such as patches.
    """

    @property
    def parts(self) -> list[BasePoints]:
        """A list of these points alone: one process is a sum of one."""
        return [self]


class SumPoints(InducingVariables):
    """u = (g_1(Z_1), …, g_C(Z_C)) of a sum of independent processes, each in its own space: k_uu is block-diagonal."""

    def __init__(self, parts: Sequence[BasePoints | TensorType], name: str | None = None) -> None:
        """
        :param parts: the points of each process, or an array [M_c, E_c] of them, in the order of the kernels.
        """
        super().__init__(name=name)
        if not isinstance(parts, Sequence) or not len(parts):
            raise ValueError(f"parts must be a list of inducing points, one for each process, got {parts!r}")
        self.parts = [part if isinstance(part, BasePoints) else BasePoints(part) for part in parts]

    @property
    def num_inducing(self) -> tf.Tensor:
        """M = Σ_c M_c, the total number of points."""
        return tf.add_n([part.num_inducing for part in self.parts])

    @property
    def shape(self) -> Shape:
        """[M, None, 1]: rows of different processes have different lengths."""
        return sum(part.Z.shape[0] for part in self.parts), None, 1


Points = BasePoints | SumPoints


def processes(inducing_variable: Points, kernel: Invariant) -> list[tuple[Kernel, BasePoints]]:
    """
    :return: kernel and inducing points of each independent process: the whole base kernel for :class:`BasePoints`, its
        summands for :class:`SumPoints`.
    """
    if isinstance(inducing_variable, BasePoints):
        return [(kernel.base, inducing_variable)]
    parts = inducing_variable.parts
    if not isinstance(kernel.base, Sum) or len(kernel.base.kernels) != len(parts):
        raise ValueError(
            f"SumPoints of {len(parts)} processes need a base kernel that sums as many kernels (k_1 + k_2 + …), got "
            f"{type(kernel.base).__name__}"
            + (f" of {len(kernel.base.kernels)}" if isinstance(kernel.base, Sum) else "")
        )
    return list(zip(kernel.base.kernels, parts, strict=True))


def from_arrays(arrays: Mapping[str, np.ndarray]) -> Points:
    """
    The inducing points among a model's parameters.

    :param arrays: parameters by name, with ``inducing_variable.Z`` or, for a sum, ``inducing_variable.parts[0].Z``,
        ``inducing_variable.parts[1].Z`` …
    """
    alone = "inducing_variable.Z"
    names = [alone, *(f"inducing_variable.parts[{i}].Z" for i in range(len(arrays)))]
    found = {name: arrays[name] for name in names if name in arrays}
    for name, Z in found.items():
        if Z.ndim != 2:
            raise ValueError(f"{name} must be a matrix, got the shape {Z.shape}")
    return BasePoints(found[alone]) if alone in found else SumPoints([*found.values()])


def check_lengths(inducing_variable: Points, kernel: Invariant, length: int) -> None:
    """
    Raises an error unless inducing points are as long as the points at which the kernel evaluates g.

    :param length: D, the length of an input.
    """
    for base, points in processes(inducing_variable, kernel):
        _, listed = innermost(base)
        wanted = Composed([kernel.orbit, *listed]).point_length(length)
        if points.Z.shape[1] != wanted:
            raise ValueError(f"inducing points have {points.Z.shape[1]} values each, but g takes {wanted}")


def draw_kernels(
    inducing_variable: Points, kernel: Invariant, dtype: tf.DType, product: MatrixProduct = tf.matmul
) -> SumKernels:
    """
    :param dtype: floating type in which the kernels are evaluated.
    :param product: multiplies the large matrices.
    :return: the base kernel between draws, and between draws and inducing variables.
    """
    parts = []
    for base, points in processes(inducing_variable, kernel):
        inner, listed = innermost(base)
        parts.append(DrawKernels(in_precision(inner, dtype), tf.cast(points.Z, dtype), product, listed=listed))
    return SumKernels(parts)


@Kuu.register(BasePoints, Invariant)
@Kuu.register(SumPoints, Invariant)
@check_shapes("inducing_variable: [M, D, 1]", "return: [M, M]")
def _Kuu_points(
    inducing_variable: Points, kernel: Invariant, *, jitter: float = 0.0, product: MatrixProduct | None = None
) -> tf.Tensor:
    """
    k_uu(z, z') = k_g(z, z') within a process, zero between two.

    :param product: multiplies matrices, instead of ``tf.matmul``.
    """
    parts = processes(inducing_variable, kernel)
    blocks = [kernel_matrix(innermost(base)[0], points.Z, product) for base, points in parts]
    K = _block_diagonal(blocks)
    return tf.linalg.set_diag(K, tf.linalg.diag_part(K) + jitter)


def _block_diagonal(blocks: list[tf.Tensor]) -> tf.Tensor:
    sizes = [block.shape[0] for block in blocks]
    sides = [(sum(sizes[:i]), sum(sizes[i + 1 :])) for i in range(len(sizes))]
    return tf.concat([tf.pad(block, [[0, 0], side]) for block, side in zip(blocks, sides, strict=True)], axis=0)


@Kuf.register(BasePoints, Invariant, TensorLike)
@Kuf.register(SumPoints, Invariant, TensorLike)
@check_shapes("inducing_variable: [M, E, 1]", "Xnew: [N, D]", "return: [M, N]")
def _Kuf_points(inducing_variable: Points, kernel: Invariant, Xnew: TensorType) -> tf.Tensor:
    """k_uf(z, x) = E_a k_g(z, x_a), of each process"""
    found = [orbit_Kfu(kernel.orbit, base, Xnew, points.Z) for base, points in processes(inducing_variable, kernel)]
    return tf.transpose(tf.concat(found, axis=1))


def place(
    kernel: Invariant,
    X: Any,
    count: int | Sequence[int],
    *,
    method: str = "kmeans",
    seed: int = 0,
    candidates: int = 10_000,
) -> Points:
    """
    Places inducing points among transformed inputs, which is where the model evaluates g.

    :param kernel: its orbit transforms the inputs; ``"greedy"`` also uses its base kernel.
    :param X: [N, D] training inputs.
    :param count: M, the number of points; for a base kernel that is a sum, a list with a number for each process.
    :param method: ``"kmeans"`` or ``"greedy"`` (largest conditional variance first).
    :param candidates: number of transformed inputs to choose from, at most. Each input gives one; if the base kernel
        averages over a finite orbit, such as patches, inputs give several where there are too few.
    :return: :class:`BasePoints`, or :class:`SumPoints` if ``count`` is a list.
    """
    checks.instance("kernel", kernel, Invariant)
    checks.one_of("method", method, METHODS)
    X = _matrix(X)
    checks.integer("candidates", candidates, least=1)
    if isinstance(count, Sequence):
        kernels = kernel.base.kernels if isinstance(kernel.base, Sum) else [kernel.base]
        if len(kernels) != len(count):
            raise ValueError(f"count must name {len(kernels)} numbers, one for each process, got {list(count)}")
        settings: dict[str, Any] = {"method": method, "seed": seed, "candidates": candidates}
        alone = [Invariant(part, kernel.orbit) for part in kernels]
        return SumPoints([place(part, X, number, **settings) for part, number in zip(alone, count, strict=True)])
    inner, listed = innermost(kernel.base)
    most = candidates if listed else min(len(X), candidates)
    checks.integer("count", count, least=1, most=most)
    rng = np.random.default_rng(checks.integer("seed", seed, least=0))
    rows = np.resize(rng.permutation(len(X)), most)
    looked_at = augmented(X[rows], Composed([kernel.orbit, *listed]) if listed else kernel.orbit, seed)
    if method == "greedy":
        return BasePoints(greedy_variance(looked_at, inner, count))
    return BasePoints(kmeans(looked_at, count, seed))


@check_shapes("X: [N, D]", "return: [N, E]")
def augmented(X: TensorType, orbit: Orbit, seed: int) -> np.ndarray:
    """
    :param X: [N, D]
    :return: [N, E], one independent draw from the orbit of each input: points at which the model evaluates g.
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
    :return: [count, D] centres.
    """
    X = _matrix(X)
    checks.integer("count", count, least=1, most=len(X))
    checks.integer("iterations", iterations, least=1)
    if (distinct := distinct_rows(X)) < count:
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


def distinct_rows(X: np.ndarray) -> int:
    """:return: how many different rows X [N, D] has."""
    return len({row.tobytes() for row in X})


def greedy_variance(X: Any, kernel: Kernel, count: int) -> np.ndarray:
    """
    Chooses, one after another, the point of largest prior variance given those chosen before (a pivoted Cholesky
    factorisation, stopped after ``count`` columns; Burt, Rasmussen and van der Wilk, 2020).

    :param X: [N, D]
    :param kernel: k_g.
    :param count: number of points, at most N.
    :return: [count, D] rows of X. Fewer than ``count`` points that differ under the kernel are an error.
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
