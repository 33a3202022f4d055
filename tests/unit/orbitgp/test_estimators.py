from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
import tensorflow as tf
from check_shapes.exceptions import ShapeMismatchError

from orbitgp.orbits import GaussianNoise
from orbitgp.schemes import (
    PairWeights,
    all_pairs,
    average,
    distinct_pairs,
    independent_pairs,
    square_norm_of_average,
    square_of_average,
    variance_of_average,
)

WEIGHTS = {
    "two independent": (2, independent_pairs(2)),
    "five independent": (5, independent_pairs(5)),
    "three of six": (3, distinct_pairs(6, 3)),
    "four of four": (4, distinct_pairs(4, 4)),
    "one of one": (1, distinct_pairs(1, 1)),
    "all of three": (3, all_pairs(3)),
    "all of one": (1, all_pairs(1)),
}
SUBSETS = [(1, 1), (2, 2), (4, 2), (5, 3), (6, 2), (6, 6)]  # P, M


def pair_weight(weights: PairWeights, g: int, h: int) -> float:
    return weights.same if g == h else weights.different


def pairs_in_loops(values: np.ndarray, weights: PairWeights) -> np.ndarray:
    N, G, K = values.shape
    result = np.zeros((N, K))
    for n in range(N):
        for k in range(K):
            for g in range(G):
                for h in range(G):
                    result[n, k] += pair_weight(weights, g, h) * values[n, g, k] * values[n, h, k]
    return result


