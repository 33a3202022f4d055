"""Adam as one operation for each variable: against the formula, and against Keras."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from orbitgp.optimizers.adam import BETA_1, BETA_2, EPSILON, Adam

RATES = [0.1, 0.03, 0.2, 0.05]


def test_a_step_is_the_formula_and_that_of_keras():
    shapes = [(3, 2), ()]
    ours, theirs = ([tf.Variable(np.ones(shape)) for shape in shapes] for _ in range(2))
    x, m, v = ([start * np.ones(shape) for shape in shapes] for start in (1.0, 0.0, 0.0))
    adam, keras = Adam(ours), tf_keras.optimizers.Adam(beta_2=BETA_2, jit_compile=False)
    keras.build(theirs)
    rng = np.random.default_rng(0)
    for number, rate in enumerate(RATES):
        gradients = [rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3) for shape in shapes]
        adam.apply([tf.constant(g) for g in gradients], tf.constant(rate, tf.float64), tf.constant(number, tf.int64))
        keras.learning_rate.assign(rate)
        keras.apply_gradients(zip([tf.constant(g) for g in gradients], theirs, strict=True))
        for i, g in enumerate(gradients):
            m[i], v[i] = BETA_1 * m[i] + (1 - BETA_1) * g, BETA_2 * v[i] + (1 - BETA_2) * g**2
            unbiased = np.sqrt(1 - BETA_2 ** (number + 1)) / (1 - BETA_1 ** (number + 1))
            x[i] = x[i] - rate * unbiased * m[i] / (np.sqrt(v[i]) + EPSILON)
            np.testing.assert_allclose(ours[i], x[i], rtol=1e-12)
            np.testing.assert_allclose(ours[i], theirs[i], rtol=1e-6)  # its rates have single precision
    for kept, expected in zip(adam.variables, [*m, *v], strict=True):
        np.testing.assert_allclose(kept, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(4, 5), (3, 2, 2), (3,), ()])
def test_with_a_scale_for_each_row_a_row_moves_along_its_gradients_mean(shape):
    """The formula in a loop over rows."""
    variable = tf.Variable(np.ones(shape))
    rows = shape[0] if shape else 1
    x, m, v = np.ones((rows, *shape[1:])), np.zeros((rows, *shape[1:])), np.zeros(rows)
    adam = Adam([variable], "row")
    rng = np.random.default_rng(1)
    for number, rate in enumerate(RATES):
        gradient = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3)
        adam.apply([tf.constant(gradient)], tf.constant(rate, tf.float64), tf.constant(number, tf.int64))
        for row, g in enumerate(np.reshape(gradient, x.shape)):
            m[row] = BETA_1 * m[row] + (1 - BETA_1) * g
            v[row] = BETA_2 * v[row] + (1 - BETA_2) * np.mean(g**2)
            unbiased = np.sqrt(1 - BETA_2 ** (number + 1)) / (1 - BETA_1 ** (number + 1))
            x[row] = x[row] - rate * unbiased * m[row] / (np.sqrt(v[row]) + EPSILON)
        np.testing.assert_allclose(variable, np.reshape(x, shape), rtol=1e-12)
    first, second = adam.variables
    np.testing.assert_allclose(first, np.reshape(m, shape), rtol=1e-12)
    assert second.shape == (*shape[:1], *[1] * (len(shape) - 1))
    np.testing.assert_allclose(np.ravel(second), v, rtol=1e-12)


def test_rows_do_not_depend_on_the_axes_of_their_images():
    """A turn of the space that the rows live in turns the steps with it; with a scale for each element it does not."""
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    gradients = rng.normal(size=(len(RATES), 3, 6)) * np.logspace(-2, 1, 6)
    distance = {}
    for scale in ("element", "row"):
        found = []
        for axes in (np.eye(6), turn):
            variable = tf.Variable(np.zeros((3, 6)))
            adam = Adam([variable], scale)
            for number, rate in enumerate(RATES):
                adam.apply([tf.constant(gradients[number] @ axes)], tf.constant(rate, tf.float64), tf.constant(number))
            found.append(variable.numpy() @ axes.T)
        distance[scale] = np.abs(found[1] - found[0]).max()
    assert distance["row"] < 1e-12 < 0.01 < distance["element"]


def test_another_scale_is_named():
    with pytest.raises(ValueError, match="scale must be one of 'element', 'row', got 'column'"):
        Adam([tf.Variable(1.0)], "column")


def test_rows_of_a_table_are_a_gradient_that_is_zero_elsewhere():
    rows, values = [2, 0, 2], np.array([[1.0], [2.0], [4.0]])
    sparse = tf.IndexedSlices(tf.constant(values), tf.constant(rows), tf.constant([4, 1]))
    dense = tf.constant([[2.0], [0.0], [5.0], [0.0]], tf.float64)
    found = []
    for gradient in (sparse, dense):
        table = tf.Variable(np.ones((4, 1)))
        adam = Adam([table])
        for number in range(3):
            adam.apply([gradient], tf.constant(0.1, tf.float64), tf.constant(number))
        found.append(table.numpy())
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(found[0][[1, 3]], 1.0)
