"""Appendix B: bias and spread of the estimators of products of orbit averages, where the exact value is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuu

from orbitgp._ops.draw_kernels import DrawKernels
from orbitgp.datasets import ImageData, mnist, one_hot
from orbitgp.datasets.random_streams import stream
from orbitgp.inducing import BasePoints, place
from orbitgp.kernels import Invariant
from orbitgp.likelihoods import Batch, Moments, expected_log_density
from orbitgp.orbits import FiniteOrbit, Orbit, QuantisedRotation
from orbitgp.orbits.sampling import split
from orbitgp.schemes import (
    FullOrbit,
    Groups,
    Scheme,
    WithoutReplacement,
    average,
    paper_scheme,
    square_norm_of_average,
    square_of_average,
    variance_of_average,
)

QUANTITIES = ("k_ff", "square_norm", "bound")
VARIANCE, LENGTHSCALE, NOISE_VARIANCE = 0.02, 6.0, 0.02  # near what training finds on MNIST
CANDIDATES = 2000  # images that k-means looks at
ROUNDING = 1e-12  # what is smaller, relative to the exact value, is rounding and no spread
NUMBERS_TOGETHER = 2**23  # largest size of an array


@dataclass(frozen=True)
class Naive(FullOrbit):
    """Treats ``size`` draws as the whole orbit: all pairs, also of a draw with itself. Biased; shown as a warning."""

    size: int
    sampler: str

    def draw(self, orbit: Orbit, X: TensorType, seed: TensorType) -> tf.Tensor:
        """One group."""
        return orbit.sample(X, 1, self.size, seed, self.sampler)


ESTIMATORS: dict[str, Callable[[int], Scheme]] = {
    "iid": paper_scheme,
    "iid_groups": lambda samples: Groups(2, samples // 2, "iid"),
    "sobol_groups": lambda samples: Groups(2, samples // 2, "sobol"),
    "without_replacement": WithoutReplacement,
    "naive": lambda samples: Naive(samples, "iid"),
    "sobol_naive": lambda samples: Naive(samples, "sobol"),
}


@dataclass(frozen=True, eq=False)
class Problem:
    """A batch, a kernel with a finite orbit and a posterior q(v) = N(m, T Tᵀ) in whitened terms."""

    kernel: Invariant
    likelihood: gpflow.likelihoods.Gaussian
    inducing_variable: BasePoints
    q_mu: np.ndarray  #: [M, P], m
    q_sqrt: np.ndarray  #: [M, M], T
    X: np.ndarray  #: [N, D]
    Y: np.ndarray  #: [N, P]

    @property
    def orbit(self) -> FiniteOrbit:
        """The kernel's orbit."""
        return self.kernel.orbit

    @cached_property
    def kernels(self) -> tf.Tensor:
        """[N, A, A], k_g between all A points of each image's orbit."""
        return self._at_all_points[0]

    @cached_property
    def features(self) -> tf.Tensor:
        """[N, A, 2 M + P], side by side φ, Tᵀφ and φᵀm at each point of each image's orbit."""
        Kfu = self._at_all_points[1]
        N, A, M = Kfu.shape
        L = tf.linalg.cholesky(Kuu(self.inducing_variable, self.kernel, jitter=gpflow.default_jitter()))
        phi = tf.transpose(tf.linalg.triangular_solve(L, tf.transpose(tf.reshape(Kfu, [N * A, M]))))
        return tf.reshape(tf.concat([phi, phi @ self.q_sqrt, phi @ self.q_mu], axis=1), [N, A, -1])

    @cached_property
    def _at_all_points(self) -> tuple[tf.Tensor, tf.Tensor]:
        drawn = self.orbit.full(self.X)[:, :, None, :]  # each point a group of its own
        return DrawKernels(self.kernel.base, self.inducing_variable.Z)(drawn)