def variance_in_loops(Kaa: np.ndarray, groups: int, weights: PairWeights) -> np.ndarray:
    N, S, _ = Kaa.shape
    size = S // groups
    result = np.zeros(N)
    for n in range(N):
        for s in range(S):
            for t in range(S):
                result[n] += pair_weight(weights, s // size, t // size) * Kaa[n, s, t] / size**2
    return result


def kernel_matrix(points: np.ndarray) -> np.ndarray:
    """An RBF of lengthscale one between scalars, [..., S] → [..., S, S]."""
    return np.exp(-0.5 * (points[..., :, None] - points[..., None, :]) ** 2)


def standard_errors(estimates: np.ndarray, truth: float) -> float:
    """How many standard errors the mean of independent estimates lies from the truth."""
    return float((np.mean(estimates) - truth) / (np.std(estimates, ddof=1) / np.sqrt(len(estimates))))


# -- the weights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [2, 3, 10])
def test_independent_pairs_leave_out_a_group_with_itself(groups: int) -> None:
    weights = independent_pairs(groups)
    assert weights.same == 0
    assert weights.different == pytest.approx(1 / (groups * (groups - 1)), rel=1e-15)


@pytest.mark.parametrize(("order", "count"), [(P, M) for P, M in SUBSETS if P > 1] + [(100, 7)])
def test_distinct_pairs_are_those_of_the_appendix(order: int, count: int) -> None:
    P, M = order, count
    weights = distinct_pairs(P, M)
    assert weights.different == pytest.approx(float(Fraction(P * (P - 1), M * (M - 1)) / P**2), rel=1e-14)
    assert weights.same == pytest.approx(float(Fraction(P, M) / P**2), rel=1e-14)


def test_all_points_without_replacement_are_all_pairs() -> None:
    drawn, listed = distinct_pairs(7, 7), all_pairs(7)
    assert (drawn.same, drawn.different) == pytest.approx((listed.same, listed.different), rel=1e-14)


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights_sum_to_one(case: str) -> None:
    groups, weights = WEIGHTS[case]
    assert groups * weights.same + groups * (groups - 1) * weights.different == pytest.approx(1, rel=1e-14)


# -- against loops -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", WEIGHTS)
def test_square_of_average_is_the_sum_over_pairs(case: str) -> None:
    groups, weights = WEIGHTS[case]
    values = np.random.default_rng(0).normal(size=(4, groups, 3))
    expected = pairs_in_loops(values, weights)
    np.testing.assert_allclose(square_of_average(values, weights), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(square_norm_of_average(values, weights), expected.sum(1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("case", WEIGHTS)
def test_variance_of_average_is_the_sum_over_pairs(case: str, size: int) -> None:
    groups, weights = WEIGHTS[case]
    Kaa = np.random.default_rng(1).normal(size=(4, groups * size, groups * size))
    found = variance_of_average(Kaa, groups, weights)
    np.testing.assert_allclose(found, variance_in_loops(Kaa, groups, weights), rtol=1e-12, atol=1e-12)


def test_independent_pairs_never_look_inside_a_group() -> None:
    Kaa = np.ones((1, 6, 6))
    for group in (slice(0, 2), slice(2, 4), slice(4, 6)):
        Kaa[:, group, group] = 1e9
    assert variance_of_average(Kaa, 3, independent_pairs(3)).numpy() == pytest.approx([1.0], abs=1e-5)


def test_average_is_the_mean_over_groups() -> None:
    values = np.random.default_rng(2).normal(size=(4, 5, 3))
    expected = [[sum(values[n, g, k] for g in range(5)) / 5 for k in range(3)] for n in range(4)]
    np.testing.assert_allclose(average(values), expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_estimates_keep_the_precision_of_their_input(dtype: str) -> None:
    values, Kaa = np.ones((2, 4, 3), dtype), np.ones((2, 4, 4), dtype)
    weights = distinct_pairs(6, 4)
    for result in (
        average(values),
        square_of_average(values, weights),
        square_norm_of_average(values, weights),
        variance_of_average(Kaa, 4, weights),
    ):
        assert result.dtype == dtype


def test_number_of_inputs_may_be_unknown_when_traced() -> None:
    weights = independent_pairs(2)
    signature = [tf.TensorSpec([None, 2, None], tf.float64), tf.TensorSpec([None, None, None], tf.float64)]

    @tf.function(input_signature=signature)
    def traced(values: tf.Tensor, Kaa: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return square_of_average(values, weights), variance_of_average(Kaa, 2, weights)

    rng = np.random.default_rng(3)
    for N, K, S in ((1, 2, 4), (5, 1, 6)):
        values, Kaa = rng.normal(size=(N, 2, K)), rng.normal(size=(N, S, S))
        squares, variances = traced(values, Kaa)
        np.testing.assert_allclose(squares, pairs_in_loops(values, weights), rtol=1e-12)
        np.testing.assert_allclose(variances, variance_in_loops(Kaa, 2, weights), rtol=1e-12)


# -- no bias: every possible draw ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "count"), SUBSETS)
def test_mean_over_all_subsets_is_the_full_double_mean(order: int, count: int) -> None:
    rng = np.random.default_rng(4)
    values, kernel = rng.normal(size=(order, 3)), rng.normal(size=(order, order))
    subsets = [list(subset) for subset in combinations(range(order), count)]
    weights = distinct_pairs(order, count)
    squares = square_of_average(np.stack([values[subset] for subset in subsets]), weights)
    np.testing.assert_allclose(np.mean(squares, 0), values.mean(0) ** 2, rtol=1e-11)
    variances = variance_of_average(np.stack([kernel[np.ix_(s, s)] for s in subsets]), count, weights)
    assert np.mean(variances) == pytest.approx(kernel.mean(), rel=1e-11)


def test_independent_pairs_of_a_subset_would_be_biased() -> None:
    values = np.random.default_rng(5).normal(size=(5, 1))
    subsets = [list(subset) for subset in combinations(range(5), 3)]
    squares = square_of_average(values[subsets], independent_pairs(3))
    # the pairs of a point with itself, one in P, are never drawn
    assert np.mean(squares) - values.mean() ** 2 == pytest.approx(-values.var() / 4, rel=1e-10)


@pytest.mark.parametrize("draws", [2, 4])
def test_mean_over_all_independent_draws(draws: int) -> None:
    rng = np.random.default_rng(6)
    values, kernel = rng.normal(size=(3, 2)), rng.normal(size=(3, 3))
    outcomes = np.array(list(product(range(3), repeat=draws)))
    Kaa = kernel[outcomes[:, :, None], outcomes[:, None, :]]
    weights = independent_pairs(draws)
    np.testing.assert_allclose(np.mean(average(values[outcomes]), 0), values.mean(0), rtol=1e-11)
    np.testing.assert_allclose(
        np.mean(square_of_average(values[outcomes], weights), 0), values.mean(0) ** 2, rtol=1e-11
    )
    assert np.mean(variance_of_average(Kaa, draws, weights)) == pytest.approx(kernel.mean(), rel=1e-11)


@pytest.mark.parametrize("draws", [2, 4])
def test_including_the_diagonal_is_biased_by_the_variance_over_draws(draws: int) -> None:
    rng = np.random.default_rng(7)
    values, kernel = rng.normal(size=(3, 2)), rng.normal(size=(3, 3))
    outcomes = np.array(list(product(range(3), repeat=draws)))
    Kaa = kernel[outcomes[:, :, None], outcomes[:, None, :]]
    squares = np.mean(square_of_average(values[outcomes], all_pairs(draws)), 0)
    np.testing.assert_allclose(squares - values.mean(0) ** 2, values.var(0) / draws, rtol=1e-10)
    norm = np.mean(square_norm_of_average(values[outcomes], all_pairs(draws)))
    trace_of_covariance = np.trace(np.cov(values.T, bias=True))
    assert norm - np.sum(values.mean(0) ** 2) == pytest.approx(trace_of_covariance / draws, rel=1e-10)
    variance = np.mean(variance_of_average(Kaa, draws, all_pairs(draws)))
    assert variance - kernel.mean() == pytest.approx((np.trace(kernel) / 3 - kernel.mean()) / draws, rel=1e-10)


def test_draws_inside_a_group_may_depend_on_each_other_but_not_be_paired() -> None:
    order = 5
    points = np.random.default_rng(8).normal(size=order)
    kernel = kernel_matrix(points)
    # a group is a point and its neighbour: each is uniform by itself, but the first decides the second
    neighbours = [(i, (i + 1) % order) for i in range(order)]
    outcomes = np.array([first + second for first, second in product(neighbours, repeat=2)])
    Kaa = kernel[outcomes[:, :, None], outcomes[:, None, :]]
    by_group = variance_of_average(Kaa, 2, independent_pairs(2))
    assert np.mean(by_group) == pytest.approx(kernel.mean(), rel=1e-12)
    by_draw = variance_of_average(Kaa, 4, independent_pairs(4))
    assert abs(np.mean(by_draw) - kernel.mean()) > 1e-2


# -- no bias: draws of an orbit ------------------------------------------------------------------------------------

NOISE, REPEATS, DRAWS = 1.2, 4000, 8


def noisy_points(groups: int, size: int, sampler: str) -> np.ndarray:
    """Draws around zero, independent for each repeat, [REPEATS, groups, size]."""
    orbit = GaussianNoise(1, NOISE)
    return orbit.sample(np.zeros((REPEATS, 1)), groups, size, [3, 7], sampler).numpy()[..., 0]


def noisy_variance() -> float:
    """E k(e, e') for independent e and e': a Gaussian integral over e − e' ~ N(0, 2 NOISE²)."""
    return 1 / np.sqrt(1 + 2 * NOISE**2)


def noisy_covariance(z: float) -> float:
    """E k(e, z)"""
    return np.exp(-0.5 * z**2 / (1 + NOISE**2)) / np.sqrt(1 + NOISE**2)


@pytest.mark.parametrize("sampler", ["iid", "sobol"])
@pytest.mark.parametrize(("groups", "size"), [(2, 4), (8, 1), (3, 2)])
def test_estimates_from_groups_have_no_bias(sampler: str, groups: int, size: int) -> None:
    points = noisy_points(groups, size, sampler)
    weights = independent_pairs(groups)
    variances = variance_of_average(kernel_matrix(points.reshape(REPEATS, -1)), groups, weights)
    assert abs(standard_errors(variances, noisy_variance())) < 4
    Z = np.array([0.0, 0.7, -2.0])
    values = np.exp(-0.5 * (points[..., None] - Z) ** 2).mean(2)
    squares, firsts = square_of_average(values, weights).numpy(), average(values).numpy()
    for m, z in enumerate(Z):
        assert abs(standard_errors(firsts[:, m], noisy_covariance(z))) < 4
        assert abs(standard_errors(squares[:, m], noisy_covariance(z) ** 2)) < 4
    norm = square_norm_of_average(values, weights)
    assert abs(standard_errors(norm, sum(noisy_covariance(z) ** 2 for z in Z))) < 4


def test_pairs_within_one_sobol_group_are_far_too_small() -> None:
    """The error that once sent a bound to 1e19: the test above must not let it pass."""
    points = noisy_points(1, DRAWS, "sobol")[:, 0]
    paired = variance_of_average(kernel_matrix(points), DRAWS, independent_pairs(DRAWS))
    assert standard_errors(paired, noisy_variance()) < -50


@pytest.mark.parametrize("sampler", ["iid", "sobol"])
def test_all_pairs_of_one_group_are_too_large(sampler: str) -> None:
    points = noisy_points(1, DRAWS, sampler)[:, 0]
    paired = variance_of_average(kernel_matrix(points), DRAWS, all_pairs(DRAWS))
    assert standard_errors(paired, noisy_variance()) > 20


def test_bias_of_the_diagonal_with_independent_draws() -> None:
    points = noisy_points(1, DRAWS, "iid")[:, 0]
    paired = variance_of_average(kernel_matrix(points), DRAWS, all_pairs(DRAWS))
    bias = (1 - noisy_variance()) / DRAWS
    assert abs(standard_errors(paired, noisy_variance() + bias)) < 4


# -- signs and gradients -------------------------------------------------------------------------------------------


def test_the_estimate_of_a_square_may_be_negative_and_stays_so() -> None:
    values = np.array([[[1.0], [-2.0]]])
    assert square_of_average(values, independent_pairs(2)).numpy() == pytest.approx(np.array([[-2.0]]))
    assert square_norm_of_average(values, independent_pairs(2)).numpy() == pytest.approx([-2.0])
    # 3/8 for either order of the pair, whose product is −2, and 1/8 for the squares 1 and 4
    assert square_of_average(values, distinct_pairs(4, 2)).numpy() == pytest.approx(np.array([[-0.875]]))


def test_the_estimate_of_a_variance_may_be_negative_and_stays_so() -> None:
    # draws of an input at which a linear function takes the values 1 and −2
    Kaa = np.outer([1.0, -2.0], [1.0, -2.0])[None]
    assert variance_of_average(Kaa, 2, independent_pairs(2)).numpy() == pytest.approx([-2.0])


@pytest.mark.parametrize("case", ["two independent", "three of six", "all of three"])
@pytest.mark.parametrize("estimate", [square_of_average, square_norm_of_average])
def test_gradients_of_squares(
    central_differences: Callable[..., np.ndarray],
    estimate: Callable[[np.ndarray, PairWeights], tf.Tensor],
    case: str,
) -> None:
    groups, weights = WEIGHTS[case]
    values = tf.constant(np.random.default_rng(9).normal(size=(2, groups, 3)))
    directions = np.random.default_rng(10).normal(size=estimate(values, weights).shape)
    with tf.GradientTape() as tape:
        tape.watch(values)
        total = tf.reduce_sum(directions * estimate(values, weights))
    expected = central_differences(lambda v: np.sum(directions * estimate(v, weights)), values)
    np.testing.assert_allclose(tape.gradient(total, values), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("case", ["two independent", "three of six", "all of three"])
def test_gradient_of_variance(central_differences: Callable[..., np.ndarray], case: str) -> None:
    groups, weights = WEIGHTS[case]
    Kaa = tf.constant(np.random.default_rng(11).normal(size=(2, 2 * groups, 2 * groups)))
    with tf.GradientTape() as tape:
        tape.watch(Kaa)
        total = tf.reduce_sum([1.0, -3.0] * variance_of_average(Kaa, groups, weights))
    expected = central_differences(lambda K: np.sum([1.0, -3.0] * variance_of_average(K, groups, weights).numpy()), Kaa)
    np.testing.assert_allclose(tape.gradient(total, Kaa), expected, rtol=1e-7, atol=1e-8)


def test_gradient_of_average(central_differences: Callable[..., np.ndarray]) -> None:
    values = tf.constant(np.random.default_rng(12).normal(size=(2, 3, 2)))
    with tf.GradientTape() as tape:
        tape.watch(values)
        total = tf.reduce_sum(average(values) ** 2)
    expected = central_differences(lambda v: np.sum(average(v).numpy() ** 2), values)
    np.testing.assert_allclose(tape.gradient(total, values), expected, rtol=1e-7, atol=1e-8)


# -- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: independent_pairs(1), ValueError, "groups must be an integer of at least 2, got 1"),
        (lambda: independent_pairs(2.0), TypeError, "groups .* got 2.0"),
        (lambda: independent_pairs(True), TypeError, "groups .* got True"),
        (lambda: all_pairs(0), ValueError, "groups must be an integer of at least 1, got 0"),
        (lambda: all_pairs("3"), TypeError, "groups .* got '3'"),
        (lambda: distinct_pairs(0, 1), ValueError, "order must be an integer of at least 1, got 0"),
        (lambda: distinct_pairs(4, 1), ValueError, "count must be .* at least 2 and at most 4, got 1"),
        (lambda: distinct_pairs(4, 5), ValueError, "count must be .* at least 2 and at most 4, got 5"),
        (lambda: distinct_pairs(1, 2), ValueError, "count must be .* at least 1 and at most 1, got 2"),
        (lambda: distinct_pairs(4, None), TypeError, "count .* got None"),
    ],
)
def test_bad_numbers_of_groups_are_named(call: Callable[[], PairWeights], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "argument", "shape"),
    [
        (lambda: average(np.zeros((2, 3))), "values", r"\[2, 3\]"),
        (lambda: square_of_average(np.zeros((2, 3)), all_pairs(3)), "values", r"\[2, 3\]"),
        (lambda: square_norm_of_average(np.zeros((2, 3, 4, 5)), all_pairs(3)), "values", r"\[2, 3, 4, 5\]"),
        (lambda: variance_of_average(np.zeros((2, 4, 6)), 2, all_pairs(2)), "Kaa", r"\[2, 4, 6\]"),
    ],
)
def test_bad_shapes_are_named(call: Callable[[], tf.Tensor], argument: str, shape: str) -> None:
    with pytest.raises(ShapeMismatchError, match=rf"(?s)Argument: {argument}.*Actual: *{shape}"):
        call()


@pytest.mark.parametrize("groups", [0, 3, "2"])
def test_groups_that_do_not_divide_the_draws_are_named(groups: int) -> None:
    with pytest.raises((TypeError, ValueError), match=f"groups .*{groups}"):
        variance_of_average(np.zeros((1, 4, 4)), groups, all_pairs(2))
