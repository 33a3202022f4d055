"""Adam as one operation for each variable: against the formula, and against Keras."""

import numpy as np
import pytest
import tensorflow as tf

from orbitgp.optimizers.adam import Adam

RATES = [0.1, 0.03, 0.2, 0.05]
BETA_1, BETA_2, EPSILON = 0.9, 0.99, 1e-7


def step(adam, gradients, number):
    rate = tf.constant(RATES[number], tf.float64)
    adam.apply([tf.convert_to_tensor(gradient) for gradient in gradients], rate, tf.constant(number, tf.int64))


@pytest.mark.parametrize(
    ("scale", "shape"),
    [("element", (3, 2)), ("element", ()), ("row", (4, 5)), ("row", (3, 2, 2)), ("row", (3,)), ("row", ())],
)
def test_a_step_is_the_formula(scale, shape):
    """Of one number, or of a row, which moves along its gradient's mean, in a loop over these."""
    variable, rng = tf.Variable(np.ones(shape)), np.random.default_rng(1)
    x = np.ones(shape if scale == "row" and shape else int(np.prod(shape)))
    m, v = np.zeros(x.shape), np.zeros(len(x))
    adam = Adam([variable], scale)
    for number, rate in enumerate(RATES):
        gradient = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3)
        step(adam, [gradient], number)
        for row, g in enumerate(np.reshape(gradient, x.shape)):
            m[row] = BETA_1 * m[row] + (1 - BETA_1) * g
            v[row] = BETA_2 * v[row] + (1 - BETA_2) * np.mean(g**2)
            unbiased = np.sqrt(1 - BETA_2 ** (number + 1)) / (1 - BETA_1 ** (number + 1))
            x[row] = x[row] - rate * unbiased * m[row] / (np.sqrt(v[row]) + EPSILON)
        np.testing.assert_allclose(variable, np.reshape(x, shape), rtol=1e-12)
    first, second = adam.variables
    np.testing.assert_allclose(first, np.reshape(m, shape), rtol=1e-12)
    np.testing.assert_allclose(np.ravel(second), v, rtol=1e-12)
    assert second.shape == ((*shape[:1], *[1] * (len(shape) - 1)) if scale == "row" else shape)


def test_rows_of_a_table_are_a_gradient_that_is_zero_elsewhere():
    values = tf.constant([[1.0], [2.0], [4.0]], tf.float64)
    sparse = tf.IndexedSlices(values, tf.constant([2, 0, 2]), tf.constant([4, 1]))
    found = []
    for gradient in (sparse, tf.constant([[2.0], [0.0], [5.0], [0.0]], tf.float64)):
        table = tf.Variable(np.ones((4, 1)))
        adam = Adam([table])
        for number in range(3):
            adam.apply([gradient], tf.constant(0.1, tf.float64), tf.constant(number))
        found.append(table.numpy())
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(found[0][[1, 3]], 1.0)
