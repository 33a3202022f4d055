import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels

from orbitgp._ops.draw_kernels import DrawKernels, kernel_matrix
from orbitgp._ops.precision import in_precision

N, G, SIZE, D, M = 3, 2, 4, 5, 6


class Wider(kernels.SquaredExponential):
    """Another function of the distance under the same parent."""

    def K_r2(self, r2):
        return self.variance * tf.exp(-0.25 * r2)


BASES = {
    "rbf": lambda: kernels.SquaredExponential(1.3, 1.7),
    "one in a list": lambda: kernels.SquaredExponential(1.3, [1.7]),
    "ard": lambda: kernels.SquaredExponential(1.3, np.linspace(0.8, 2, D)),
    "some columns": lambda: kernels.SquaredExponential(1.3, [0.9, 1.4], active_dims=[3, 1]),
    "sum": lambda: kernels.SquaredExponential(1.3, 1.7) + kernels.Linear(0.2),
    "a subclass": lambda: Wider(1.3, 1.7),
}


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, G, SIZE, D)), rng.normal(size=(M, D))


@pytest.mark.parametrize("base", BASES)
def test_values_against_plain_loops(base, points):
    kernel, (drawn, Z) = BASES[base](), points
    Kaa, Kfu = DrawKernels(kernel, Z)(drawn)
    for n in range(N):
        own = drawn[n].reshape(G * SIZE, D)
        np.testing.assert_allclose(Kaa[n], kernel(own, own + 0.0), rtol=1e-10, atol=1e-12)
        for g in range(G):
            expected = sum(kernel(x[None], Z).numpy()[0] for x in drawn[n, g]) / SIZE
            np.testing.assert_allclose(Kfu[n, g], expected, rtol=1e-10)
    between, same = DrawKernels(kernel, Z)(drawn, across=True)
    np.testing.assert_allclose(between, Kaa[:, :SIZE, SIZE:], rtol=1e-12)
    np.testing.assert_array_equal(same, Kfu)
    single = DrawKernels(in_precision(kernel, tf.float32), Z.astype(np.float32))(drawn.astype(np.float32))
    for found, expected in zip(single, (Kaa, Kfu), strict=True):
        assert found.dtype == tf.float32
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("base", BASES)
def test_the_matrix_of_all_points_has_the_values_and_the_slopes_of_the_kernel(base, points):
    kernel, Z = BASES[base](), tf.Variable(points[1])
    weight, found = np.random.default_rng(2).normal(size=(M, M)), []
    for make in (lambda: kernel_matrix(kernel, Z), lambda: kernel(Z)):
        with tf.GradientTape() as tape:
            K = make()
            value = tf.reduce_sum(weight * K)
        found.append((K, *tape.gradient(value, [Z, *kernel.trainable_variables])))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("base", BASES)
def test_gradients_of_draws_points_and_parameters_against_finite_differences(base, across, points, assert_slopes_match):
    kernel = BASES[base]()
    drawn, Z = (tf.Variable(tensor) for tensor in points)
    rng = np.random.default_rng(1)
    pairs = SIZE if across else G * SIZE
    weights = rng.normal(size=(N, pairs, pairs)), rng.normal(size=(N, G, M))

    def value():
        found = DrawKernels(kernel, Z)(drawn, across)
        return tf.add_n([tf.reduce_sum(w * K) for w, K in zip(weights, found, strict=True)])

    assert_slopes_match(value, [drawn, Z, *kernel.trainable_variables], rtol=1e-6, atol=1e-7)
