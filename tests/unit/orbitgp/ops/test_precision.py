from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels
from gpflow.kernels import Kernel

from orbitgp._ops.precision import PRECISIONS, in_precision
from orbitgp.kernels import Invariant
from orbitgp.orbits import Permutation

KERNELS: dict[str, Callable[[], Kernel]] = {
    "SquaredExponential": lambda: kernels.SquaredExponential(1.3, 0.7),
    "ARD": lambda: kernels.SquaredExponential(1.3, [0.7, 1.0, 2.0]),
    "some columns": lambda: kernels.SquaredExponential(1.3, [0.7, 2.0], active_dims=[2, 0]),
    "Exponential": lambda: kernels.Exponential(0.9, 1.2),
    "Matern12": lambda: kernels.Matern12(0.9, 1.2),
    "Matern32": lambda: kernels.Matern32(0.9, [0.7, 1.0, 2.0]),
    "Matern52": lambda: kernels.Matern52(0.9, 1.2),
    "RationalQuadratic": lambda: kernels.RationalQuadratic(0.9, 1.2, 2.5),
    "Cosine": lambda: kernels.Cosine(0.9, 6.0),
    "ARD Cosine": lambda: kernels.Cosine(0.9, [6.0, 7.0, 9.0]),
    "Linear": lambda: kernels.Linear(0.4),
    "ARD Linear": lambda: kernels.Linear([0.4, 0.2, 0.8]),
    "Polynomial": lambda: kernels.Polynomial(2.0, 0.4, 0.7),
    "Constant": lambda: kernels.Constant(0.6),
    "Bias": lambda: kernels.Bias(0.6),
    "White": lambda: kernels.White(0.6),
    "Periodic": lambda: kernels.Periodic(kernels.SquaredExponential(1.1, 1.4), 2.3),
    "periods": lambda: kernels.Periodic(kernels.Matern32(1.1, 1.4, active_dims=[0, 1]), [2.3, 1.8]),
    "Sum": lambda: kernels.SquaredExponential(1.3, 0.7) + kernels.Linear(0.4),
    "Product": lambda: kernels.Matern52(1.3, 0.7) * kernels.Linear(0.4),
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
# these have a kink where x = x', and the distance is the root of a rounding error there
KINKED = ("Exponential", "Matern12")


def inputs(name: str) -> tuple[np.ndarray, np.ndarray]:
    """[5, D] and [4, D], numbers that float32 holds exactly."""
    rng = np.random.default_rng(0)
    if name == "Coregion":
        return rng.integers(0, 3, size=(5, 1)).astype(float), rng.integers(0, 3, size=(4, 1)).astype(float)
    D = 1 if name == "ChangePoints" else 3
    X, X2 = rng.normal(size=(5, D)), rng.normal(size=(4, D))
    return X.astype(np.float32).astype(np.float64), X2.astype(np.float32).astype(np.float64)


def evaluations(kernel: Kernel, X: np.ndarray, X2: np.ndarray) -> dict[str, tf.Tensor]:
    return {"cross": kernel(X, X2), "full": kernel(X), "diagonal": kernel(X, full_cov=False)}


def single(X: np.ndarray) -> np.ndarray:
    return X.astype(np.float32)


@pytest.mark.parametrize("name", KERNELS)
def test_view_in_single_precision_is_the_kernel(name: str) -> None:
    kernel = KERNELS[name]()
    X, X2 = inputs(name)
    found = evaluations(in_precision(kernel, tf.float32), single(X), single(X2))
    for which, expected in evaluations(kernel, X, X2).items():
        assert found[which].dtype == tf.float32
        assert expected.dtype == tf.float64
        difference = np.abs(found[which] - expected.numpy())
        if name in KINKED and which == "full":
            assert np.diag(difference).max() < 5e-3
            difference = difference - np.diag(np.diag(difference))
        assert difference.max() < 1e-5


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_reach_the_parameters_in_double_precision(name: str) -> None:
    kernel = KERNELS[name]()
    X, X2 = inputs(name)
    rng = np.random.default_rng(1)
    weights = {which: rng.normal(size=value.shape) for which, value in evaluations(kernel, X, X2).items()}
    if name in KINKED:
        np.fill_diagonal(weights["full"], 0.0)

    def total(results: dict[str, tf.Tensor]) -> tf.Tensor:
        return tf.add_n([tf.reduce_sum(weights[which] * tf.cast(results[which], tf.float64)) for which in weights])

    with tf.GradientTape(persistent=True) as tape:
        in_single = total(evaluations(in_precision(kernel, tf.float32), single(X), single(X2)))
        in_double = total(evaluations(kernel, X, X2))
    variables = kernel.trainable_variables
    assert variables
    scale = 0.0
    for found, expected in zip(tape.gradient(in_single, variables), tape.gradient(in_double, variables), strict=True):
        assert found.dtype == tf.float64
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)
        scale = max(scale, float(tf.reduce_max(tf.abs(expected))))
    assert scale > 1e-2


