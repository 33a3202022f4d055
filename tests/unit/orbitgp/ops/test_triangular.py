"""Inverse factors: derivatives against TensorFlow's solves and finite differences."""

import numpy as np
import pytest
import tensorflow as tf

from orbitgp._ops import triangular
from orbitgp._ops.triangular import whitener


def test_draws_become_white_with_the_derivative_of_a_solve():
    rng = np.random.default_rng(0)
    root, B, change = rng.normal(size=(6, 6)), rng.normal(size=(6, 4)), rng.normal(size=(6, 6))
    covariance, change = root @ root.T + np.eye(6), change + change.T
    W = whitener(tf.constant(covariance)).numpy()
    np.testing.assert_allclose(W @ covariance @ W.T, np.eye(6), atol=1e-12)
    np.testing.assert_array_equal(W, np.tril(W))

    def by_product(K, near=None):
        return tf.reduce_sum(tf.sin(whitener(K, near) @ B))

    K = tf.constant(covariance)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(K)
        product = by_product(K)
        solve = tf.reduce_sum(tf.sin(tf.linalg.triangular_solve(tf.linalg.cholesky(K), B)))
    ours, theirs = (tape.gradient(value, K).numpy() for value in (product, solve))
    np.testing.assert_allclose(ours, 0.5 * (theirs + theirs.T), rtol=1e-10)
    slope = (by_product(K + 1e-5 * change) - by_product(K - 1e-5 * change)) / 2e-5
    assert np.sum(ours * change) == pytest.approx(float(slope), rel=1e-7)
    with tf.GradientTape() as tape:
        tape.watch(K)
        refined = by_product(K, near=W * rng.uniform(0.9, 1.1, size=W.shape))
    np.testing.assert_allclose(tape.gradient(refined, K), ours, rtol=1e-8)


@pytest.mark.parametrize(("distance", "factorised"), [(0.0, 0), (0.1, 0), (0.5, 0), (30.0, 1), (np.nan, 1)])
def test_from_a_near_one_products_lead_to_it_and_from_a_far_one_a_factorisation(distance, factorised, monkeypatch):
    rng, calls = np.random.default_rng(1), []
    root, change = rng.normal(size=(2, 40, 40))
    K = tf.constant(root @ root.T / 40 + 0.01 * np.eye(40))
    exact = whitener(K).numpy()
    monkeypatch.setattr(triangular, "_factorised", lambda K: calls.append(K) or tf.constant(exact))
    away = np.tril(change + change.T) / (2 * np.sqrt(2 * 40))  # of the size of one
    found = whitener(K, near=(np.eye(40) + distance * away) @ exact)
    np.testing.assert_allclose(found, exact, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(found, np.tril(found))
    assert len(calls) == factorised