def make_problem(settings: Mapping[str, Any], data: ImageData) -> Problem:
    """
    The first training images under rotations by multiples of 360°/``order``, with an RBF kernel, inducing points by
    k-means and a random q.

    :param settings: ``images``, ``inducing``, ``order`` and ``seed`` as in :func:`compare`.
    """
    M, seed = settings["inducing"], settings["seed"]
    base = gpflow.kernels.SquaredExponential(VARIANCE, LENGTHSCALE)
    kernel = Invariant(base, QuantisedRotation(data.train.shape, settings["order"]))
    candidates = data.train.take(min(CANDIDATES, len(data.train))).inputs()
    batch = data.train.take(settings["images"])
    classes = np.unique(data.train.labels)
    Y = one_hot(np.searchsorted(classes, batch.labels), len(classes))
    rng = stream("estimators/q", seed)
    return Problem(
        kernel,
        gpflow.likelihoods.Gaussian(NOISE_VARIANCE),
        place(kernel, candidates, M, seed=seed),
        q_mu=rng.normal(size=(M, len(classes))),
        q_sqrt=np.tril(rng.normal(size=(M, M))) / np.sqrt(M),
        X=batch.inputs(),
        Y=Y,
    )


def compare(settings: Mapping[str, Any], data: ImageData | None = None) -> pd.DataFrame:
    """
    Each estimator, for each number of draws, beside the exact value from the whole orbit. All three quantities are
    means over the batch, which is what a training step sees:

    - ``k_ff``: k_ff(x, x);
    - ``square_norm``: ‖φ̄‖², φ̄ = E_a L⁻¹ k_g(Z, x_a);
    - ``bound``: E_q log p(y | f) under a Gaussian likelihood, in nats, summed over outputs.

    ``shared``: one set of transformations for the whole batch, or one for each image. Each image's estimate is as good
    either way, but the errors of shared draws are alike in all images, and a larger batch averages them out only in
    part.

    ``bias`` is the mean over ``repeats`` independent estimates less the exact value, ``bias_std_error`` its standard
    error, ``std`` the standard deviation of one estimate. ``cost`` is the number of evaluations of k_g for an image:
    S² pairs of draws for k_ff, S M pairs of a draw and an inducing point for ‖φ̄‖², both for the bound. At one S it is
    the same for all estimators; what groups save comes after, in columns to solve for.

    :param settings: ``samples``: the numbers of draws, each even and at most ``order``; ``repeats``; ``images``: size
        of the batch; ``inducing``: number of inducing points, M; ``order``: number of rotations in the orbit;
        ``seed``: decides everything that is random.
    :param data: whose training images are used; MNIST if None.
    :return: columns estimator, shared, samples, quantity, exact, mean, bias, bias_std_error, std, cost, repeats.
    """
    start = tf.constant([settings["seed"], 0], tf.int64)
    problem = make_problem(settings, mnist() if data is None else data)
    exact = estimates(problem, FullOrbit(), 1, start)[0]

    rows = []
    for number, (name, scheme) in enumerate(ESTIMATORS.items()):
        for shared in (False, True):
            for samples in settings["samples"]:
                # a stream for each row: another list of samples leaves the other rows as they are
                seed = split(split(split(start, number), int(shared)), samples)
                found = estimates(problem, scheme(samples), settings["repeats"], seed, shared=shared)
                about = {"estimator": name, "shared": shared, "samples": samples}
                rows += _summaries(about, exact, found, settings["inducing"])
    return pd.DataFrame(rows)


