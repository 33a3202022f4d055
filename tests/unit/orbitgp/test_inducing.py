import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels
from gpflow.covariances import Kuf, Kuu

from orbitgp.inducing import BasePoints, augmented, greedy_variance, kmeans, place
from orbitgp.kernels import Invariant
from orbitgp.orbits import GaussianNoise, Identity, Permutation, Rotation


def swap():
    return Invariant(kernels.SquaredExponential(1.7, 1.3), Permutation([[0, 1], [1, 0]]))


def rbf(a, b):
    return 1.7 * np.exp(-0.5 * np.sum((a - b) ** 2, -1) / 1.3**2)


def inputs(N, D, seed):
    return np.random.default_rng(seed).normal(size=(N, D))


# -- covariances ---------------------------------------------------------------------------------------------------


def test_covariances_average_the_inputs_only():
    Z, X, kernel = inputs(4, 2, 2), inputs(3, 2, 3), swap()
    for jitter in (0.0, tf.Variable(0.25, dtype=tf.float64)):
        expected = rbf(Z[:, None], Z) + np.eye(4) * float(jitter)
        np.testing.assert_allclose(Kuu(BasePoints(Z), kernel, jitter=jitter), expected, rtol=1e-10)
    cross = Kuf(BasePoints(Z), kernel, X).numpy()
    np.testing.assert_allclose(cross, (rbf(Z[:, None], X) + rbf(Z[:, None], X[:, ::-1])) / 2, rtol=1e-10)
    # f and u together have a positive semi-definite covariance
    joint = np.block([[kernel(X).numpy(), cross.T], [cross, Kuu(BasePoints(Z), kernel).numpy()]])
    assert np.linalg.eigvalsh(joint).min() > -1e-10
    # a base kernel that tells the coordinates apart is not invariant in z
    apart = Invariant(kernels.SquaredExponential(1.0, [0.5, 3.0]), Permutation([[0, 1], [1, 0]]))
    assert np.abs(Kuf(BasePoints(Z[:, ::-1].copy()), apart, X) - Kuf(BasePoints(Z), apart, X)).max() > 0.1


# -- augmentation --------------------------------------------------------------------------------------------------


def test_each_row_has_a_draw_of_its_own_across_blocks():
    rows = 5000  # more than one block
    drawn = augmented(np.zeros((rows, 1)), GaussianNoise(1, 1.0), 3)
    assert drawn.shape == (rows, 1)
    # 2^23 different draws are possible, so that a few of 5000 coincide
    assert len(np.unique(drawn)) > rows - 10
    assert abs(drawn.mean()) < 4 / np.sqrt(rows)
    assert abs(drawn.var() - 1) < 4 * np.sqrt(2 / rows)


def test_augmentation_keeps_rows_in_place_and_follows_its_seed():
    X = np.arange(200.0).reshape(100, 2)
    drawn = augmented(X, Permutation([[0, 1], [1, 0]]), 0)
    np.testing.assert_array_equal(np.sort(drawn, axis=1), X)
    assert 20 < np.sum(drawn[:, 0] > drawn[:, 1]) < 80
    X, orbit = inputs(20, 9, 6), Rotation((3, 3))
    np.testing.assert_array_equal(augmented(X, orbit, 1), augmented(X, orbit, 1))
    assert not np.array_equal(augmented(X, orbit, 1), augmented(X, orbit, 2))


# -- k-means -------------------------------------------------------------------------------------------------------


def lloyd_in_loops(X, centres, iterations):
    centres = centres.copy()
    for _ in range(iterations):
        nearest = [min(range(len(centres)), key=lambda m: np.sum((x - centres[m]) ** 2)) for x in X]
        for m in range(len(centres)):
            centres[m] = np.mean([x for x, n in zip(X, nearest, strict=True) if n == m], axis=0)
    return centres


def first_centres(N, count, seed):
    return np.random.default_rng(seed).choice(N, count, replace=False)


def test_kmeans_is_lloyds_algorithm_and_comes_closer_with_each_iteration():
    X, history = inputs(40, 3, 7), []
    for iterations in (1, 4, 10):
        found = kmeans(X, 5, 11, iterations)
        np.testing.assert_allclose(found, lloyd_in_loops(X, X[first_centres(40, 5, 11)], iterations), rtol=1e-12)
        history.append(np.square(X[:, None] - found[None]).sum(-1).min(1).sum())
    assert history[1] < 0.95 * history[0] and history[2] <= history[1] + 1e-12
    np.testing.assert_allclose(kmeans(X + 1000, 5, 11), found + 1000, rtol=1e-10)  # far from the origin
    np.testing.assert_allclose(np.sort(kmeans(X[:6], 6, 0), axis=0), np.sort(X[:6], axis=0), rtol=1e-14)


