"""How insensitive a model is to its own orbit (appendix A of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from scipy.stats import norm

from orbitgp import checks
from orbitgp._ops.blocks import map_blocks
from orbitgp.models import InvariantSVGP
from orbitgp.orbits.sampling import split
from orbitgp.posteriors import InvariantPosterior

VIEWS = ("prior", "posterior")
TOGETHER = 64  # pairs of inputs at a time, each with two independent sets of draws


@dataclass(frozen=True)
class Insensitivity:
    """Deviations for each input and output; under the prior all outputs are the same, and P = 1."""

    thresholds: np.ndarray  #: [K], the values of L
    probability: np.ndarray  #: [N, P, K], P([f(x) − f(x_a)]² > L)
    expected_square: np.ndarray  #: [N, P], E [f(x) − f(x_a)]²

    @property
    def bound(self) -> np.ndarray:
        """[N, P, K], the lemma's bound: with L = ε E[…]², the probability is below 1/ε = E[…]²/L."""
        return np.clip(self.expected_square[:, :, None] / self.thresholds, 0.0, 1.0)


def insensitivity(
    model: InvariantSVGP,
    X: TensorType,
    thresholds: Sequence[float] | np.ndarray,
    *,
    view: str = "posterior",
    draws: int = 16,
    samples: int = 64,
    seed: int = 0,
) -> Insensitivity:
    """
    P([f(x) − f(x_a)]² > L) over both f and x_a ~ p(x_a | x), and the bound of the lemma beside it.

    Given x_a, the difference d = f(x) − f(x_a) is Gaussian, so its tail is exact, and only x_a is drawn. Its moments
    come from two independent sets of draws, each the same for x and x_a: the mean from both, and E d² from products of
    one with the other, which are unbiased for any number of draws. Under the prior the kernel is scaled to k(x, x) = 1
    as in the appendix: otherwise f would seem insensitive just by being small.

    :param X: [N, D]
    :param thresholds: [K], values of L, each more than 0.
    :param view: ``"prior"`` (f ~ GP(0, k_f), scaled) or ``"posterior"`` (f ~ q).
    :param draws: number of x_a for each input.
    :param samples: draws from the orbit for each value of f, unless the orbit is finite; an even number.
    """
    checks.instance("model", model, InvariantSVGP)
    checks.one_of("view", view, VIEWS)
    checks.integer("draws", draws, least=1)
    if checks.integer("samples", samples, least=2) % 2:
        raise ValueError(f"samples must be even, to make two sets, got {samples}")
    limits = checks.vector("thresholds", thresholds, len(thresholds))
    if not len(limits) or np.any(limits <= 0):
        raise ValueError(f"thresholds must be one or more numbers above 0, got {limits}")
    start = tf.constant([checks.integer("seed", seed, least=0), 0], tf.int64)

    X = tf.cast(X, model.compute_dtype)
    N = X.shape[0]
    moved = model.kernel.orbit.sample(X, 1, draws, split(start, 0))[:, 0]
    if moved.shape[-1] != X.shape[-1]:
        raise ValueError(
            f"{type(model.kernel.orbit).__name__} maps to another space than that of f's inputs, so f has no values "
            "there to compare; make the patches part of the base kernel"
        )
    first, second = tf.repeat(X, draws, axis=0), tf.reshape(moved, [N * draws, -1])
    measure = _prior_moments if view == "prior" else _posterior_moments
    found = measure(model, first, second, samples // 2, split(start, 1))
    mean, square = (np.asarray(part, np.float64).reshape(N, draws, -1) for part in found)
    tails = _tail(mean[..., None], (square - np.square(mean))[..., None], np.sqrt(limits))
    return Insensitivity(limits, tails.mean(axis=1), square.mean(axis=1))


def _tail(mean: np.ndarray, variance: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """P(|d| > distance) for d ~ N(mean, variance); a variance of zero, or an estimate below it, is a sure value."""
    scale = np.sqrt(np.maximum(variance, np.finfo(np.float64).tiny))
    return norm.sf((distance - mean) / scale) + norm.cdf((-distance - mean) / scale)


@check_shapes("X: [N, D]", "X2: [N, D]", "return[0]: [N, P]", "return[1]: [N, P]")
def _posterior_moments(
    model: InvariantSVGP, X: tf.Tensor, X2: tf.Tensor, samples: int, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Unbiased estimates of E d and E d² for d = f(x) − f(x') under q, row by row."""
    posterior, dtype = model.posterior(), model.q_mu.dtype
    differences = tf.constant([[1, -1, 0, 0], [0, 0, 1, -1]], dtype)

    def measure(number: tf.Tensor, rows: tf.Tensor, rows2: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        means, covariance = posterior.functionals(_two_sets(posterior, rows, rows2, samples, seed), differences)
        shift, shift2 = (model.mean_function(tf.cast(side, dtype)) for side in (rows, rows2))
        one, other = means[:, 0] + shift - shift2, means[:, 1] + shift - shift2
        return 0.5 * (one + other), one * other + covariance[:, 0, 1]

    return map_blocks(measure, (X, X2), TOGETHER, (dtype, dtype))


@check_shapes("X: [N, D]", "X2: [N, D]", "return[0]: [N, 1]", "return[1]: [N, 1]")
def _prior_moments(
    model: InvariantSVGP, X: tf.Tensor, X2: tf.Tensor, samples: int, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """E d = 0 and E d² = 2 (1 − k(x, x')/√(k(x, x) k(x', x'))), row by row, each k from one set with the other."""
    posterior, dtype = model.posterior(), model.q_mu.dtype

    def measure(number: tf.Tensor, rows: tf.Tensor, rows2: tf.Tensor) -> tuple[tf.Tensor]:
        K = tf.cast(posterior.prior_covariance(_two_sets(posterior, rows, rows2, samples, seed)), dtype)
        across = 0.5 * (K[:, 0, 3] + K[:, 1, 2])
        return (2 * tf.maximum(1 - across / tf.sqrt(K[:, 0, 2] * K[:, 1, 3]), 0.0)[:, None],)

    (square,) = map_blocks(measure, (X, X2), TOGETHER, (dtype,))
    return tf.zeros_like(square), square


def _two_sets(posterior: InvariantPosterior, X: tf.Tensor, X2: tf.Tensor, samples: int, seed: tf.Tensor) -> tf.Tensor:
    """[N, 4, S, D]: draws for x and for x' by one set of uniforms, then for both by another."""
    sets = [posterior.draw(side, samples, split(seed, i)) for i in (0, 1) for side in (X, X2)]
    return tf.stack(sets, axis=1)
