"""Inverse factors: against TensorFlow's solves, and derivatives against finite differences."""

import numpy as np
import pytest
import tensorflow as tf

from orbitgp._ops.triangular import whitener


@pytest.fixture
def covariance():
    root = np.random.default_rng(0).normal(size=(6, 6))
    return root @ root.T + np.eye(6)


def test_draws_become_white(covariance):
    W = whitener(tf.constant(covariance)).numpy()
    np.testing.assert_allclose(W @ covariance @ W.T, np.eye(6), atol=1e-12)
    np.testing.assert_array_equal(W, np.tril(W))


def test_derivative_is_that_of_a_solve(covariance):
    B = tf.constant(np.random.default_rng(1).normal(size=(6, 4)))
    K = tf.constant(covariance)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(K)
        by_product = tf.reduce_sum(tf.sin(whitener(K) @ B))
        by_solve = tf.reduce_sum(tf.sin(tf.linalg.triangular_solve(tf.linalg.cholesky(K), B)))
    ours, theirs = (tape.gradient(value, K).numpy() for value in (by_product, by_solve))
    np.testing.assert_allclose(ours, 0.5 * (theirs + theirs.T), rtol=1e-10)


def test_derivative_against_finite_differences(covariance):
    B = np.random.default_rng(1).normal(size=(6, 4))
    K = tf.constant(covariance)
    with tf.GradientTape() as tape:
        tape.watch(K)
        value = tf.reduce_sum(tf.sin(whitener(K) @ B))
    gradient = tape.gradient(value, K).numpy()
    change = np.random.default_rng(2).normal(size=(6, 6))
    change += change.T

    def at(step: float) -> float:
        return float(tf.reduce_sum(tf.sin(whitener(tf.constant(covariance + step * change)) @ B)))

    assert np.sum(gradient * change) == pytest.approx((at(1e-5) - at(-1e-5)) / 2e-5, rel=1e-7)
