import numpy as np
import pytest
import tensorflow as tf

from orbitgp._ops import fusion
from orbitgp._ops.fusion import Fused
from orbitgp.orbits import Affine, LocalDeformation

SEED = [3, 1]


def function(images, moves):
    """[N, 4], [N, 5] → [N, 5]"""
    return tf.sin(tf.reduce_sum(images, axis=1, keepdims=True) * moves) + moves


def inputs(N):
    rng = np.random.default_rng(N)
    return tf.constant(rng.normal(size=(N, 4))), tf.constant(rng.normal(size=(N, 5)))


def assert_same(compute, call, N):
    """Values and gradients of ``call``, as ``compute`` finds them, are those of the function."""
    tensors, weights = inputs(N), tf.constant(np.random.default_rng(0).normal(size=(N, 5)))
    expected = value_and_gradients(function, tensors, weights)
    for found, value in zip(compute(call, tensors, weights), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-13, atol=1e-14)


def value_and_gradients(call, tensors, weights):
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = call(*tensors)
    return value, *tape.gradient(value, tensors, output_gradients=weights)


@pytest.fixture
def small(monkeypatch):
    """Makes some pixels count as many."""

    def limits(worthwhile, together):
        monkeypatch.setattr(fusion, "WORTHWHILE", worthwhile)
        monkeypatch.setattr(fusion, "TOGETHER", together)

    return limits


@pytest.mark.parametrize(
    ("N", "together", "eager"),
    [(6, 1000, True), (7, 15, False), (3, 1, True)],
    ids=["at once", "filled up, graph", "row by row"],
)
def test_values_and_gradients_are_those_of_the_function(small, N, together, eager):
    small(0, together)
    fused = Fused(function)
    compute = value_and_gradients if eager else tf.function(value_and_gradients, autograph=False)
    assert_same(compute, lambda images, moves: fused((images, moves), moves.shape), N)


def test_where_there_is_a_gpu_all_rows_go_at_once_and_only_arguments_are_kept(small, monkeypatch):
    small(0, 1)
    monkeypatch.setattr(fusion.tf.config, "list_logical_devices", lambda kind: [kind])
    fused, seen = Fused(function), []

    def call(images, moves):
        seen.append(fused((images, moves), moves.shape))
        return seen[-1]

    assert_same(tf.function(value_and_gradients, autograph=False), call, 6)
    operations = [operation.type for operation in seen[0].graph.get_operations()]
    assert operations.count("Sin") == 3  # once forward, and once more for the derivative by each argument


def test_few_pixels_are_not_worth_a_compilation(small):
    small(30, 1000)
    seen = []

    def watched(images, moves):
        seen.append(tf.executing_eagerly())
        return function(images, moves)

    fused = Fused(watched)
    for N in (6, 7):  # 30 pixels, 35 pixels
        fused(inputs(N), [N, 5])
    assert seen == [True, False]


def test_blocks_are_of_one_size_so_that_little_is_filled_up(small):
    small(0, 25)  # pixels: five rows at a time
    sizes = set()

    def watched(images, moves):
        sizes.add(moves.shape[0])
        return function(images, moves)

    N = 11
    np.testing.assert_allclose(Fused(watched)(inputs(N), [N, 5]), function(*inputs(N)), rtol=1e-13)
    assert sizes == {4}  # three times four, not five


def test_a_batch_of_unknown_size_is_not_filled_up(small):
    small(0, 10**9)
    sizes = []

    def watched(images, moves):
        sizes.append(moves.shape[0])
        return function(images, moves)

    fused = Fused(watched)
    unknown = [tf.TensorSpec([None, 4], tf.float64), tf.TensorSpec([None, 5], tf.float64)]
    call = tf.function(lambda images, moves: fused((images, moves), moves.shape), unknown, autograph=False)
    for N in (1, 5):
        np.testing.assert_allclose(call(*inputs(N)), function(*inputs(N)), rtol=1e-13)
    assert sizes == [None]


@pytest.mark.parametrize("kind", [Affine, LocalDeformation])
def test_orbits_draw_the_same_and_learn_the_same_however_many_pixels_there_are(small, kind):
    orbit, X = kind((4, 3)), tf.constant(np.random.default_rng(1).uniform(size=(3, 12)))
    weights = tf.constant(np.random.default_rng(2).normal(size=(3, 2, 3, 12)))

    def outcome():
        with tf.GradientTape() as tape:
            drawn = orbit.sample(X, 2, 3, SEED)
        return drawn, *tape.gradient(drawn, orbit.trainable_variables, output_gradients=weights)

    small(10**9, 1)
    plain = outcome()
    small(0, 6 * 12 * 2)  # two images at a time
    for found, expected in zip(outcome(), plain, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_the_identity_is_exact_when_compiled(small):
    small(0, 10**9)
    X = np.random.default_rng(1).lognormal(0, 5, (4, 12)).astype(np.float32)
    drawn = Affine((4, 3), spread=0.0).sample(X, 1, 3, SEED).numpy()
    assert drawn.tobytes() == np.repeat(X[:, None, None], 3, axis=2).tobytes()
