"""Figure 2: a symmetric function, learned by a GP that knows the symmetry and by one that does not."""

from __future__ import annotations

from dataclasses import dataclass

import gpflow
import numpy as np
import pandas as pd

from orbitgp.datasets import PointData, Points
from orbitgp.kernels import Invariant
from orbitgp.orbits import FiniteOrbit, Identity, Permutation

ORBITS: dict[str, FiniteOrbit] = {"invariant": Permutation([[0, 1], [1, 0]]), "plain": Identity()}


@dataclass(frozen=True)
class ToyResult:
    """A row of numbers for each model, and each model's posterior mean on the test points, [test, 1]."""

    metrics: pd.DataFrame
    means: dict[str, np.ndarray]


def fit_toy(data: PointData) -> ToyResult:
    """
    Fits both models by exact GP regression: kernel and noise by maximum marginal likelihood (L-BFGS).

    :param data: training and test points in two dimensions.
    :return: columns model, log_marginal_likelihood, train_rmse, test_rmse, variance, lengthscale, noise.
    """
    rows, means = [], {}
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
        rows.append(
            {
                "model": name,
                "log_marginal_likelihood": float(model.log_marginal_likelihood()),
                "train_rmse": _rmse(model, data.train),
                "test_rmse": _rmse(model, data.test),
                "variance": float(model.kernel.base.variance.numpy()),
                "lengthscale": float(model.kernel.base.lengthscales.numpy()),
                "noise": float(np.sqrt(model.likelihood.variance.numpy())),
            }
        )
    return ToyResult(pd.DataFrame(rows), means)


def _rmse(model: gpflow.models.GPR, points: Points) -> float:
    mean, _ = model.predict_f(points.X)
    return float(np.sqrt(np.mean(np.square(mean - points.Y))))
