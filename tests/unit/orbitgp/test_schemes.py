"""
Ways to draw, and the weights that make estimates unbiased: against sums over pairs in loops, over every possible draw
of a finite orbit, and within standard errors of a closed form for draws of a continuous one.
"""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
import tensorflow as tf

from orbitgp.orbits import GaussianNoise, Permutation
from orbitgp.schemes import (
    FullOrbit,
    Groups,
    WithoutReplacement,
    all_pairs,
    average,
    distinct_pairs,
    independent_pairs,
    outer_of_average,
    paper_scheme,
    square_norm_of_average,
    square_of_average,
    variance_of_average,
)

WEIGHTS = {
    "two independent": (2, independent_pairs(2)),
    "five independent": (5, independent_pairs(5)),
    "three of six": (3, distinct_pairs(6, 3)),
    "one of one": (1, distinct_pairs(1, 1)),
    "all of three": (3, all_pairs(3)),
}


def kernel_matrix(points):
    """An RBF of lengthscale one between scalars, [..., S] → [..., S, S]."""
    return np.exp(-0.5 * (points[..., :, None] - points[..., None, :]) ** 2)


def standard_errors(estimates, truth):
    """How many standard errors the mean of independent estimates lies from the truth."""
    return float((np.mean(estimates) - truth) / (np.std(estimates, ddof=1) / np.sqrt(len(estimates))))


def estimates(values, Kaa, groups, weights):
    """The means over all draws of each of the estimates."""
    norm, squares = square_norm_of_average(values, weights), square_of_average(values, weights)
    np.testing.assert_allclose(norm, np.sum(squares, axis=1), rtol=1e-12, atol=1e-12)
    return np.mean(average(values), 0), np.mean(squares, 0), np.mean(variance_of_average(Kaa, groups, weights))


# -- the weights, and sums over pairs ------------------------------------------------------------------------------


def test_weights_are_those_of_the_appendix():
    for groups in (2, 3, 10):
        weights = independent_pairs(groups)
        assert weights.same == 0
        assert weights.different == pytest.approx(1 / (groups * (groups - 1)), rel=1e-15)
    for P, M in ((2, 2), (5, 3), (6, 6), (100, 7)):
        weights = distinct_pairs(P, M)
        assert weights.different == pytest.approx(float(Fraction(P * (P - 1), M * (M - 1)) / P**2), rel=1e-14)
        assert weights.same == pytest.approx(float(Fraction(P, M) / P**2), rel=1e-14)
    for groups, weights in WEIGHTS.values():
        assert groups * weights.same + groups * (groups - 1) * weights.different == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize("case", WEIGHTS)
