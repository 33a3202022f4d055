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
from gpflow.kullback_leiblers import gauss_kl
from gpflow.utilities import set_trainable

from orbitgp import files
from orbitgp.datasets import PointData, Points, symmetric
from orbitgp.inducing import BasePoints, greedy_variance
from orbitgp.kernels import Invariant
from orbitgp.models import InvariantSVGP
from orbitgp.orbits import FiniteOrbit, Identity, Permutation
from orbitgp.schemes import FullOrbit
from orbitgp.training.natural import best_posterior

JITTER = 1e-8  # small beside the noise variance of the data, 2e-3

ORBITS: dict[str, FiniteOrbit] = {"invariant": Permutation([[0, 1], [1, 0]]), "plain": Identity()}


@dataclass(frozen=True)
class ToyResult:
    """A row of numbers for each model, and each model's posterior mean on the test points, [test, 1]."""

    metrics: pd.DataFrame
    means: dict[str, np.ndarray]
    bounds: pd.DataFrame


def fit_toy(data: PointData, inducing: Sequence[int] = ()) -> ToyResult:
    """
    Fits both models by exact GP regression: kernel and noise by maximum marginal likelihood (L-BFGS). For each number
    of inducing points, the best variational bound stands beside the best marginal likelihood.

    :param data: training and test points in two dimensions.
    :param inducing: numbers of inducing points; one above the number of orbit points of the data is left out.
    :return: metrics with columns model, log_marginal_likelihood, train_rmse, test_rmse, variance, lengthscale, noise;
        bounds with columns model, inducing, elbo, log_marginal_likelihood.
    """
    rows, bounds, means = [], [], {}
    for name, orbit in ORBITS.items():
        model = gpflow.models.GPR(
            (data.train.X, data.train.Y),
            Invariant(gpflow.kernels.SquaredExponential(lengthscales=0.5), orbit),
            noise_variance=0.01,
        )
        done = gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
        if not done.success:
            raise RuntimeError(f"the {name} model did not converge: {done.message}")
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
            if count > orbit.order * len(data.train):
                continue  # more points than the model ever looks at
            bounds.append(
                {
                    "model": name,
                    "inducing": count,
                    "elbo": best_bound(model, data.train, count),
                    "log_marginal_likelihood": evidence,
                }
            )
    return ToyResult(pd.DataFrame(rows), means, pd.DataFrame(bounds))


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
        return quadratic(mean, covariance) - gauss_kl(mean, root[None])

    gpflow.optimizers.Scipy().minimize(lambda: -bound(), sparse.trainable_variables, options={"maxiter": 500})
    return float(bound())


def run_toy(settings: Mapping[str, Any], folder: Path) -> None:
    """
    Writes metrics.csv, bounds.csv and surfaces.npz.

    :param settings: ``seed``, ``train`` and ``inducing`` of the configuration.
    """
    data = symmetric(settings["seed"], train=settings["train"])
    result = fit_toy(data, settings["inducing"])
    for name, frame in (("metrics", result.metrics), ("bounds", result.bounds)):
        files.write_csv(folder / f"{name}.csv", list(map(str, frame)), frame.itertuples(index=False))
    surfaces = {
        "train_X": data.train.X,
        "train_Y": data.train.Y,
        "grid_X": data.test.X,
        "truth": data.test.Y,
        **result.means,
    }
    files.write_npz(folder / "surfaces.npz", surfaces, compress=True)


def _rmse(model: gpflow.models.GPR, points: Points) -> float:
    mean, _ = model.predict_f(points.X)
    return float(np.sqrt(np.mean(np.square(mean - points.Y))))
