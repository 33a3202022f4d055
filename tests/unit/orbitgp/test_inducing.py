from collections.abc import Callable
from itertools import pairwise

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes.exceptions import ShapeMismatchError
from gpflow import kernels
from gpflow.covariances import Kuf, Kuu

from orbitgp.inducing import BasePoints, augmented, greedy_variance, kmeans, place
from orbitgp.kernels import Invariant
from orbitgp.orbits import GaussianNoise, Identity, Permutation, Rotation


def swap() -> Invariant:
    return Invariant(kernels.SquaredExponential(1.7, 1.3), Permutation([[0, 1], [1, 0]]))


def rbf(a: np.ndarray, b: np.ndarray) -> float:
    return 1.7 * np.exp(-0.5 * np.sum((a - b) ** 2) / 1.3**2)


def inputs(N: int, D: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N, D))


# -- covariances ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jitter", [0.0, 0.25])
def test_Kuu_has_no_orbit_in_it(jitter: float) -> None:
    Z = inputs(4, 2, 0)
    expected = [[rbf(a, b) + jitter * (i == j) for j, b in enumerate(Z)] for i, a in enumerate(Z)]
    np.testing.assert_allclose(Kuu(BasePoints(Z), swap(), jitter=jitter), expected, rtol=1e-10)


def test_jitter_may_be_a_variable() -> None:
    Z = inputs(3, 2, 1)
    jitter = tf.Variable(0.5, dtype=tf.float64)
    np.testing.assert_allclose(np.diag(Kuu(BasePoints(Z), swap(), jitter=jitter)), 2.2, rtol=1e-12)


def test_Kuf_averages_the_inputs_only() -> None:
    Z, X = inputs(4, 2, 2), inputs(3, 2, 3)
    expected = [[(rbf(z, x) + rbf(z, x[::-1])) / 2 for x in X] for z in Z]
    np.testing.assert_allclose(Kuf(BasePoints(Z), swap(), X), expected, rtol=1e-10)
    assert np.abs(Kuf(BasePoints(Z[:, ::-1].copy()), swap(), X) - Kuf(BasePoints(Z), swap(), X)).max() < 1e-12
    # a base kernel that tells the coordinates apart is not invariant in z
    apart = Invariant(kernels.SquaredExponential(1.0, [0.5, 3.0]), Permutation([[0, 1], [1, 0]]))
    assert np.abs(Kuf(BasePoints(Z[:, ::-1].copy()), apart, X) - Kuf(BasePoints(Z), apart, X)).max() > 0.1


def test_covariances_are_those_of_one_joint_gaussian() -> None:
    """f and u together have a positive semi-definite covariance."""
    kernel, X, Z = swap(), inputs(5, 2, 4), BasePoints(inputs(6, 2, 5))
    cross = Kuf(Z, kernel, X)
    joint = np.block([[kernel(X).numpy(), tf.transpose(cross).numpy()], [cross.numpy(), Kuu(Z, kernel).numpy()]])
    assert np.linalg.eigvalsh(joint).min() > -1e-10


def test_base_points_need_an_invariant_kernel() -> None:
    with pytest.raises(NotImplementedError, match="BasePoints"):
        Kuu(BasePoints(np.zeros((2, 2))), kernels.SquaredExponential())


def test_inputs_of_another_length_than_the_points_are_named() -> None:
    with pytest.raises(ShapeMismatchError, match=r"(?s)Argument: Xnew.*Actual: *\[4, 3\]"):
        Kuf(BasePoints(np.zeros((2, 2))), swap(), np.zeros((4, 3)))


# -- augmentation --------------------------------------------------------------------------------------------------


def test_each_row_has_a_draw_of_its_own_across_blocks() -> None:
    rows = 5000  # more than one block
    drawn = augmented(np.zeros((rows, 1)), GaussianNoise(1, 1.0), 3)
    assert drawn.shape == (rows, 1)
    # 2^23 different draws are possible, so that a few of 5000 coincide
    assert len(np.unique(drawn)) > rows - 10
    assert abs(drawn.mean()) < 4 / np.sqrt(rows)
    assert abs(drawn.var() - 1) < 4 * np.sqrt(2 / rows)


