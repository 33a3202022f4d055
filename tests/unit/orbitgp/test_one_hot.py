import numpy as np
from scipy.stats import norm

from orbitgp.likelihoods import OneHotGaussian


def test_probabilities_are_those_of_the_largest_target():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(4, 5)), rng.uniform(0.05, 2, size=(4, 5))
    found = OneHotGaussian(0.3).predict_probability(mean, variance).numpy()
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-12)
    draws = mean + np.sqrt(variance + 0.3) * rng.normal(size=(200_000, 4, 5))
    counted = np.eye(5)[draws.argmax(2)].mean(0)
    error = np.sqrt(counted * (1 - counted) / len(draws))
    assert np.all(np.abs(found - counted) < 5 * error + 1e-4)


def test_two_classes_have_a_closed_form():
    mean, variance = np.array([[0.2, 0.9], [0.5, 0.5], [0.0, 0.3]]), np.array([[0.1, 0.2], [0.3, 0.1], [0.05, 0.05]])
    found = OneHotGaussian(0.02).predict_probability(mean, variance).numpy()
    expected = norm.cdf((mean[:, 1] - mean[:, 0]) / np.sqrt(variance.sum(1) + 0.04))
    np.testing.assert_allclose(found[:, 1], expected, rtol=1e-3)


def test_the_likely_stays_finite_where_others_are_far_away():
    found = OneHotGaussian(1e-4).predict_probability([[0.0, 5.0, -5.0]], [[1e-4, 1e-4, 1e-4]]).numpy()
    np.testing.assert_allclose(found, [[0, 1, 0]], atol=1e-12)
