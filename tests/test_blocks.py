from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from orbitgp.blocks import map_blocks, map_blocks_lean

MAPS = {"plain": map_blocks, "lean": map_blocks_lean}
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
@pytest.mark.parametrize("kind", MAPS)
def test_blocks_are_joined_to_the_whole(kind: str, N: int, rows: int) -> None:
    layer = Layer()
    X = inputs(N)
    for found, expected in zip(MAPS[kind](layer, X, rows, DTYPES), layer.in_loops(X, rows), strict=True):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-6 if found.dtype == tf.float32 else 1e-13)


@pytest.mark.parametrize("kind", MAPS)
def test_number_of_rows_may_be_unknown_when_traced(kind: str) -> None:
    layer = Layer()

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float64)])
    def traced(X: tf.Tensor) -> tuple[tf.Tensor, ...]:
        with tf.GradientTape() as tape:
            results = MAPS[kind](layer, X, 3, DTYPES)
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
@pytest.mark.parametrize("kind", MAPS)
def test_gradients_are_those_without_blocks(kind: str, N: int, rows: int) -> None:
    layer = Layer()
    X = inputs(N)
    variables = [layer.matrix, layer.scale.unconstrained_variable]
    with tf.GradientTape(persistent=True) as tape:
        mapped = loss_of(MAPS[kind](layer, X, rows, DTYPES))
        plain = loss_of(layer.in_loops(X, rows))
    for found, expected in zip(tape.gradient(mapped, variables), tape.gradient(plain, variables), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("output", [0, 1])
def test_one_output_alone_may_be_used(output: int) -> None:
    layer = Layer()
    X = inputs(5)
    variables = [layer.matrix, layer.scale.unconstrained_variable]
    with tf.GradientTape(persistent=True) as tape:
        mapped = tf.reduce_sum(map_blocks_lean(layer, X, 2, DTYPES)[output] ** 2)
        plain = tf.reduce_sum(layer.in_loops(X, 2)[output] ** 2)
    zero = tf.UnconnectedGradients.ZERO  # the second output does not depend on the matrix
    for found, expected in zip(
        tape.gradient(mapped, variables, unconnected_gradients=zero),
        tape.gradient(plain, variables, unconnected_gradients=zero),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_a_variable_that_is_read_but_not_used_has_gradient_zero() -> None:
    layer = Layer()

    def function(number: tf.Tensor, X: tf.Tensor) -> tuple[tf.Tensor]:
        tf.convert_to_tensor(layer.unused)
        return (X @ layer.matrix,)

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(map_blocks_lean(function, inputs(5), 2, (tf.float64,))[0])
    of_matrix, of_unused = tape.gradient(loss, [layer.matrix, layer.unused])
    np.testing.assert_allclose(of_matrix, np.tile(inputs(5).sum(0)[:, None], (1, 2)), rtol=1e-12)
    np.testing.assert_array_equal(of_unused, [0.0, 0.0])


def test_a_variable_that_is_not_read_has_no_gradient() -> None:
    layer = Layer()
    with tf.GradientTape() as tape:
        loss = loss_of(map_blocks_lean(layer, inputs(5), 2, DTYPES))
    assert tape.gradient(loss, [layer.unused, layer.fixed]) == [None, None]


@pytest.mark.parametrize("traced", [False, True])
def test_a_function_without_variables(traced: bool) -> None:
    factor = tf.Variable(2.0, dtype=tf.float64)
    X = inputs(5)

    def gradient() -> tf.Tensor:
        with tf.GradientTape() as tape:
            (doubled,) = map_blocks_lean(lambda number, rows: (2 * rows,), X, 2, (tf.float64,))
            loss = tf.reduce_sum(doubled) * factor
        return tape.gradient(loss, factor)

    found = tf.function(gradient)() if traced else gradient()
    assert float(found) == pytest.approx(2 * X.sum(), rel=1e-12)


def test_gradients_stop_at_the_inputs_of_the_lean_one_only() -> None:
    layer = Layer()
    X = tf.constant(inputs(5))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        losses = {kind: loss_of(mapping(layer, X, 2, DTYPES)) for kind, mapping in MAPS.items()}
        plain = loss_of(layer.in_loops(X, 2))
    assert tape.gradient(losses["lean"], X) is None
    np.testing.assert_allclose(tape.gradient(losses["plain"], X), tape.gradient(plain, X), rtol=1e-6)


@pytest.mark.parametrize(("N", "blocks"), [(6, 2), (7, 3), (2, 1)])
def test_the_lean_one_evaluates_each_block_again_for_the_gradient(N: int, blocks: int) -> None:
    layer = Layer()
    sizes: list[int] = []

    def counted(number: tf.Tensor, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        sizes.append(len(X))
        return layer(number, X)

    with tf.GradientTape() as tape:
        loss = loss_of(map_blocks_lean(counted, inputs(N), 3, DTYPES))
    assert sizes == [3] * blocks
    tape.gradient(loss, layer.matrix)
    assert sizes == [3] * 2 * blocks


@pytest.mark.parametrize("kind", MAPS)
def test_inputs_and_results_may_have_more_axes(kind: str) -> None:
    X = np.random.default_rng(1).normal(size=(5, 2, 3))
    scale = tf.Variable(3.0, dtype=tf.float64)
    with tf.GradientTape() as tape:
        (found,) = MAPS[kind](lambda number, rows: (scale * rows[:, :, None],), X, 2, (tf.float64,))
        loss = tf.reduce_sum(found)
    np.testing.assert_allclose(found, 3 * X[:, :, None], rtol=1e-14)
    assert float(tape.gradient(loss, scale)) == pytest.approx(X.sum(), rel=1e-12)


@pytest.mark.parametrize("kind", MAPS)
def test_rows_that_fill_up_the_last_block_leave_no_trace_in_gradients(kind: str) -> None:
    scale = tf.Variable(2.0, dtype=tf.float64)

    def function(number: tf.Tensor, X: tf.Tensor) -> tuple[tf.Tensor]:
        return (tf.math.log(scale * tf.reduce_sum(X**2, axis=1)),)

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(MAPS[kind](function, inputs(3), 2, (tf.float64,))[0])
    assert float(tape.gradient(loss, scale)) == pytest.approx(1.5)


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("rows", [0, -1, 2.0, None])
def test_a_bad_number_of_rows_is_named(kind: str, rows: int) -> None:
    with pytest.raises((TypeError, ValueError), match=f"rows must be .*, got {rows}"):
        MAPS[kind](lambda number, X: (X,), inputs(3), rows, (tf.float64,))


@pytest.mark.parametrize("kind", MAPS)
def test_dtypes_that_do_not_fit_the_results_are_refused(kind: str) -> None:
    identity: Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor]] = lambda number, X: (X,)  # noqa: E731
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"dtype is float32 .* float64"):
        MAPS[kind](identity, inputs(3), 2, (tf.float32,))
    with pytest.raises(ValueError, match="structure"):
        MAPS[kind](identity, inputs(3), 2, (tf.float64, tf.float64))
