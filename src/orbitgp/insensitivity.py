"""How insensitive a model is to its own orbit (appendix A of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from scipy.stats import norm

from orbitgp import checks
from orbitgp._ops.precision import in_precision
from orbitgp.models import PREDICTED_TOGETHER, InvariantSVGP
from orbitgp.orbits.sampling import split

VIEWS = ("prior", "posterior")


@dataclass(frozen=True)
class Insensitivity:
    """For each input, and each output where the posterior was asked for (the prior is the same for all)."""

    thresholds: np.ndarray  #: [K], L
    probability: np.ndarray  #: [N, P, K], P([f(x) − f(x_a)]² > L)
    expected_square: np.ndarray  #: [N, P], E [f(x) − f(x_a)]²

    @property
    def bound(self) -> np.ndarray:
        """[N, P, K], the lemma: with L = ε E[…]², the probability is below 1/ε = E[…]²/L."""
        return np.minimum(1.0, self.expected_square[:, :, None] / self.thresholds)


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

    Given x_a the difference is Gaussian, so its tail is exact, and only x_a is drawn. Under the prior the kernel is
    scaled to k(x, x) = 1 as in the appendix, since without that a constant f would be the least sensitive of all.

    :param X: [N, D]
    :param thresholds: [K], values of L, each more than 0.
    :param view: ``"prior"`` (f ~ GP(0, k_f), scaled) or ``"posterior"`` (f ~ q).
    :param draws: how many x_a for each input.
    :param samples: draws from the orbit behind each value of f, where the orbit is not finite.
    """
    checks.instance("model", model, InvariantSVGP)
    checks.one_of("view", view, VIEWS)
    checks.integer("draws", draws, least=1)
    checks.integer("samples", samples, least=1)
    limits = checks.vector("thresholds", thresholds, len(thresholds))
    if not len(limits) or np.any(limits <= 0):
        raise ValueError(f"thresholds must be one or more numbers above 0, got {limits}")
    start = tf.constant([checks.integer("seed", seed, least=0), 0], tf.int64)

    X = tf.cast(X, model.compute_dtype)
    N = X.shape[0]
    moved = model.kernel.orbit.sample(X, 1, draws, split(start, 0))[:, 0]
    first, second = tf.repeat(X, draws, axis=0), tf.reshape(moved, [N * draws, -1])
    if view == "prior":
        variance = 2 * (1 - _prior_correlation(model, first, second, samples, split(start, 1)))
        mean = tf.zeros_like(variance)
    else:
        mean, variance = model.difference(first, second, samples=samples, seed=split(start, 1))
    mean, variance = (np.asarray(part, np.float64).reshape(N, draws, -1) for part in (mean, variance))
    tails = _tail(mean[..., None], variance[..., None], np.sqrt(limits))
    return Insensitivity(limits, tails.mean(axis=1), (np.square(mean) + variance).mean(axis=1))


def _tail(mean: np.ndarray, variance: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """P(|d| > distance) for d ~ N(mean, variance); a variance of zero is a sure value."""
    scale = np.sqrt(np.maximum(variance, np.finfo(np.float64).tiny))
    return norm.sf((distance - mean) / scale) + norm.cdf((-distance - mean) / scale)


def _prior_correlation(model: InvariantSVGP, X: tf.Tensor, X2: tf.Tensor, samples: int, seed: tf.Tensor) -> tf.Tensor:
    """k_f(x, x')/√(k_f(x, x) k_f(x', x')), row by row, [N, 1]"""
    found = []
    for number in range(0, X.shape[0], PREDICTED_TOGETHER):
        rows = slice(number, number + PREDICTED_TOGETHER)
        sides = [
            model.scheme.draw_for_prediction(model.kernel.orbit, side[rows], samples, split(split(seed, number), i))
            for i, side in enumerate((X, X2))
        ]
        size = tf.shape(sides[0])[1]
        K = in_precision(model.kernel.base, model.compute_dtype)(tf.concat(sides, axis=1))
        within, within2 = (tf.reduce_mean(block, axis=[1, 2]) for block in (K[:, :size, :size], K[:, size:, size:]))
        across = tf.reduce_mean(K[:, :size, size:], axis=[1, 2])
        found.append(across / tf.sqrt(within * within2))
    return tf.minimum(tf.concat(found, axis=0), 1.0)[:, None]
