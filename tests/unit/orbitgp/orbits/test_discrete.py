import numpy as np
import pytest

from orbitgp.orbits import Permutation, RightAngles


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