@pytest.mark.parametrize("name", KERNELS)
def test_original_is_unchanged(name: str) -> None:
    kernel = KERNELS[name]()
    X, X2 = inputs(name)
    before = evaluations(kernel, X, X2)
    parameters = kernel.parameters
    attributes = dict(vars(kernel))
    view = in_precision(kernel, tf.float32)
    evaluations(view, single(X), single(X2))
    assert view is not kernel
    assert {id(p) for p in kernel.parameters} == {id(p) for p in parameters}
    assert vars(kernel).keys() == attributes.keys()
    assert all(vars(kernel)[key] is value for key, value in attributes.items())
    for which, value in evaluations(kernel, X, X2).items():
        np.testing.assert_array_equal(value, before[which])


@pytest.mark.parametrize("name", ["SquaredExponential", "Periodic", "nested"])
def test_view_in_double_precision_is_the_kernel_bit_by_bit(name: str) -> None:
    kernel = KERNELS[name]()
    X, X2 = inputs(name)
    found = evaluations(in_precision(kernel, tf.float64), X, X2)
    for which, expected in evaluations(kernel, X, X2).items():
        np.testing.assert_array_equal(found[which], expected)


def test_a_new_view_follows_the_parameter() -> None:
    kernel = kernels.SquaredExponential(1.0)
    kernel.variance.assign(4.0)
    assert in_precision(kernel, tf.float32)(np.zeros((1, 1), np.float32)).numpy() == pytest.approx(4.0)


def test_view_in_a_traced_function_follows_the_parameter() -> None:
    kernel = kernels.SquaredExponential(1.0) + kernels.Constant(1.0)

    @tf.function
    def traced() -> tf.Tensor:
        return in_precision(kernel, tf.float32)(tf.zeros((1, 1)), full_cov=False)

    assert traced().numpy() == pytest.approx([2.0])
    kernel.kernels[0].variance.assign(4.0)
    assert traced().numpy() == pytest.approx([5.0])


def test_a_part_that_occurs_twice_gets_both_gradients() -> None:
    part = kernels.Constant(2.0)
    kernel = kernels.Product([part, part])
    with tf.GradientTape() as tape:
        value = in_precision(kernel, tf.float32)(np.zeros((1, 1), np.float32))[0, 0]
    unconstrained = part.variance.unconstrained_variable
    # v² with v = softplus(u) has slope 2 v σ(u)
    assert float(tape.gradient(value, unconstrained)) == pytest.approx(4.0 * float(tf.sigmoid(unconstrained)))


def test_precisions_that_a_model_may_ask_for() -> None:
    assert PRECISIONS == ("float64", "mixed")


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_is_a_number_or_refused(order: int) -> None:
    kernel = kernels.ArcCosine(order)
    X, _ = inputs("ArcCosine")
    assert np.all(np.isfinite(kernel(X)))
    try:
        view = in_precision(kernel, tf.float32)
    except (TypeError, ValueError):
        return
    assert np.all(np.isfinite(view(single(X))))


@pytest.mark.parametrize(
    ("kernel", "dtype", "message"),
    [
        (3, tf.float32, "kernel must be a Kernel, got int"),
        (Permutation([[0, 1]]), tf.float32, "kernel must be a Kernel, got Permutation"),
        (kernels.Linear(), tf.int32, "dtype must be .*int32"),
    ],
)
def test_bad_arguments_are_named(kernel: Kernel, dtype: tf.DType, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        in_precision(kernel, dtype)
