"""
Figure 2 for many functions and points, with the same models: what a single draw shows may be luck.

Exact Gaussian processes on some tens of points, in NumPy. All models have the squared-exponential base kernel

    k(x, x') = v exp(−|x − x'|²/2ℓ²),    k_f(x, x') = (k(x, x') + c k(x, sx'))/(1 + |c|),    s switches the coordinates,

with c = 1 for the invariant model, −1 for the anti-symmetric one and 0 for the plain one. Two more are plain models of
enlarged data: ``augmented`` has each point and its mirror image, ``doubled`` each point twice, which adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import log_expit, logsumexp
from scipy.stats import norm

from orbitgp.datasets import symmetric

Array = npt.NDArray[np.float64]

SIGNS = {"invariant": 1, "plain": 0, "antisymmetric": -1, "augmented": 0, "doubled": 0}
LEAST_NOISE = 1e-6  # variance; as GPflow's Gaussian likelihood has it
STARTS = np.log([[1.0, 0.5, 0.01], [1.0, 0.25, 0.3]])  # variance, lengthscale and noise variance
LIMITS = [(-8.0, 8.0), (-4.0, 4.0), (np.log(LEAST_NOISE), 4.0)]
SIDE = 31  # of the grid of test points
COVERAGE = norm.ppf(0.975)  # standard deviations of a 95 % interval
ROUNDS = 1000  # of the fixed point for q, at most
SAMPLES = 4_000  # for the marginal likelihood of labels


@dataclass(frozen=True)
class Fit:
    """An exact Gaussian process: data, log kernel parameters and log noise variance, and log p(y)."""

    X: Array
    y: Array
    sign: int
    logs: Array
    evidence: float

    def covariance(self, A: Array, B: Array) -> Array:
        """k_f, [N, 2], [M, 2] → [N, M]"""
        return _covariance(A, B, self.sign, self.logs)[0]

    @property
    def noise(self) -> float:
        """Variance of the noise."""
        return float(np.exp(self.logs[2]))

    def predict(self, A: Array, seen: slice | npt.NDArray[np.bool_] = slice(None)) -> tuple[Array, Array]:
        """
        Mean and variance of f at A, [N, 2] → [N], [N].

        :param seen: the training points that are known.
        """
        X, y = self.X[seen], self.y[seen]
        L = cholesky(self.covariance(X, X) + self.noise * np.eye(len(X)), lower=True)
        V = solve_triangular(L, self.covariance(X, A), lower=True)
        mean = V.T @ solve_triangular(L, y, lower=True)
        return mean, self.prior(A) - np.sum(V**2, axis=0)

    def prior(self, A: Array) -> Array:
        """Variance of f at A, [N, 2] → [N]."""
        mirrored = np.exp(-0.5 * np.sum((A - A[:, ::-1]) ** 2, axis=1) / np.exp(2 * self.logs[1]))
        return np.exp(self.logs[0]) * (1 + self.sign * mirrored) / (1 + abs(self.sign))


def fit(X: Array, y: Array, sign: int) -> Fit:
    """
    Kernel and noise by maximum marginal likelihood, the best from two starts.

    :param X: [N, 2]
    :param y: [N]
    :param sign: c of the kernel.
    """
    ends = [minimize(_loss, at, args=(X, y, sign), jac=True, method="L-BFGS-B", bounds=LIMITS) for at in STARTS]
    best = min(ends, key=lambda end: float(end.fun))
    return Fit(X, y, sign, best.x, -float(best.fun))


def measure(settings: Mapping[str, Any]) -> pd.DataFrame:
    """
    :param settings: ``seed`` of the first draw, ``train`` points and ``draws``; the others have the seeds that follow.
    :return: a row for each draw and model; see :func:`measure_draw`.
    """
    seeds = range(settings["seed"], settings["seed"] + settings["draws"])
    return pd.concat([measure_draw(seed, settings["train"]) for seed in seeds], ignore_index=True)


def measure_draw(seed: int, train: int) -> pd.DataFrame:
    """
    :return: a row for each model: draw, model, log_marginal_likelihood, train_rmse, test_rmse, noise (a standard
        deviation), coverage (share of test points in the 95 % interval of f); where the data are not enlarged also,
        for each side of the diagonal that is seen first, rmse, std_ratio and second of the other side, as
        :func:`orbitgp_paper.experiments.toy.half_by_half` has them; and of the signs of y as labels, elbo_polya_gamma,
        elbo_logistic and log_p_labels, as :func:`classify` has them.
    """
    data = symmetric(seed, train=train, test=SIDE)
    X, y, grid, truth = data.train.X, data.train.Y[:, 0], data.test.X, data.test.Y[:, 0]
    rows = []
    for model, sign in SIGNS.items():
        more = {"augmented": X[:, ::-1], "doubled": X}.get(model)
        own = fit(X, y, sign) if more is None else fit(np.concatenate([X, more]), np.concatenate([y, y]), sign)
        mean, variance = own.predict(grid)
        fitted, _ = own.predict(X)
        row: dict[str, Any] = {
            "draw": seed,
            "model": model,
            "log_marginal_likelihood": own.evidence,
            "train_rmse": _rms(fitted - y),
            "test_rmse": _rms(mean - truth),
            "noise": np.sqrt(own.noise),
            "coverage": np.mean(np.abs(mean - truth) <= COVERAGE * np.sqrt(np.maximum(variance, 0.0))),
        }
        if more is None:
            row |= _halves(own)
            labels = classify(own.covariance(X, X), np.where(y > 0, 1.0, -1.0), np.random.default_rng(seed))
            row |= dict(zip(("elbo_polya_gamma", "elbo_logistic", "log_p_labels"), labels, strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


def classify(K: Array, y: Array, generator: np.random.Generator) -> tuple[float, float, float]:
    """
    Labels y = ±1 with p(y | f) = Π σ(y f), f ~ N(0, K). The best Gaussian q(f) = N(m, S) under the Pólya-Gamma bound
    has S = (K⁻¹ + Θ)⁻¹, m = S y/2, Θ = diag θ(c), c² = m² + diag S.

    :param K: [N, N]
    :param y: [N]
    :return: the bound at this q, the bound with E log σ by quadrature at the same q, and log p(y) by importance
        sampling from q.
    """
    eye = np.eye(len(y))
    c, before = np.ones_like(y), -np.inf
    for _ in range(ROUNDS):
        theta = np.tanh(c / 2) / (2 * c)
        root = np.sqrt(theta)
        L = cholesky(eye + root[:, None] * K * root, lower=True)  # B = I + Θ^½ K Θ^½
        V = solve_triangular(L, root[:, None] * K, lower=True)
        S = K - V.T @ V
        m = S @ y / 2
        moment = m**2 + np.diag(S)
        c = np.sqrt(moment)
        alpha = y / 2 - theta * m  # K⁻¹ m
        kl = 0.5 * (np.sum(cho_solve((L, True), eye).diagonal()) - len(y) + m @ alpha) + np.sum(np.log(np.diag(L)))
        tilted = np.tanh(c / 2) / (2 * c)
        bound = y @ m / 2 - 0.5 * tilted @ moment - np.sum(np.log(2 * np.cosh(c / 2)) - c * np.tanh(c / 2) / 4) - kl
        if bound - before < 1e-9 * abs(bound):
            break
        before = bound
    points, weights = np.polynomial.hermite_e.hermegauss(64)
    f = m[:, None] + np.sqrt(np.diag(S))[:, None] * points
    quadrature = np.sum(log_expit(y[:, None] * f) @ (weights / weights.sum())) - kl
    R = cholesky(S + 1e-10 * np.trace(S) / len(y) * eye, lower=True)
    f = m[:, None] + R @ generator.standard_normal((len(y), SAMPLES))
    # log q/p, since S⁻¹ = K⁻¹ + Θ and |K|/|S| = |B|
    log_ratio = np.sum(np.log(np.diag(L))) - 0.5 * theta @ (f - m[:, None]) ** 2 + alpha @ f - 0.5 * m @ alpha
    evidence = logsumexp(np.sum(log_expit(y[:, None] * f), axis=0) - log_ratio) - np.log(SAMPLES)
    return float(bound), float(quadrature), float(evidence)


def _halves(own: Fit) -> dict[str, float]:
    """What the points above the diagonal tell of those below, and the other way round."""
    above, found = own.X[:, 1] > own.X[:, 0], {}
    for side, seen in (("above", above), ("below", ~above)):
        mean, variance = own.predict(own.X[~seen], seen)
        found[f"rmse_{side}"] = _rms(mean - own.y[~seen])
        found[f"std_ratio_{side}"] = float(np.mean(np.sqrt(np.maximum(variance, 0.0) / own.prior(own.X[~seen]))))
        first = -_loss(own.logs, own.X[seen], own.y[seen], own.sign)[0]
        found[f"second_{side}"] = own.evidence - first
    return found


def _covariance(A: Array, B: Array, sign: int, logs: Array) -> tuple[Array, Array]:
    """:return: k_f and its derivative by log ℓ"""
    variance, squared = np.exp(logs[0]), np.exp(2 * logs[1])
    K, by_lengthscale = np.zeros((len(A), len(B))), np.zeros((len(A), len(B)))
    for weight, other in ((1, B), (sign, B[:, ::-1])):
        distances = np.sum((A[:, None] - other[None]) ** 2, axis=-1) / squared
        part = weight * variance / (1 + abs(sign)) * np.exp(-0.5 * distances)
        K, by_lengthscale = K + part, by_lengthscale + part * distances
    return K, by_lengthscale


def _loss(logs: Array, X: Array, y: Array, sign: int) -> tuple[float, Array]:
    """−log N(y; 0, K + noise), and its gradient by log variance, log ℓ and log noise variance."""
    K, by_lengthscale = _covariance(X, X, sign, logs)
    noise = np.exp(logs[2])
    L = cholesky(K + noise * np.eye(len(y)), lower=True)
    alpha = cho_solve((L, True), y)
    inner = cho_solve((L, True), np.eye(len(y))) - np.outer(alpha, alpha)
    value = 0.5 * y @ alpha + np.sum(np.log(np.diag(L))) + 0.5 * len(y) * np.log(2 * np.pi)
    return float(value), 0.5 * np.array([np.sum(inner * K), np.sum(inner * by_lengthscale), noise * np.trace(inner)])


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
