"""The toy in NumPy, against GPflow, finite differences and brute force."""

import gpflow
import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import log_expit, logsumexp
from scipy.stats import multivariate_normal

from orbitgp.datasets import symmetric
from orbitgp.kernels import Invariant
from orbitgp_paper.experiments import toy_draws
from orbitgp_paper.experiments.toy import ORBITS, Antisymmetric, half_by_half

LOGS = np.log([1.3, 0.4, 0.02])


@pytest.fixture(scope="module")
def data():
    return symmetric(3, train=14, test=5)


def kernel_of(model: str) -> gpflow.kernels.Kernel:
    base = gpflow.kernels.SquaredExponential(1.3, 0.4)
    return Antisymmetric(base) if model == "antisymmetric" else Invariant(base, ORBITS[model])


@pytest.mark.parametrize("model", ["invariant", "plain", "antisymmetric"])
def test_evidence_predictions_and_halves_are_gpflows(data, model):
    X, y, grid = data.train.X, data.train.Y[:, 0], data.test.X
    sign = toy_draws.SIGNS[model]
    own = toy_draws.Fit(X, y, sign, LOGS, -toy_draws._loss(LOGS, X, y, sign)[0])
    reference = gpflow.models.GPR((X, data.train.Y), kernel_of(model), noise_variance=0.02)
    np.testing.assert_allclose(own.covariance(X, grid), reference.kernel(X, grid), rtol=1e-10, atol=1e-14)
    assert own.evidence == pytest.approx(float(reference.log_marginal_likelihood()), rel=1e-10)
    for mine, theirs in zip(own.predict(grid), reference.predict_f(grid), strict=True):
        np.testing.assert_allclose(mine, theirs[:, 0], rtol=1e-7, atol=1e-9)
    halves, found = half_by_half(model, reference).set_index("seen"), toy_draws._halves(own)
    for side in ("above", "below"):
        for name in ("rmse", "std_ratio", "second"):
            assert found[f"{name}_{side}"] == pytest.approx(halves.loc[side, name], rel=1e-7)


@pytest.mark.parametrize("sign", [1, 0, -1])
def test_gradients(data, sign):
    args = (data.train.X, data.train.Y[:, 0], sign)
    difference = check_grad(lambda at: toy_draws._loss(at, *args)[0], lambda at: toy_draws._loss(at, *args)[1], LOGS)
    assert difference < 1e-4 * np.linalg.norm(toy_draws._loss(LOGS, *args)[1])


def test_a_fit_is_a_maximum_and_no_worse_than_gpflows(data):
    X, Y = data.train.X, data.train.Y
    own = toy_draws.fit(X, Y[:, 0], 1)
    model = gpflow.models.GPR((X, Y), Invariant(gpflow.kernels.SquaredExponential(1.0, 0.5), ORBITS["invariant"]))
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
    assert own.evidence >= float(model.log_marginal_likelihood()) - 1e-4
    for step in 0.05 * np.concatenate([np.eye(3), -np.eye(3)]):
        assert -toy_draws._loss(np.maximum(own.logs + step, np.log(1e-6)), X, Y[:, 0], 1)[0] <= own.evidence


def test_bounds_and_evidence_of_labels_against_brute_force():
    """Three labels, whose marginal likelihood a long run of samples from the prior tells to three digits."""
    X = np.array([[0.0, 0.1], [0.4, 0.2], [-0.3, 0.5]])
    K = 3.0 * toy_draws._covariance(X, X, 0, LOGS)[0]
    y = np.array([1.0, -1.0, 1.0])
    bound, quadrature, evidence = toy_draws.classify(K, y, np.random.default_rng(0))
    f = np.random.default_rng(1).multivariate_normal(np.zeros(3), K, size=400_000)
    assert evidence == pytest.approx(logsumexp(log_expit(f * y).sum(1)) - np.log(len(f)), abs=0.01)
    assert bound < quadrature < evidence + 0.01


def test_the_bound_of_labels_is_that_of_its_q():
    """E log σ ≥ ½ y μ − ½ θ(c)(μ² + σ²) − log 2 − log cosh(c/2) + ¼ c tanh(c/2), less the KL, at the fixed point."""
    X = symmetric(0, train=9, test=2).train.X
    K = toy_draws._covariance(X, X, 0, LOGS)[0] + 1e-6 * np.eye(9)
    y = np.where(np.arange(9) % 2, 1.0, -1.0)
    c = np.ones(9)
    for _ in range(500):
        S = np.linalg.inv(np.linalg.inv(K) + np.diag(np.tanh(c / 2) / (2 * c)))
        m = S @ y / 2
        c = np.sqrt(m**2 + np.diag(S))
    theta = np.tanh(c / 2) / (2 * c)
    terms = 0.5 * y * m - 0.5 * theta * c**2 - np.log(2) - np.log(np.cosh(c / 2)) + c * np.tanh(c / 2) / 4
    q, p = multivariate_normal(m, S), multivariate_normal(np.zeros(9), K)
    kl = 0.5 * (np.trace(np.linalg.solve(K, S)) - 9 + m @ np.linalg.solve(K, m))
    kl += 0.5 * (np.linalg.slogdet(K)[1] - np.linalg.slogdet(S)[1])
    f = q.rvs(200_000, random_state=0)
    bound, quadrature, _ = toy_draws.classify(K, y, np.random.default_rng(0))
    assert bound == pytest.approx(terms.sum() - kl, rel=1e-6)
    assert quadrature == pytest.approx(np.mean(log_expit(f * y).sum(1) - q.logpdf(f) + p.logpdf(f)), abs=0.02)


def test_draws_have_a_row_for_each_model_and_repeat():
    settings = {"seed": 5, "train": 10, "draws": 2}
    frame = toy_draws.measure(settings)
    assert list(frame["draw"]) == [5] * 5 + [6] * 5 and list(frame["model"][:5]) == list(toy_draws.SIGNS)
    assert frame.equals(toy_draws.measure(settings))
    assert frame["coverage"].between(0, 1).all()
    enlarged = frame["model"].isin(["augmented", "doubled"])
    assert frame.loc[enlarged, "rmse_above"].isna().all() and frame.loc[~enlarged].notna().all(axis=None)
