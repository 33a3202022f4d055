"""Inverse factors: derivatives against TensorFlow's solves and finite differences."""

import numpy as np
import pytest
import tensorflow as tf

from orbitgp._ops.triangular import whitener


def test_draws_become_white_with_the_derivative_of_a_solve():
    rng = np.random.default_rng(0)
    root, B, change = rng.normal(size=(6, 6)), rng.normal(size=(6, 4)), rng.normal(size=(6, 6))
    covariance, change = root @ root.T + np.eye(6), change + change.T
    W = whitener(tf.constant(covariance)).numpy()
    np.testing.assert_allclose(W @ covariance @ W.T, np.eye(6), atol=1e-12)
    np.testing.assert_array_equal(W, np.tril(W))

    def by_product(K):
        return tf.reduce_sum(tf.sin(whitener(K) @ B))

    K = tf.constant(covariance)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(K)
        product = by_product(K)
        solve = tf.reduce_sum(tf.sin(tf.linalg.triangular_solve(tf.linalg.cholesky(K), B)))
    ours, theirs = (tape.gradient(value, K).numpy() for value in (product, solve))
    np.testing.assert_allclose(ours, 0.5 * (theirs + theirs.T), rtol=1e-10)
    slope = (by_product(K + 1e-5 * change) - by_product(K - 1e-5 * change)) / 2e-5
    assert np.sum(ours * change) == pytest.approx(float(slope), rel=1e-7)
