import numpy as np
import pytest

from orbitgp.orbits import Identity, Permutation, RightAngles

SWAP = [[0, 1], [1, 0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_identity_lists_the_input(dtype, noise_images):
    X, orbit = noise_images(3, (4,), dtype), Identity()
    assert (orbit.order, orbit.num_uniforms) == (1, 1)
    assert np.array_equal(orbit.full(X), X[:, None])
    assert orbit.full(X).dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_permutations_move_coordinates_as_their_tables_say(dtype, noise_images):
    X, tables = noise_images(3, (5,), dtype), np.array([[0, 1, 2, 3, 4], [4, 2, 0, 1, 3], [1, 0, 2, 3, 4]])
    orbit = Permutation(tables)
    listed = orbit.full(X).numpy()
    assert orbit.order == 3 and listed.dtype == dtype and listed.shape == (3, 3, 5)
    for n in range(3):
        for p in range(3):
            for d in range(5):
                assert listed[n, p, d] == X[n, tables[p, d]]


@pytest.mark.parametrize(("u", "point"), [(0.01, 0), (0.33, 0), (0.34, 1), (0.66, 1), (0.67, 2), (0.99, 2)])
def test_a_uniform_takes_the_point_of_its_third(u, point):
    orbit, X = Permutation([[0, 1, 2], [1, 2, 0], [2, 0, 1]]), np.array([[1.0, 2.0, 3.0]])
    assert np.array_equal(orbit.transform(X, np.full((1, 1, 1), u))[:, 0], orbit.full(X)[:, point])


def test_a_swap_done_twice_is_the_identity(noise_images):
    X, orbit = noise_images(4, (2,)), Permutation(SWAP)
    swapped = orbit.full(X)[:, 1]
    assert np.array_equal(swapped, X[:, ::-1])
    assert np.array_equal(orbit.full(swapped)[:, 1], X)


@pytest.mark.parametrize("shape", [(4, 4), (5, 5), (3, 3, 3)])
def test_right_angles_list_the_quarter_turns_of_numpy(shape, noise_images):
    X, orbit = noise_images(2, shape), RightAngles(shape)
    assert orbit.order == 4
    for turns in range(4):
        expected = np.rot90(X.reshape(2, *shape), turns, axes=(1, 2)).reshape(2, -1)
        assert np.array_equal(orbit.full(X)[:, turns], expected)


@pytest.mark.parametrize("shape", [(4, 4), (5, 5, 3)])
def test_quarter_turns_add_up_and_four_are_the_identity(shape, noise_images):
    X, orbit = noise_images(2, shape), RightAngles(shape)
    turned = X
    for turns in range(1, 5):
        turned = orbit.full(turned)[:, 1]
        assert np.array_equal(turned, orbit.full(X)[:, turns % 4])
    assert np.array_equal(turned, X)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([0, 1, 2], r"tables must be integers of shape \[P, D\], got int64 of shape \(3,\)"),
        ([[0.0, 1.0]], r"tables must be integers of shape \[P, D\], got float64 of shape \(1, 2\)"),
        ([[True, False]], r"tables must be integers .* got bool"),
        ([[0, 1], [1, 1]], r"tables must be a permutation of 0 … 1; row 1 is \[1 1\]"),
        ([[0, 2]], r"tables must be a permutation of 0 … 1; row 0 is \[0 2\]"),
        ([[-1, 0]], r"tables must be a permutation of 0 … 1; row 0 is \[-1  0\]"),
        (np.zeros((0, 3), int), r"tables must be a permutation of 0 … 2; there are no rows"),
    ],
)
def test_tables_that_are_not_permutations_are_refused(tables, message):
    with pytest.raises(ValueError, match=message):
        Permutation(tables)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4, 5), r"square.* got shape \(4, 5\)"),
        ((4,), r"shape must be \(H, W\) or \(H, W, C\), got \(4,\)"),
        ((4, 1), r"shape\[1\] must be an integer of at least 2, got 1"),
    ],
)
def test_right_angles_need_a_square_image(shape, message):
    with pytest.raises(ValueError, match=message):
        RightAngles(shape)


def test_inputs_of_another_length_are_refused():
    with pytest.raises(ValueError, match="X has 3 columns, the permutations are of 2 coordinates"):
        Permutation(SWAP).full(np.zeros((1, 3)))