def test_the_seed_decides_the_augmentation() -> None:
    X, orbit = inputs(20, 9, 6), Rotation((3, 3))
    np.testing.assert_array_equal(augmented(X, orbit, 1), augmented(X, orbit, 1))
    assert not np.array_equal(augmented(X, orbit, 1), augmented(X, orbit, 2))


def test_augmentation_keeps_rows_in_place() -> None:
    X = np.arange(200.0).reshape(100, 2)
    drawn = augmented(X, Permutation([[0, 1], [1, 0]]), 0)
    np.testing.assert_array_equal(np.sort(drawn, axis=1), X)
    assert 20 < np.sum(drawn[:, 0] > drawn[:, 1]) < 80


# -- k-means -------------------------------------------------------------------------------------------------------


def lloyd_in_loops(X: np.ndarray, centres: np.ndarray, iterations: int) -> np.ndarray:
    centres = centres.copy()
    for _ in range(iterations):
        nearest = [min(range(len(centres)), key=lambda m: np.sum((x - centres[m]) ** 2)) for x in X]
        for m in range(len(centres)):
            centres[m] = np.mean([x for x, n in zip(X, nearest, strict=True) if n == m], axis=0)
    return centres


def inertia(X: np.ndarray, centres: np.ndarray) -> float:
    return float(np.square(X[:, None] - centres[None]).sum(-1).min(1).sum())


def first_centres(N: int, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(N, count, replace=False)


@pytest.mark.parametrize("iterations", [1, 4, 10])
def test_kmeans_is_lloyds_algorithm(iterations: int) -> None:
    X = inputs(40, 3, 7)
    expected = lloyd_in_loops(X, X[first_centres(40, 5, 11)], iterations)
    np.testing.assert_allclose(kmeans(X, 5, 11, iterations), expected, rtol=1e-12)


def test_kmeans_comes_closer_with_each_iteration() -> None:
    X = inputs(60, 2, 8)
    history = [inertia(X, X[first_centres(60, 6, 0)])] + [inertia(X, kmeans(X, 6, 0, i)) for i in range(1, 8)]
    assert all(after <= before + 1e-12 for before, after in pairwise(history))
    assert history[-1] < 0.8 * history[0]


def test_a_centre_without_points_moves_to_the_farthest_point() -> None:
    X = np.array([[0.0], [0.0], [0.0], [10.0]])
    seed = next(seed for seed in range(100) if 3 not in first_centres(4, 2, seed))
    assert sorted(kmeans(X, 2, seed, 1)[:, 0]) == [2.5, 10.0]
    assert sorted(kmeans(X, 2, seed, 2)[:, 0]) == [0.0, 10.0]


def test_several_centres_without_points_move_to_different_points() -> None:
    X = np.array([[0.0], [0.0], [0.0], [4.0], [10.0]])
    seed = next(seed for seed in range(100) if set(first_centres(5, 3, seed)) == {0, 1, 2})
    assert sorted(kmeans(X, 3, seed, 1)[:, 0]) == pytest.approx([2.8, 4.0, 10.0])
    assert sorted(kmeans(X, 3, seed)[:, 0]) == [0.0, 4.0, 10.0]


def test_kmeans_far_from_the_origin_is_the_same() -> None:
    X = inputs(30, 2, 9)
    np.testing.assert_allclose(kmeans(X + 1000, 4, 0), kmeans(X, 4, 0) + 1000, rtol=1e-10)


def test_as_many_centres_as_points_are_the_points() -> None:
    X = inputs(6, 2, 10)
    np.testing.assert_allclose(np.sort(kmeans(X, 6, 0), axis=0), np.sort(X, axis=0), rtol=1e-14)


# -- greedy selection ----------------------------------------------------------------------------------------------


def greedy_by_conditioning(K: np.ndarray, count: int) -> list[int]:
    """Each time the largest of the explicit conditional variances k_xx − k_xc k_cc⁻¹ k_cx."""
    chosen: list[int] = []
    for _ in range(count):
        variances = []
        for i in range(len(K)):
            variance = K[i, i]
            if chosen:
                cross = K[i, chosen]
                variance = variance - cross @ np.linalg.solve(K[np.ix_(chosen, chosen)], cross)
            variances.append(-np.inf if i in chosen else variance)
        chosen.append(int(np.argmax(variances)))
    return chosen


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.SquaredExponential(2.0, 0.7),
        kernels.Matern32(1.0, [0.5, 1.0]),
        kernels.Polynomial(3.0),
        kernels.Linear() * kernels.SquaredExponential() + kernels.Matern12(),
    ],
    ids=["rbf", "ard matern", "polynomial", "combined"],
)
@pytest.mark.parametrize("count", [1, 2, 9])
def test_greedy_takes_the_largest_conditional_variance(kernel: kernels.Kernel, count: int) -> None:
    X = inputs(60, 2, 11)
    K = kernel(X).numpy()
    np.fill_diagonal(K, kernel(X, full_cov=False))  # rounding in k(x, x) would decide which of equal variances is first
    expected = X[greedy_by_conditioning(K, count)]
    np.testing.assert_array_equal(greedy_variance(X, kernel, count), expected)


