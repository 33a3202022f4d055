"""Three coarse passes make a fine product; XLA compiles the same operations for a processor."""

import numpy as np
import pytest
import tensorflow as tf

from orbitgp._ops.products import steady, steady_product, three_passes, worthwhile


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_three_passes_are_as_fine_as_their_formula_says(transpose_a, transpose_b):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(30, 200)).astype(np.float32), rng.normal(size=(200, 20)).astype(np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    given = (a.T if transpose_a else a), (b.T if transpose_b else b)
    compiled = tf.function(three_passes, jit_compile=True)
    found = compiled(*map(tf.constant, given), transpose_a, transpose_b)
    assert found.dtype == tf.float32
    assert np.sqrt(np.mean((found - exact) ** 2)) < 2**-17 * np.sqrt(200)
    coarse = tf.matmul(*(tf.cast(tf.cast(x, tf.bfloat16), tf.float32) for x in (a, b)))
    assert np.abs(found - exact).max() < 0.01 * np.abs(coarse - exact).max()


def test_without_a_gpu_it_is_not_worthwhile():
    assert not worthwhile(tf.float32, compiled=True)


@pytest.mark.parametrize(("n", "k", "m"), [(1, 1, 1), (16, 32, 32), (17, 33, 31), (3, 200, 70)])
def test_a_steady_product_is_the_product(n, k, m):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(n, k)), rng.normal(size=(k, m))
    of_any_size = tf.function(steady, input_signature=[tf.TensorSpec([None, None], tf.float64)] * 2)
    np.testing.assert_allclose(of_any_size(a, b), a @ b, rtol=0, atol=1e-13 * k)
    np.testing.assert_array_equal(steady(tf.constant(a), tf.constant(b.T), transpose_b=True), of_any_size(a, b))


def test_single_precision_needs_no_steady_product():
    assert steady_product(tf.float32) is tf.matmul
    assert steady_product(tf.float64) is steady
