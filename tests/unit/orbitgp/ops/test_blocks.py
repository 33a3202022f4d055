import gpflow
import numpy as np
import pytest
import tensorflow as tf

from orbitgp._ops.blocks import checkpointed, map_blocks

SIZES = [(6, 3), (7, 3), (5, 8), (4, 4)]  # N, rows
DTYPES = (tf.float64, tf.float32)


class Layer(tf.Module):
    """Some function of rows with parameters, one of them behind a transform."""

    def __init__(self):
        super().__init__()
        self.matrix = tf.Variable(np.random.default_rng(0).normal(size=(3, 2)))
        self.scale = gpflow.Parameter(0.7, transform=gpflow.utilities.positive())

    def __call__(self, number, X):
        """[rows, 3] → [rows, 2] and, in single precision, [rows]"""
        turn = tf.cast(number, tf.float64)
        first = tf.tanh(X @ self.matrix + 1.5) * self.scale + turn
        second = tf.reduce_sum(tf.square(X), axis=1) * self.scale * tf.cos(turn)
        return first, tf.cast(second, tf.float32)

    def in_loops(self, X, rows):
        """Each row by itself, with the number of its block."""
        results = [self(tf.constant(n // rows), tf.constant(X[n : n + 1])) for n in range(len(X))]
        return tuple(tf.concat(part, 0) for part in zip(*results, strict=True))

    def outcome(self, evaluate):
        """Both results, and the gradients of a loss that weighs every row differently."""
        with tf.GradientTape() as tape:
            first, second = evaluate()
            weights = tf.cast(tf.range(1, tf.shape(first)[0] + 1), tf.float64)
            loss = tf.reduce_sum(weights[:, None] * tf.square(first))
            loss += tf.reduce_sum(weights * tf.cast(second, tf.float64))
        return first, second, *tape.gradient(loss, [self.matrix, self.scale.unconstrained_variable])


def inputs(N):
    return np.random.default_rng(N).normal(size=(N, 3))


def test_blocks_are_joined_to_the_whole_with_gradients_known_size_or_not():
    layer = Layer()

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float64)], autograph=False)
    def traced(X):
        return layer.outcome(lambda: map_blocks(layer, X, 3, DTYPES))

    for N, rows in SIZES:
        X = inputs(N)
        expected = layer.outcome(lambda X=X, rows=rows: layer.in_loops(X, rows))
        ways = [layer.outcome(lambda X=X, rows=rows: map_blocks(layer, X, rows, DTYPES))]
        for found in ways + [traced(X)] * (rows == 3):
            for mine, theirs in zip(found, expected, strict=True):
                assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
                np.testing.assert_allclose(mine, theirs, rtol=1e-6 if mine.dtype == tf.float32 else 1e-12)


def test_a_block_has_no_more_rows_than_asked_for_and_the_last_those_that_are_left():
    sizes = []

    def function(number, X):
        sizes.append(len(X))
        return (X[:, :, None],)

    X = np.random.default_rng(1).normal(size=(5, 2, 3))
    np.testing.assert_array_equal(map_blocks(function, X, 2, (tf.float64,))[0], X[:, :, None])
    assert sizes == [2, 2, 1]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_checkpointed_function_has_the_values_and_gradients_of_the_plain_one(compiled):
    def function(X, Y):
        return tf.sin(X) * tf.reduce_sum(Y, axis=1, keepdims=True) ** 2

    def results(X, Y, mapped):
        with tf.GradientTape() as tape:
            tape.watch((X, Y))
            x, y = 2 * X, tf.exp(Y)
            found = checkpointed(function, (x, y), 3) if mapped else function(x, y)
            loss = tf.reduce_sum(found**3)
        return [found, *tape.gradient(loss, [X, Y])]

    run = tf.function(results, autograph=False, reduce_retracing=True) if compiled else results
    for N in (1, 6, 7):
        X, Y = tf.constant(inputs(N)), tf.constant(inputs(N) + 0.3)
        for found, expected in zip(run(X, Y, True), results(X, Y, False), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_checkpointed_function_is_evaluated_again_for_the_gradient():
    calls = []

    def function(X):
        calls.append(len(X))
        return X**2

    X = tf.Variable(inputs(5))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(checkpointed(function, (tf.convert_to_tensor(X),), 2))
    assert calls == [2, 2, 2]
    tape.gradient(loss, X)
    assert calls == [2] * 6
