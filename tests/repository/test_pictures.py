"""docs/method: what the pictures show is so."""

import importlib

import numpy as np
import pytest
from workspaces import ROOT


@pytest.fixture
def pictures(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "method")
    return importlib.import_module("pictures")


@pytest.fixture
def digits(mnist_data):
    return mnist_data.train.inputs()[:2].astype(np.float64)


def test_the_kernel_is_the_mean_of_the_table(pictures, digits):
    points, Kaa, mean = pictures.double_sum(digits, order=4, lengthscale=6.0)
    np.testing.assert_allclose(points[:, 0], digits)
    assert np.ptp(Kaa) > 0.01 and Kaa.mean() == pytest.approx(mean)


def test_all_pairs_are_biased_and_the_others_are_not(pictures, digits):
    exact, found = pictures.estimates(digits[:1], repeats=300)
    bias = [(values.mean() - exact) / (values.std() / 300**0.5) for values in found.values()]
    assert bias[0] > 10 and max(map(abs, bias[1:])) < 4
    spread = [values.std() for values in found.values()]
    assert spread[2] < 0.5 * spread[1]


def test_the_evidence_is_that_of_an_exact_gp(pictures, mnist_data, monkeypatch):
    import gpflow

    monkeypatch.setattr(pictures, "ANGLES", (40,))
    found = pictures.evidence(images=30, tests=5, lengthscale=5.0, noise=0.1)
    train = mnist_data.train.take(30)
    X, Y = train.inputs().astype(np.float64), pictures.one_hot(train.labels, 10) - 0.1
    K = pictures.averaged_kernel(X, X, 40, 5.0)
    K += 0.1 * np.trace(K) / 30 * np.eye(30)

    def log_density(scale: float) -> float:
        L = np.linalg.cholesky(scale * K)
        return float(np.sum(gpflow.logdensities.multivariate_normal(Y, np.zeros_like(Y), L)))

    best = np.sum(Y * np.linalg.solve(K, Y)) / Y.size
    assert found["evidence"][0] == pytest.approx(log_density(best))
    assert log_density(best) > max(log_density(0.9 * best), log_density(1.1 * best))