def test_estimates_are_sums_over_pairs_with_their_gradients(case, central_differences):
    (groups, weights), size, rng = WEIGHTS[case], 2, np.random.default_rng(0)
    values, Kaa = rng.normal(size=(2, groups, 3)), rng.normal(size=(2, groups * size, groups * size))
    squares, variances = np.zeros((2, 3)), np.zeros(2)
    for g, h in np.ndindex(groups, groups):
        weight = weights.same if g == h else weights.different
        squares += weight * values[:, g] * values[:, h]
        for s, t in np.ndindex(size, size):
            variances += weight * Kaa[:, g * size + s, h * size + t] / size**2
    np.testing.assert_allclose(square_of_average(values, weights), squares, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(square_norm_of_average(values, weights), squares.sum(1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance_of_average(Kaa, groups, weights), variances, rtol=1e-12, atol=1e-12)
    scale = rng.uniform(size=(2, 4))
    outer, ceiling = outer_of_average(tf.transpose(values, [2, 0, 1]), scale, weights)
    expected, above = np.zeros((2, 4, 3, 3))
    for n, g, h in np.ndindex(2, groups, groups):
        pair = scale[n][:, None, None] * np.outer(values[n, g], values[n, h])
        expected += (weights.same if g == h else weights.different) * pair
        above += pair / groups if g == h else 0
    np.testing.assert_allclose(outer, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ceiling, above, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(average(values), sum(values[:, g] for g in range(groups)) / groups, rtol=1e-13)
    if case == "three of six":
        for estimate, at in (
            (lambda v: tf.square(average(v)), values),
            (lambda v: square_of_average(v, weights), values),
            (lambda v: square_norm_of_average(v, weights), values),
            (lambda K: variance_of_average(K, groups, weights), Kaa),
            (lambda v: outer_of_average(v, scale, weights)[0], values.transpose(2, 0, 1)),
            (lambda s: outer_of_average(values.transpose(2, 0, 1), s, weights)[0], scale),
        ):
            at = tf.constant(at)
            directions = np.random.default_rng(10).normal(size=estimate(at).shape)
            with tf.GradientTape() as tape:
                tape.watch(at)
                total = tf.reduce_sum(directions * estimate(at))
            expected = central_differences(lambda v, f=estimate, d=directions: np.sum(d * f(v).numpy()), at)
            np.testing.assert_allclose(tape.gradient(total, at), expected, rtol=1e-7, atol=1e-8)


# -- no bias: every possible draw ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "count"), [(1, 1), (2, 2), (5, 3), (6, 2)])
def test_mean_over_all_subsets_is_the_full_double_mean(order, count):
    rng = np.random.default_rng(4)
    values, kernel = rng.normal(size=(order, 3)), rng.normal(size=(order, order))
    subsets = np.array(list(combinations(range(order), count)))
    Kaa = kernel[subsets[:, :, None], subsets[:, None, :]]
    found = estimates(values[subsets], Kaa, count, distinct_pairs(order, count))
    for mean, expected in zip(found, (values.mean(0), values.mean(0) ** 2, kernel.mean()), strict=True):
        np.testing.assert_allclose(mean, expected, rtol=1e-11)
    if count == 3:  # as if independent: the pairs of a point with itself, one in P, are never drawn
        biased = estimates(values[subsets], Kaa, count, independent_pairs(3))[1]
        np.testing.assert_allclose(biased - values.mean(0) ** 2, -values.var(0) / 4, rtol=1e-9)


@pytest.mark.parametrize("draws", [2, 4])
def test_mean_over_all_independent_draws_and_the_bias_of_the_diagonal(draws):
    rng = np.random.default_rng(6)
    values, kernel = rng.normal(size=(3, 2)), rng.normal(size=(3, 3))
    outcomes = np.array(list(product(range(3), repeat=draws)))
    Kaa = kernel[outcomes[:, :, None], outcomes[:, None, :]]
    found = estimates(values[outcomes], Kaa, draws, independent_pairs(draws))
    for mean, expected in zip(found, (values.mean(0), values.mean(0) ** 2, kernel.mean()), strict=True):
        np.testing.assert_allclose(mean, expected, rtol=1e-11)
    _, squares, variance = estimates(values[outcomes], Kaa, draws, all_pairs(draws))
    np.testing.assert_allclose(squares - values.mean(0) ** 2, values.var(0) / draws, rtol=1e-10)
    assert variance - kernel.mean() == pytest.approx((np.trace(kernel) / 3 - kernel.mean()) / draws, rel=1e-10)


def test_draws_inside_a_group_may_depend_on_each_other_but_not_be_paired():
    order = 5
    kernel = kernel_matrix(np.random.default_rng(8).normal(size=order))
    # a group is a point and its neighbour: each is uniform by itself, but the first decides the second
    neighbours = [(i, (i + 1) % order) for i in range(order)]
    outcomes = np.array([first + second for first, second in product(neighbours, repeat=2)])
    Kaa = kernel[outcomes[:, :, None], outcomes[:, None, :]]
    assert np.mean(variance_of_average(Kaa, 2, independent_pairs(2))) == pytest.approx(kernel.mean(), rel=1e-12)
    assert abs(np.mean(variance_of_average(Kaa, 4, independent_pairs(4))) - kernel.mean()) > 1e-2


# -- no bias: draws of an orbit ------------------------------------------------------------------------------------

NOISE, REPEATS = 1.2, 4000
VARIANCE = 1 / np.sqrt(1 + 2 * NOISE**2)  # E k(e, e'): an integral over e − e' ~ N(0, 2 NOISE²)


@pytest.mark.parametrize(("groups", "size", "sampler"), [(2, 4, "sobol"), (3, 2, "sobol"), (8, 1, "iid")])
def test_estimates_from_groups_have_no_bias(groups, size, sampler):
    drawn = Groups(groups, size, sampler).draw(GaussianNoise(1, NOISE), np.zeros((REPEATS, 1)), [3, 7])
    points, weights = drawn.numpy()[..., 0], independent_pairs(groups)
    variances = variance_of_average(kernel_matrix(points.reshape(REPEATS, -1)), groups, weights)
    assert abs(standard_errors(variances, VARIANCE)) < 4
    Z = np.array([0.0, 0.7, -2.0])
    covariance = np.exp(-0.5 * Z**2 / (1 + NOISE**2)) / np.sqrt(1 + NOISE**2)  # E k(e, z)
    values = np.exp(-0.5 * (points[..., None] - Z) ** 2).mean(2)
    squares, firsts = square_of_average(values, weights).numpy(), average(values).numpy()
    for m, truth in enumerate(covariance):
        assert abs(standard_errors(firsts[:, m], truth)) < 4
        assert abs(standard_errors(squares[:, m], truth**2)) < 4


@pytest.mark.parametrize("scheme", [Groups(2, 4, shared=True), paper_scheme(8, shared=True)])
def test_draws_that_all_inputs_share_are_as_unbiased(scheme):
    orbit, X = GaussianNoise(1, NOISE), np.array([[0.0], [5.0]])
    draws = np.array([scheme.draw(orbit, X, [number, 7]).numpy().reshape(2, -1) for number in range(100)])
    np.testing.assert_allclose(draws[:, 1] - 5.0, draws[:, 0], atol=1e-14)
    assert len(np.unique(draws[:, 0], axis=0)) == 100
    found = variance_of_average(kernel_matrix(draws[:, 0]), scheme.groups, scheme.weights(orbit))
    assert abs(standard_errors(found, VARIANCE)) < 4


# -- schemes -------------------------------------------------------------------------------------------------------

CYCLE = np.array([[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]])

# scheme, the groups and draws in each that it makes from an orbit of four points, and its weights
FINITE = {
    "two groups": (Groups(2, 3), 2, 3, independent_pairs(2)),
    "the paper's": (paper_scheme(5), 5, 1, independent_pairs(5)),
    "the whole orbit": (FullOrbit(), 1, 4, all_pairs(1)),
    "two of four": (WithoutReplacement(2), 2, 1, distinct_pairs(4, 2)),
    "all of four": (WithoutReplacement(4), 4, 1, distinct_pairs(4, 4)),
}


@pytest.mark.parametrize("case", FINITE)
def test_draws_are_points_of_the_orbit_and_with_their_weights_unbiased(case):
    (scheme, groups, size, weights), N, x = FINITE[case], 4000, np.array([0.3, -1.2, 0.8, 2.0])
    orbit, X = Permutation(CYCLE), np.tile(x, (N, 1))
    scheme.check(orbit)
    assert scheme.group_count == groups and scheme.weights(orbit) == weights
    first = scheme.draw(orbit, X, [2, 3])
    assert first.shape == (N, groups, size, 4)
    points, drawn = x[CYCLE], first.numpy().reshape(N, -1, 4)
    np.testing.assert_array_equal(points[np.argmax(drawn[..., :1] == points[:, 0], axis=-1)], drawn)
    truth = np.mean(np.exp(-0.1 * np.square(points[:, None] - points).sum(-1)))
    found = variance_of_average(np.exp(-0.1 * np.square(drawn[:, :, None] - drawn[:, None]).sum(-1)), groups, weights)
    if case in ("the whole orbit", "all of four"):
        np.testing.assert_allclose(found, np.full(N, truth), rtol=1e-12)
    else:
        assert np.std(found) > 1e-3
        assert abs(standard_errors(found, truth)) < 4
        assert len(np.unique(drawn[:50].reshape(50, -1), axis=0)) > 3  # each input has draws of its own
        assert not np.array_equal(first, scheme.draw(orbit, X, [2, 4]))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float64)], autograph=False)
    def traced(X):
        drawn = scheme.draw(orbit, X, [2, 3])
        assert drawn.shape[1] == groups  # known before the number of inputs
        return drawn

    np.testing.assert_array_equal(traced(X), first)


