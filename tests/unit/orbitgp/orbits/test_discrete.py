import numpy as np
import pytest

from orbitgp.orbits import Identity, Permutation, RightAngles


def test_the_identity_lists_the_input(noise_images):
    X, orbit = noise_images(3, (4,), np.float32), Identity()
    assert (orbit.order, orbit.num_uniforms) == (1, 1)
    assert np.array_equal(orbit.full(X), X[:, None])
    assert orbit.full(X).dtype == np.float32


def test_permutations_move_coordinates_as_their_tables_say(noise_images):
    tables = np.array([[0, 1, 2, 3, 4], [4, 2, 0, 1, 3], [1, 0, 2, 3, 4]])
    X, orbit = noise_images(3, (5,), np.float32), Permutation(tables)
    listed = orbit.full(X).numpy()
    assert orbit.order == 3 and listed.dtype == np.float32 and listed.shape == (3, 3, 5)
    for n, p, d in np.ndindex(3, 3, 5):
        assert listed[n, p, d] == X[n, tables[p, d]]
    U = np.tile([0.01, 0.33, 0.34, 0.66, 0.67, 0.99], (3, 1))[:, :, None]  # a uniform takes the point of its third
    assert np.array_equal(orbit.transform(X, U), listed[:, [0, 0, 1, 1, 2, 2]])


@pytest.mark.parametrize("shape", [(4, 4), (3, 3, 3)])
def test_right_angles_list_the_quarter_turns_of_numpy(shape, noise_images):
    X, orbit = noise_images(2, shape), RightAngles(shape)
    assert orbit.order == 4
    for turns in range(4):
        expected = np.rot90(X.reshape(2, *shape), turns, axes=(1, 2)).reshape(2, -1)
        assert np.array_equal(orbit.full(X)[:, turns], expected)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([0, 1, 2], r"tables must be integers of shape \[P, D\], got int64 of shape \(3,\)"),
        ([[0.0, 1.0]], r"tables must be integers of shape \[P, D\], got float64 of shape \(1, 2\)"),
        ([[True, False]], "tables must be integers .* got bool"),
        ([[0, 1], [1, 1]], r"tables must be a permutation of 0 … 1; row 1 is \[1 1\]"),
        ([[-1, 0]], r"tables must be a permutation of 0 … 1; row 0 is \[-1  0\]"),
        ([[0, 1], [0]], "tables must have rows of one length"),
        (np.zeros((0, 3), int), "tables must be a permutation of 0 … 2; there are no rows"),
    ],
)
def test_tables_that_are_not_permutations_are_refused(tables, message):
    with pytest.raises(ValueError, match=message):
        Permutation(tables)


def test_right_angles_need_a_square_image():
    with pytest.raises(ValueError, match=r"square.* got shape \(4, 5\)"):
        RightAngles((4, 5))
    with pytest.raises(ValueError, match=r"shape must be \(H, W\) or \(H, W, C\), got \(4,\)"):
        RightAngles((4,))