def estimates(problem: Problem, scheme: Scheme, repeats: int, seed: TensorType, *, shared: bool = False) -> np.ndarray:
    """
    Independent estimates of the means over the batch. k_g is evaluated once at all points of all orbits; the scheme
    then draws numbers of points by the code that draws images in training, and the estimate is made of these points.

    :param seed: [2] integers.
    :param shared: whether all images of the batch get the same points.
    :return: [repeats, 3], in the order of ``QUANTITIES``.
    """
    scheme.check(problem.orbit)
    numbers = _Numbers(problem.orbit.order)
    images = len(problem.X)
    draws = int(np.prod(scheme.draw(numbers, tf.zeros([1, 1], tf.float64), seed).shape))
    together = max(1, NUMBERS_TOGETHER // (images * draws * max(draws, problem.features.shape[2])))
    found = []
    for done in range(0, repeats, together):
        now = min(together, repeats - done)
        inputs = tf.zeros([now if shared else images * now, 1], tf.float64)
        points = tf.cast(scheme.draw(numbers, inputs, split(seed, done)), tf.int32)
        points = tf.reshape(points, [1 if shared else images, now, *points.shape[1:3]])
        points = tf.broadcast_to(points, [images, *points.shape[1:]])
        found.append(_estimate(problem, scheme, points))
    return np.concatenate(found)


class _Numbers(FiniteOrbit):
    """Stands in for an orbit of any images: what is drawn are the numbers of its points."""

    def __init__(self, order: int) -> None:
        super().__init__()
        self._order = order

    @property
    def order(self) -> int:
        return self._order

    def full(self, X: TensorType) -> tf.Tensor:
        listed = tf.range(self.order, dtype=tf.float64)[None, :, None]
        return tf.tile(listed, [tf.shape(X)[0], 1, 1])


def _estimate(problem: Problem, scheme: Scheme, points: tf.Tensor) -> np.ndarray:
    """
    :param points: [N, R, G, n], numbers of points of each image's orbit.
    :return: [R, 3]
    """
    weights, order, M = scheme.weights(problem.orbit), problem.orbit.order, len(problem.q_mu)
    N, R, G, n = points.shape
    S = G * n
    flat = tf.reshape(points, [N, R, S])
    pairs = tf.reshape(flat[..., :, None] * order + flat[..., None, :], [N, R * S * S])
    Kaa = tf.gather(tf.reshape(problem.kernels, [N, order * order]), pairs, batch_dims=1)
    k_ff = variance_of_average(tf.reshape(Kaa, [N * R, S, S]), G, weights)

    features = tf.gather(problem.features, tf.reshape(points, [N, R * S]), batch_dims=1)
    by_group = tf.reduce_mean(tf.reshape(features, [N * R, G, n, -1]), axis=2)
    phi, spread, means = by_group[..., :M], by_group[..., M : 2 * M], by_group[..., 2 * M :]
    square_norm = square_norm_of_average(phi, weights)
    variance = (k_ff - square_norm + square_norm_of_average(spread, weights))[:, None]
    moments = Moments(average(means), square_of_average(means, weights), variance)
    batch = Batch(tf.repeat(problem.X[:, :1], R, axis=0), tf.repeat(problem.Y, R, axis=0))
    bound = expected_log_density(problem.likelihood, batch, moments, lambda: moments)
    return np.stack([tf.reduce_mean(tf.reshape(part, [N, R]), 0) for part in (k_ff, square_norm, bound)], axis=1)


def _summaries(about: dict[str, Any], exact: np.ndarray, found: np.ndarray, M: int) -> list[dict[str, Any]]:
    """
    :param exact: [3]
    :param found: [repeats, 3]
    """
    repeats, S = len(found), about["samples"]
    costs = {"k_ff": S * S, "square_norm": S * M, "bound": S * (S + M)}
    rows = []
    for i, quantity in enumerate(QUANTITIES):
        least = ROUNDING * abs(exact[i])
        bias, std = (
            float(v) if abs(v) > least else 0.0 for v in (found[:, i].mean() - exact[i], found[:, i].std(ddof=1))
        )
        rows.append(
            about
            | {
                "quantity": quantity,
                "exact": float(exact[i]),
                "mean": float(exact[i]) + bias,
                "bias": bias,
                "bias_std_error": std / np.sqrt(repeats),
                "std": std,
                "cost": costs[quantity],
                "repeats": repeats,
            }
        )
    return rows
