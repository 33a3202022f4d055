import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import multivariate_normal

from orbitgp.datasets import symmetric
from orbitgp_paper.experiments.toy import Antisymmetric, fit_toy, half_by_half

DATA = symmetric(0, train=40, test=9)


@pytest.fixture(scope="module")
def result():
    return fit_toy(DATA)


def test_the_invariant_surface_is_symmetric_the_plain_one_is_not_and_the_numbers_are_theirs(result):
    invariant, plain = (result.means[name].reshape(9, 9) for name in ("invariant", "plain"))
    np.testing.assert_allclose(invariant, invariant.T, atol=1e-10)
    assert np.abs(plain - plain.T).max() > 0.01
    assert list(result.metrics.model) == ["invariant", "plain"]
    for row in result.metrics.itertuples():
        error = np.sqrt(np.mean((result.means[row.model] - DATA.test.Y) ** 2))
        assert row.test_rmse == pytest.approx(error, rel=1e-12)


# ---- half by half ----


@pytest.fixture(scope="module")
def anisotropic():
    """A base kernel that minds which coordinate comes first."""
    return gpflow.kernels.SquaredExponential(variance=1.3, lengthscales=[0.4, 0.7])


def test_the_antisymmetric_kernel_is_the_covariance_of_signed_means(anisotropic):
    X, X2 = np.random.default_rng(0).uniform(-1, 1, (2, 4, 2))
    kernel = Antisymmetric(anisotropic)
    both, both2 = (np.stack([x, x[:, ::-1]], axis=1).reshape(8, 2) for x in (X, X2))  # each point, then switched
    pairs = anisotropic(both, both2).numpy().reshape(4, 2, 4, 2)
    signs = np.array([[1, -1], [-1, 1]]) / 4
    np.testing.assert_allclose(kernel(X, X2), np.einsum("iajb,ab->ij", pairs, signs), rtol=1e-12)
    np.testing.assert_allclose(kernel(X[:, ::-1], X2), -kernel(X, X2), rtol=1e-12)
    np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(kernel(X)), rtol=1e-12)


def test_gradients_of_the_antisymmetric_kernel(anisotropic, assert_gradients_match):
    X = np.random.default_rng(1).uniform(-1, 1, (5, 2))
    kernel = Antisymmetric(gpflow.utilities.deepcopy(anisotropic))
    assert_gradients_match(lambda: tf.reduce_sum(kernel(X) ** 2), kernel.trainable_variables)


@pytest.mark.parametrize("seen", ["above", "below"])
def test_halves_are_those_of_the_joint_gaussian(anisotropic, seen):
    """Conditioned by hand, from the covariance of all points."""
    data, noise = symmetric(0, train=12, test=2).train, 0.05
    model = gpflow.models.GPR((data.X, data.Y), anisotropic, noise_variance=noise)
    row = half_by_half("any", model).set_index("seen").loc[seen]
    first = (data.X[:, 1] > data.X[:, 0]) == (seen == "above")
    K = anisotropic(data.X).numpy()
    joint = K + noise * np.eye(12)
    y = data.Y[:, 0]
    weights = np.linalg.solve(joint[np.ix_(first, first)], K[np.ix_(first, ~first)]).T
    mean = weights @ y[first]
    covariance = K[np.ix_(~first, ~first)] - weights @ K[np.ix_(first, ~first)]
    given = multivariate_normal(mean, covariance + noise * np.eye(len(mean)))
    assert row["second"] == pytest.approx(given.logpdf(y[~first]), rel=1e-8)
    assert row["first"] == pytest.approx(
        multivariate_normal(np.zeros(first.sum()), joint[np.ix_(first, first)]).logpdf(y[first]), rel=1e-8
    )
    assert row["log_marginal_likelihood"] == pytest.approx(row["first"] + row["second"], rel=1e-12)
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean((mean - y[~first]) ** 2)), rel=1e-8)
    ratio = np.sqrt(np.diag(covariance) / np.diag(K)[~first])
    assert row["std_ratio"] == pytest.approx(ratio.mean(), rel=1e-8)


def test_all_three_models_have_both_halves(result):
    assert list(result.halves.model) == [name for name in ("invariant", "plain", "antisymmetric") for _ in range(2)]
    assert list(result.halves.seen) == ["above", "below"] * 3
    exact = result.metrics.set_index("model")["log_marginal_likelihood"]
    for row in result.halves[result.halves.model != "antisymmetric"].itertuples():
        assert row.log_marginal_likelihood == exact[row.model]
