"""Figure 2: a symmetric function, learned by a GP that knows the symmetry and by one that does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel
from gpflow.kullback_leiblers import gauss_kl
from gpflow.utilities import set_trainable

from orbitgp import files
from orbitgp.datasets import PointData, Points, symmetric
from orbitgp.inducing import BasePoints, greedy_variance
from orbitgp.kernels import Invariant
from orbitgp.models import InvariantSVGP
from orbitgp.optimizers.natural import best_posterior
from orbitgp.orbits import FiniteOrbit, Identity, Permutation
from orbitgp.schemes import FullOrbit

JITTER = 1e-8  # small beside the noise variance of the data, 2e-3

ORBITS: dict[str, FiniteOrbit] = {"invariant": Permutation([[0, 1], [1, 0]]), "plain": Identity()}


@dataclass(frozen=True)
class ToyResult:
    """A row of numbers for each model, and each model's posterior mean on the test points, [test, 1]."""

    metrics: pd.DataFrame
    means: dict[str, np.ndarray]
    bounds: pd.DataFrame
    halves: pd.DataFrame


class Antisymmetric(Kernel):
    """
    The covariance of f(x) = (g(x) − g(sx))/2, which a switch s of the two coordinates turns into −f, under
    g ~ GP(0, k_g):  k_f(x, x') = (k_g(x, x') − k_g(x, sx') − k_g(sx, x') + k_g(sx, sx'))/4.
    """

    def __init__(self, base: Kernel) -> None:
        super().__init__()
        self.base = base

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        """[N, 2], [N2, 2] → [N, N2]"""
        X2 = X if X2 is None else X2
        sX, sX2 = X[:, ::-1], X2[:, ::-1]
        return (self.base(X, X2) - self.base(X, sX2) - self.base(sX, X2) + self.base(sX, sX2)) / 4

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        """[N, 2] → [N]"""
        return tf.linalg.diag_part(self.K(X))


def fit_toy(data: PointData, inducing: Sequence[int] = ()) -> ToyResult:
    """
    Fits both models by exact GP regression: kernel and noise by maximum marginal likelihood (L-BFGS). For each number
    of inducing points, the best variational bound stands beside the best marginal likelihood.

    :param data: training and test points in two dimensions.
    :param inducing: numbers of inducing points; one above the number of orbit points of the data is left out.
    :return: metrics with columns model, log_marginal_likelihood, train_rmse, test_rmse, variance, lengthscale, noise;
        bounds with columns model, inducing, elbo, log_marginal_likelihood; halves as :func:`half_by_half` has them,
        also of an anti-symmetric model.
    """
    rows, bounds, means, halves = [], [], {}, []
    for name, orbit in ORBITS.items():
        model = _fit(name, Invariant(gpflow.kernels.SquaredExponential(lengthscales=0.5), orbit), data.train)
        halves.append(half_by_half(name, model))
        means[name] = model.predict_f(data.test.X)[0].numpy()
        evidence = float(model.log_marginal_likelihood())
        rows.append(
            {
                "model": name,
                "log_marginal_likelihood": evidence,
                "train_rmse": _rmse(model, data.train),
                "test_rmse": _rmse(model, data.test),
                "variance": float(model.kernel.base.variance.numpy()),
                "lengthscale": float(model.kernel.base.lengthscales.numpy()),
                "noise": float(np.sqrt(model.likelihood.variance.numpy())),
            }
        )
        for count in inducing:
            if count <= orbit.order * len(data.train):  # else more points than the model ever looks at
                row = {"model": name, "inducing": count, "elbo": best_bound(model, data.train, count)}
                bounds.append(row | {"log_marginal_likelihood": evidence})
    opposite = _fit("antisymmetric", Antisymmetric(gpflow.kernels.SquaredExponential(lengthscales=0.5)), data.train)
    halves.append(half_by_half("antisymmetric", opposite))
    return ToyResult(pd.DataFrame(rows), means, pd.DataFrame(bounds), pd.concat(halves, ignore_index=True))