def test_centres_without_points_move_to_the_farthest_points():
    X = np.array([[0.0], [0.0], [0.0], [10.0]])
    seed = next(seed for seed in range(100) if 3 not in first_centres(4, 2, seed))
    assert sorted(kmeans(X, 2, seed, 1)[:, 0]) == [2.5, 10.0]
    assert sorted(kmeans(X, 2, seed, 2)[:, 0]) == [0.0, 10.0]
    X = np.array([[0.0], [0.0], [0.0], [4.0], [10.0]])
    seed = next(seed for seed in range(100) if set(first_centres(5, 3, seed)) == {0, 1, 2})
    assert sorted(kmeans(X, 3, seed, 1)[:, 0]) == pytest.approx([2.8, 4.0, 10.0])
    assert sorted(kmeans(X, 3, seed)[:, 0]) == [0.0, 4.0, 10.0]


# -- greedy selection ----------------------------------------------------------------------------------------------


def greedy_by_conditioning(K, count):
    """Each time the largest of the explicit conditional variances k_xx − k_xc k_cc⁻¹ k_cx."""
    chosen = []
    for _ in range(count):
        known = K[:, chosen] @ np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen])
        variances = np.diag(K - known).copy()
        variances[chosen] = -np.inf
        chosen.append(int(np.argmax(variances)))
    return chosen


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.SquaredExponential(2.0, 0.7),
        kernels.Polynomial(3.0),
        kernels.Linear() * kernels.SquaredExponential() + kernels.Matern12(),
    ],
    ids=["rbf", "polynomial", "combined"],
)
def test_greedy_takes_the_largest_conditional_variance(kernel):
    X = inputs(60, 2, 11)
    K = kernel(X).numpy()
    np.fill_diagonal(K, kernel(X, full_cov=False))  # rounding in k(x, x) would decide which of equal variances is first
    np.testing.assert_array_equal(greedy_variance(X, kernel, 9), X[greedy_by_conditioning(K, 9)])


def test_greedy_takes_every_point_and_refuses_copies():
    X = inputs(8, 2, 12)
    assert {tuple(x) for x in greedy_variance(X, kernels.Matern12(), 8)} == {tuple(x) for x in X}
    X = np.repeat(inputs(3, 2, 13), 4, axis=0)
    assert len(np.unique(greedy_variance(X, kernels.SquaredExponential(), 3), axis=0)) == 3
    with pytest.raises(ValueError, match="X has only 3 points that differ under this kernel, 4 were asked for"):
        greedy_variance(X, kernels.SquaredExponential(), 4)
    with pytest.raises(ValueError, match="only 2 points that differ under this kernel, 3 were asked for"):
        greedy_variance(inputs(10, 2, 14), kernels.Linear(), 3)  # of two coordinates: rank two
    with pytest.raises(ValueError, match="X has only 3 distinct points, 5 were asked for"):
        kmeans(X, 5, 0)


# -- placement -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["kmeans", "greedy"])
def test_points_are_placed_by_their_seed_where_transformed_inputs_lie(method):
    X = inputs(40, 2, 16)
    first, again, other = (place(swap(), X, 7, method=method, seed=seed).Z.numpy() for seed in (0, 0, 1))
    assert first.shape == (7, 2) and len(np.unique(first, axis=0)) == 7
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    if method == "greedy":
        assert {tuple(z) for z in first} <= {tuple(x) for x in np.concatenate([X, X[:, ::-1]])}
    # to f, a point and its mirror image are the same; to g they are two
    Z = place(swap(), np.array([5.0, 0.0]) + 0.01 * inputs(50, 2, 17), 2, method=method).Z.numpy()
    np.testing.assert_allclose(sorted(Z.tolist()), [[0, 5], [5, 0]], atol=0.1)


@pytest.mark.parametrize("method", ["kmeans", "greedy"])
def test_candidates_are_a_random_part_of_the_inputs(method):
    X, kernel = np.arange(100.0)[:, None], Invariant(kernels.SquaredExponential(), Identity())
    chosen = [set(place(kernel, X, 5, method=method, seed=s, candidates=5).Z.numpy().ravel()) for s in (0, 1)]
    assert chosen[0] != chosen[1]
    assert all(len(points) == 5 and max(points) > 20 and points <= set(range(100)) for points in chosen)
