from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from orbitgp._ops.blocks import checkpointed, map_blocks

SIZES = [(6, 3), (6, 2), (7, 3), (5, 8), (1, 1), (1, 4), (4, 4)]  # N, rows
DTYPES = (tf.float64, tf.float32)


class Layer(tf.Module):
    """Some function of rows with parameters, one of them behind a transform and one that is not learned."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        self.matrix = tf.Variable(rng.normal(size=(3, 2)))
        self.scale = gpflow.Parameter(0.7, transform=gpflow.utilities.positive())
        self.unused = tf.Variable(rng.normal(size=(2,)))
        self.fixed = tf.Variable(np.array(1.5), trainable=False)

    def __call__(self, number: tf.Tensor, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """[rows, 3] → [rows, 2] and, in single precision, [rows]"""
        turn = tf.cast(number, tf.float64)
        first = tf.tanh(X @ self.matrix + self.fixed) * self.scale + turn
        second = tf.reduce_sum(tf.square(X), axis=1) * self.scale * tf.cos(turn)
        return first, tf.cast(second, tf.float32)

    def in_loops(self, X: np.ndarray, rows: int) -> tuple[tf.Tensor, tf.Tensor]:
        """Each row by itself, with the number of its block."""
        results = [self(tf.constant(n // rows), tf.constant(X[n : n + 1])) for n in range(len(X))]
        return tf.concat([r[0] for r in results], 0), tf.concat([r[1] for r in results], 0)


def inputs(N: int) -> np.ndarray:
    return np.random.default_rng(N).normal(size=(N, 3))


def loss_of(results: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
    """Weighs every row differently, so that a row in the wrong place shows."""
    first, second = results
    weights = tf.cast(tf.range(1, tf.shape(first)[0] + 1), tf.float64)
    return tf.reduce_sum(weights[:, None] * tf.square(first)) + tf.reduce_sum(weights * tf.cast(second, tf.float64))


@pytest.mark.parametrize(("N", "rows"), SIZES)
def test_blocks_are_joined_to_the_whole(N: int, rows: int) -> None:
    layer = Layer()
    X = inputs(N)
    for found, expected in zip(map_blocks(layer, X, rows, DTYPES), layer.in_loops(X, rows), strict=True):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-6 if found.dtype == tf.float32 else 1e-13)


def test_number_of_rows_may_be_unknown_when_traced() -> None:
    layer = Layer()

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float64)])
    def traced(X: tf.Tensor) -> tuple[tf.Tensor, ...]:
        with tf.GradientTape() as tape:
            results = map_blocks(layer, X, 3, DTYPES)
            loss = loss_of(results)
        return (*results, *tape.gradient(loss, [layer.matrix, layer.scale.unconstrained_variable]))

    for N in (6, 7, 1):
        X = inputs(N)
        with tf.GradientTape() as tape:
            expected = layer.in_loops(X, 3)
            loss = loss_of(expected)
        gradients = tape.gradient(loss, [layer.matrix, layer.scale.unconstrained_variable])
        for found, value in zip(traced(X), (*expected, *gradients), strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-6 if found.dtype == tf.float32 else 1e-12)


@pytest.mark.parametrize(("N", "rows"), SIZES)
def test_gradients_are_those_without_blocks(N: int, rows: int) -> None:
    layer = Layer()
    X = inputs(N)
    variables = [layer.matrix, layer.scale.unconstrained_variable]
    with tf.GradientTape(persistent=True) as tape:
        mapped = loss_of(map_blocks(layer, X, rows, DTYPES))
        plain = loss_of(layer.in_loops(X, rows))
    for found, expected in zip(tape.gradient(mapped, variables), tape.gradient(plain, variables), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_inputs_and_results_may_have_more_axes() -> None:
    X = np.random.default_rng(1).normal(size=(5, 2, 3))
    scale = tf.Variable(3.0, dtype=tf.float64)
    with tf.GradientTape() as tape:
        (found,) = map_blocks(lambda number, rows: (scale * rows[:, :, None],), X, 2, (tf.float64,))
        loss = tf.reduce_sum(found)
    np.testing.assert_allclose(found, 3 * X[:, :, None], rtol=1e-14)
    assert float(tape.gradient(loss, scale)) == pytest.approx(X.sum(), rel=1e-12)


def test_rows_that_fill_up_the_last_block_leave_no_trace_in_gradients() -> None:
    scale = tf.Variable(2.0, dtype=tf.float64)

    def function(number: tf.Tensor, X: tf.Tensor) -> tuple[tf.Tensor]:
        return (tf.math.log(scale * tf.reduce_sum(X**2, axis=1)),)

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(map_blocks(function, inputs(3), 2, (tf.float64,))[0])
    assert float(tape.gradient(loss, scale)) == pytest.approx(1.5)


@pytest.mark.parametrize("rows", [0, -1, 2.0, None])
def test_a_bad_number_of_rows_is_named(rows: int) -> None:
    with pytest.raises((TypeError, ValueError), match=f"rows must be .*, got {rows}"):
        map_blocks(lambda number, X: (X,), inputs(3), rows, (tf.float64,))


def test_dtypes_that_do_not_fit_the_results_are_refused() -> None:
    identity: Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor]] = lambda number, X: (X,)  # noqa: E731
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"dtype is float32 .* float64"):
        map_blocks(identity, inputs(3), 2, (tf.float32,))
    with pytest.raises(ValueError, match="structure"):
        map_blocks(identity, inputs(3), 2, (tf.float64, tf.float64))


@pytest.mark.parametrize("N", [1, 4, 6, 7])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_checkpointed_function_has_the_values_and_gradients_of_the_plain_one(N: int, compiled: bool) -> None:
    X, Y = tf.Variable(inputs(N)), tf.Variable(inputs(N) + 0.3)

    def function(X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return tf.sin(X) * tf.reduce_sum(Y, axis=1, keepdims=True) ** 2

    def results(mapped: bool) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            x, y = 2 * X, tf.exp(Y)
            found = checkpointed(function, (x, y), 3) if mapped else function(x, y)
            loss = tf.reduce_sum(found**3)
        return [found, *tape.gradient(loss, [X, Y])]

    run = tf.function(results) if compiled else results
    for found, expected in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_checkpointed_function_is_evaluated_again_for_the_gradient() -> None:
    calls = []

    def function(X: tf.Tensor) -> tf.Tensor:
        calls.append(len(X))
        return X**2

    X = tf.Variable(inputs(5))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(checkpointed(function, (tf.convert_to_tensor(X),), 2))
    assert calls == [2, 2, 2]
    tape.gradient(loss, X)
    assert calls == [2] * 6