def test_greedy_can_take_every_point() -> None:
    X = inputs(8, 2, 12)
    chosen = greedy_variance(X, kernels.Matern12(), 8)
    assert {tuple(x) for x in chosen} == {tuple(x) for x in X}


def test_greedy_refuses_copies() -> None:
    X = np.repeat(inputs(3, 2, 13), 4, axis=0)
    assert len(np.unique(greedy_variance(X, kernels.SquaredExponential(), 3), axis=0)) == 3
    with pytest.raises(ValueError, match="X has only 3 points that differ under this kernel, 4 were asked for"):
        greedy_variance(X, kernels.SquaredExponential(), 4)


def test_greedy_refuses_points_that_the_kernel_cannot_tell_apart() -> None:
    # a linear kernel of two coordinates has rank two
    with pytest.raises(ValueError, match="only 2 points that differ under this kernel, 3 were asked for"):
        greedy_variance(inputs(10, 2, 14), kernels.Linear(), 3)


def test_kmeans_refuses_more_centres_than_there_are_points() -> None:
    with pytest.raises(ValueError, match="3"):
        kmeans(np.repeat(inputs(3, 2, 15), 4, axis=0), 5, 0)


# -- placement -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["kmeans", "greedy"])
def test_placement_is_decided_by_its_seed(method: str) -> None:
    X = inputs(40, 2, 16)
    first, again, other = (place(swap(), X, 7, method=method, seed=seed).Z.numpy() for seed in (0, 0, 1))
    assert first.shape == (7, 2)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(first, axis=0)) == 7


@pytest.mark.parametrize("method", ["kmeans", "greedy"])
def test_points_lie_where_transformed_inputs_lie(method: str) -> None:
    X = np.array([5.0, 0.0]) + 0.01 * inputs(50, 2, 17)
    Z = place(swap(), X, 2, method=method).Z.numpy()
    np.testing.assert_allclose(sorted(Z.tolist()), [[0, 5], [5, 0]], atol=0.1)


def test_greedy_placement_measures_with_the_base_kernel() -> None:
    # to f, a point and its mirror image are the same; to g they are two
    Z = place(swap(), np.tile([5.0, 0.0], (20, 1)), 2, method="greedy").Z.numpy()
    assert sorted(Z.tolist()) == [[0, 5], [5, 0]]


def test_greedy_placement_takes_transformed_inputs() -> None:
    X = inputs(30, 2, 18)
    orbit = {tuple(x) for x in X} | {tuple(x[::-1]) for x in X}
    chosen = {tuple(z) for z in place(swap(), X, 10, method="greedy").Z.numpy()}
    assert chosen <= orbit
    assert chosen - {tuple(x) for x in X}