def half_by_half(name: str, model: gpflow.models.GPR) -> pd.DataFrame:
    """
    What the points on one side of the diagonal tell of those on the other: log p(y) = log p(y₁) + log p(y₂ | y₁).

    :param model: fitted to all points; kernel and noise are left as they are.
    :return: two rows, one for each side that is seen first: columns model, seen (the side of y₁, above where x₂ > x₁),
        log_marginal_likelihood, first and second (its two terms), and of the points on the other side rmse and
        std_ratio, the mean of the standard deviation of f given y₁ over that of the prior.
    """
    X, Y = (np.asarray(part) for part in model.data)
    evidence, above, rows = float(model.log_marginal_likelihood()), X[:, 1] > X[:, 0], []
    for side, seen in (("above", above), ("below", ~above)):
        half = gpflow.models.GPR((X[seen], Y[seen]), model.kernel, noise_variance=model.likelihood.variance.numpy())
        mean, variance = half.predict_f(X[~seen])
        first = float(half.log_marginal_likelihood())
        rows.append(
            {
                "model": name,
                "seen": side,
                "log_marginal_likelihood": evidence,
                "first": first,
                "second": evidence - first,
                "rmse": float(np.sqrt(np.mean(np.square(mean - Y[~seen])))),
                "std_ratio": float(np.mean(np.sqrt(variance[:, 0] / model.kernel.K_diag(X[~seen])))),
            }
        )
    return pd.DataFrame(rows)


def best_bound(model: gpflow.models.GPR, points: Points, count: int) -> float:
    """
    The variational bound, maximised over kernel, noise and inducing points; the best q for these is known in closed
    form.

    :param model: whose kernel and noise are the start; they are not changed.
    :param points: training data.
    :param count: M inducing points, first the most informative of all orbit points of the data.
    """
    orbit = model.kernel.orbit
    start = greedy_variance(orbit.full(points.X).numpy().reshape(-1, points.X.shape[1]), model.kernel.base, count)
    kernel = Invariant(gpflow.utilities.deepcopy(model.kernel.base), orbit)
    noise = gpflow.likelihoods.Gaussian(float(model.likelihood.variance.numpy()))
    sparse = InvariantSVGP(kernel, noise, BasePoints(start), scheme=FullOrbit(), jitter=JITTER)
    set_trainable(sparse.q_mu, False)
    set_trainable(sparse.q_sqrt, False)

    def bound() -> tf.Tensor:
        quadratic = sparse.quadratic((points.X, points.Y), [0, 0])
        mean, root = best_posterior(quadratic)
        covariance = tf.matmul(root, root, transpose_b=True)
        return quadratic(mean, covariance) - gauss_kl(mean, root)

    gpflow.optimizers.Scipy().minimize(lambda: -bound(), sparse.trainable_variables, options={"maxiter": 500})
    return float(bound())


def run_toy(settings: Mapping[str, Any], folder: Path) -> None:
    """
    Writes metrics.csv, bounds.csv, halves.csv and surfaces.npz.

    :param settings: ``seed``, ``train`` and ``inducing`` of the configuration.
    """
    data = symmetric(settings["seed"], train=settings["train"])
    result = fit_toy(data, settings["inducing"])
    for name, frame in (("metrics", result.metrics), ("bounds", result.bounds), ("halves", result.halves)):
        files.write_csv(folder / f"{name}.csv", list(map(str, frame)), frame.itertuples(index=False))
    surfaces = {
        "train_X": data.train.X,
        "train_Y": data.train.Y,
        "grid_X": data.test.X,
        "truth": data.test.Y,
        **result.means,
    }
    files.write_npz(folder / "surfaces.npz", surfaces, compress=True)


def _fit(name: str, kernel: Kernel, points: Points) -> gpflow.models.GPR:
    """Kernel and noise by maximum marginal likelihood."""
    model = gpflow.models.GPR((points.X, points.Y), kernel, noise_variance=0.01)
    done = gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
    if not done.success:
        raise RuntimeError(f"the {name} model did not converge: {done.message}")
    return model


def _rmse(model: gpflow.models.GPR, points: Points) -> float:
    mean, _ = model.predict_f(points.X)
    return float(np.sqrt(np.mean(np.square(mean - points.Y))))