@pytest.mark.parametrize("scheme", [FullOrbit(), WithoutReplacement(2)])
def test_the_whole_orbit_is_listed_in_order_in_a_prediction_too(scheme):
    X = np.arange(8.0).reshape(2, 4)
    np.testing.assert_array_equal(scheme.draw_for_prediction(Permutation(CYCLE), X, 1, [0, 0]), X[:, CYCLE])
    if scheme == FullOrbit():
        np.testing.assert_array_equal(scheme.draw(Permutation(CYCLE), X, [0, 0]), X[:, None, CYCLE])


@pytest.mark.parametrize("sampler", ["sobol", "iid"])
def test_a_prediction_with_groups_makes_as_many_draws_as_asked_for_the_same_at_every_input(sampler):
    scheme, orbit, X = Groups(2, 4, sampler), GaussianNoise(3, 0.5), np.array([[0.0, 1.0, 2.0], [5.0, 5.0, 5.0]])
    drawn = scheme.draw_for_prediction(orbit, X, 512, [0, 1]).numpy()
    assert drawn.shape == (2, 512, 3)
    np.testing.assert_allclose(drawn.mean(1), X, atol=4 * 0.5 / np.sqrt(512))
    np.testing.assert_allclose(drawn.std(1), 0.5, atol=0.1)
    np.testing.assert_allclose(drawn[0] - X[0], drawn[1] - X[1], atol=1e-14)
    np.testing.assert_array_equal(drawn[1:], scheme.draw_for_prediction(orbit, X[1:], 512, [0, 1]))
    assert not np.array_equal(drawn, scheme.draw_for_prediction(orbit, X, 512, [0, 2]))