@pytest.mark.parametrize("method", ["kmeans", "greedy"])
def test_candidates_are_a_random_part_of_the_inputs(method: str) -> None:
    X = np.arange(100.0)[:, None]
    kernel = Invariant(kernels.SquaredExponential(), Identity())
    chosen = {
        seed: set(place(kernel, X, 5, method=method, seed=seed, candidates=5).Z.numpy().ravel()) for seed in (0, 1)
    }
    assert chosen[0] != chosen[1]
    assert all(len(points) == 5 and max(points) > 20 and points <= set(range(100)) for points in chosen.values())


def test_placed_points_serve_a_model() -> None:
    X = inputs(20, 2, 19)
    points = place(swap(), X, 5)
    model = gpflow.models.SVGP(swap(), gpflow.likelihoods.Gaussian(), points)
    assert np.isfinite(model.elbo((X, X[:, :1] + X[:, 1:])))
    assert points.Z.trainable


# -- bad input -----------------------------------------------------------------------------------------------------

X6 = inputs(6, 2, 20)
RBF = kernels.SquaredExponential()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: place(RBF, X6, 2), TypeError, "kernel must be an? Invariant, got SquaredExponential"),
        (lambda: place(swap(), X6, 2, method="best"), ValueError, "method must be one of .*, got 'best'"),
        (lambda: place(swap(), X6, 7), ValueError, "count must be .* at most 6, got 7"),
        (lambda: place(swap(), X6, 5, candidates=4), ValueError, "count must be .* at most 4, got 5"),
        (lambda: place(swap(), X6, 0), ValueError, "count must be .* at least 1 .*, got 0"),
        (lambda: place(swap(), X6, 2.0), TypeError, "count must be .*, got 2.0"),
        (lambda: place(swap(), X6, 2, candidates=0), ValueError, "candidates must be .*, got 0"),
        (lambda: place(swap(), X6, 2, seed=-1), ValueError, "seed must be .* at least 0, got -1"),
        (lambda: place(swap(), X6, 2, seed=0.5), TypeError, "seed must be .*, got 0.5"),
        (lambda: place(swap(), X6[0], 2), ValueError, r"X must be a matrix .*, got shape \(2,\)"),
        (lambda: augmented(X6, Identity(), -3), ValueError, "seed must be .* at least 0, got -3"),
        (lambda: augmented(X6[0], Identity(), 0), ShapeMismatchError, r"(?s)Argument: X.*Actual: *\[2\]"),
        (lambda: kmeans(X6, 7, 0), ValueError, "count must be .* at most 6, got 7"),
        (lambda: kmeans(X6, 2, -1), ValueError, "seed must be .*, got -1"),
        (lambda: kmeans(X6, 2, 0, iterations=0), ValueError, "iterations must be .*, got 0"),
        (lambda: kmeans(np.zeros((0, 2)), 1, 0), ValueError, r"X must be .* at least one row, got shape \(0, 2\)"),
        (lambda: kmeans([[0.0], [np.nan]], 1, 0), ValueError, "X must be finite"),
        (lambda: greedy_variance(X6, RBF, 7), ValueError, "count must be .* at most 6, got 7"),
        (lambda: greedy_variance([[0.0], [np.inf]], RBF, 1), ValueError, "X must be finite"),
        (lambda: greedy_variance(np.zeros((2, 2, 2)), RBF, 1), ValueError, r"X must be .* shape \(2, 2, 2\)"),
    ],
)
def test_bad_arguments_are_named(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: greedy_variance(X6, "rbf", 2), "kernel must be a Kernel, got str"),
        (lambda: augmented(X6, "swap", 0), "orbit must be an? Orbit, got str"),
        (lambda: kmeans("points", 2, 0), "X must be .*points"),
        (lambda: augmented(np.zeros((0, 2)), Identity(), 0), "X must be .* at least one row"),
    ],
)
def test_arguments_of_another_kind_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()
