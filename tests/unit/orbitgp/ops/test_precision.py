import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels

from orbitgp._ops.precision import in_precision
from orbitgp.kernels import Invariant
from orbitgp.orbits import Permutation

# a few for each way in which a kernel holds its parameters: numbers, vectors, kernels inside kernels, and lists of them
KERNELS = {
    "some columns": lambda: kernels.SquaredExponential(1.3, [0.7, 2.0], active_dims=[2, 0]),
    "Matern12": lambda: kernels.Matern12(0.9, 1.2),
    "Matern32": lambda: kernels.Matern32(0.9, [0.7, 1.0, 2.0]),
    "RationalQuadratic": lambda: kernels.RationalQuadratic(0.9, 1.2, 2.5),
    "Cosine": lambda: kernels.Cosine(0.9, [6.0, 7.0, 9.0]),
    "Linear": lambda: kernels.Linear([0.4, 0.2, 0.8]),
    "Polynomial": lambda: kernels.Polynomial(2.0, 0.4, 0.7),
    "periods": lambda: kernels.Periodic(kernels.Matern32(1.1, 1.4, active_dims=[0, 1]), [2.3, 1.8]),
    "nested": lambda: (
        (kernels.SquaredExponential(1.3, 0.7) + kernels.White(0.2))
        * (kernels.Periodic(kernels.SquaredExponential(), 2.3) + kernels.Constant(0.3) * kernels.Linear())
    ),
    "ChangePoints": lambda: kernels.ChangePoints(
        [kernels.SquaredExponential(1.3, 0.7), kernels.Linear(0.4)], [0.2], 1.5
    ),
    "Coregion": lambda: kernels.Coregion(3, 2),
    "Invariant": lambda: Invariant(kernels.SquaredExponential(1.3, 0.7), Permutation([[0, 1, 2], [1, 0, 2]])),
}


def inputs(name):
    """[5, D] and [4, D], numbers that float32 holds exactly."""
    rng = np.random.default_rng(0)
    if name == "Coregion":
        return rng.integers(0, 3, size=(5, 1)).astype(np.float32), rng.integers(0, 3, size=(4, 1)).astype(np.float32)
    D = 1 if name == "ChangePoints" else 3
    return rng.normal(size=(5, D)).astype(np.float32), rng.normal(size=(4, D)).astype(np.float32)


@pytest.mark.parametrize("name", KERNELS)
def test_a_view_in_single_precision_has_the_values_and_gradients_of_the_kernel(name):
    kernel, rng, (X, X2) = KERNELS[name](), np.random.default_rng(1), inputs(name)
    weights = [rng.normal(size=shape) for shape in ((5, 4), (5, 5), (5,))]
    if name == "Matern12":  # has a kink where x = x', and the distance is the root of a rounding error there
        np.fill_diagonal(weights[1], 0.0)

    def outcome(dtype):
        a, b = tf.cast(X, dtype), tf.cast(X2, dtype)
        with tf.GradientTape() as tape:
            view = in_precision(kernel, dtype)
            values = [view(a, b), view(a), view(a, full_cov=False)]
            total = tf.add_n([tf.reduce_sum(w * tf.cast(v, w.dtype)) for w, v in zip(weights, values, strict=True)])
        return values, [tf.convert_to_tensor(gradient) for gradient in tape.gradient(total, variables)]

    variables, attributes = kernel.trainable_variables, dict(vars(kernel))
    values, gradients = outcome(tf.float32)
    assert all(vars(kernel)[key] is value for key, value in attributes.items()) and len(vars(kernel)) == len(attributes)
    expected, slopes = outcome(tf.float64)
    for found, value, weight in zip(values, expected, weights, strict=True):
        assert (found.dtype, value.dtype) == (tf.float32, tf.float64)
        assert np.abs(np.where(weight == 0, 0, found - value.numpy())).max() < 1e-5
        assert np.abs(found - value.numpy()).max() < 5e-3
    for found, slope in zip(gradients, slopes, strict=True):
        assert found.dtype == tf.float64
        np.testing.assert_allclose(found, slope, rtol=1e-4, atol=2e-5)
    assert max(np.abs(slope).max() for slope in slopes) > 1e-2


def test_a_view_in_a_traced_function_follows_the_parameter():
    kernel = kernels.SquaredExponential(1.0) + kernels.Constant(1.0)

    @tf.function(autograph=False)
    def traced():
        return in_precision(kernel, tf.float32)(tf.zeros((1, 1)), full_cov=False)

    assert traced().numpy() == pytest.approx([2.0])
    kernel.kernels[0].variance.assign(4.0)
    assert traced().numpy() == pytest.approx([5.0])


def test_a_part_that_occurs_twice_gets_both_gradients():
    part = kernels.Constant(2.0)
    kernel = kernels.Product([part, part])
    with tf.GradientTape() as tape:
        value = in_precision(kernel, tf.float32)(np.zeros((1, 1), np.float32))[0, 0]
    unconstrained = part.variance.unconstrained_variable
    # v² with v = softplus(u) has slope 2 v σ(u)
    assert float(tape.gradient(value, unconstrained)) == pytest.approx(4.0 * float(tf.sigmoid(unconstrained)))
