import numpy as np
import pytest
import tensorflow as tf

from orbitgp.orbits import Affine, Composed, FiniteOrbit, Patches

CASES = [((4, 4), 2, 1), ((5, 7), 3, 2), ((6, 4, 3), 2, 3), ((4, 4), 4, 1), ((3, 5, 2), 1, 4)]


def by_loops(image, size, stride):
    """Patches and centres (row, column), in pixels, of one image [H, W, C]."""
    height, width = image.shape[:2]
    corners = [(i, j) for i in range(0, height - size + 1, stride) for j in range(0, width - size + 1, stride)]
    patches = [image[i : i + size, j : j + size].ravel() for i, j in corners]
    return np.array(patches), np.array(corners) + (size - 1) / 2


@pytest.mark.parametrize(("shape", "size", "stride"), CASES)
def test_points_are_the_patches_and_where_they_lie(shape, size, stride, noise_images):
    X, orbit = noise_images(3, shape, np.float32), Patches(shape, size, stride)
    listed, bare = orbit.full(X).numpy(), Patches(shape, size, stride, location=False).full(X).numpy()
    half = (max(shape[:2]) - 1) / 2
    assert isinstance(orbit, FiniteOrbit) and listed.dtype == np.float32
    assert listed.shape[2] == orbit.point_length(X.shape[1])
    for n, image in enumerate(X.reshape(3, *shape[:2], -1)):
        patches, centres = by_loops(image, size, stride)
        assert orbit.order == len(patches)
        np.testing.assert_array_equal(bare[n], patches)
        np.testing.assert_array_equal(listed[n, :, orbit.pixel_columns], patches)
        x, y = (centres[:, 1] - (shape[1] - 1) / 2) / half, (centres[:, 0] - (shape[0] - 1) / 2) / half
        np.testing.assert_allclose(listed[n, :, orbit.place_columns], np.stack([x, y], axis=1), atol=1e-7)
    assert Patches(shape, size, stride, location=False).place_columns is None


def test_gradients_add_up_over_the_patches_that_a_pixel_is_in(noise_images):
    X, orbit = tf.constant(noise_images(2, (5, 6, 2))), Patches((5, 6, 2), 3, 2)
    weights = np.random.default_rng(0).normal(size=orbit.full(X).shape)
    with tf.GradientTape() as tape:
        tape.watch(X)
        value = tf.reduce_sum(weights * orbit.full(X))
    slopes, unit = tape.gradient(value, X).numpy(), np.eye(60)
    still = orbit.full(np.zeros((60, 60)))  # the places
    for n in range(2):
        np.testing.assert_allclose(slopes[n], np.sum(weights[n] * (orbit.full(unit) - still), axis=(1, 2)), rtol=1e-12)


def test_after_another_orbit_each_draw_is_a_patch_of_its_draw(noise_images):
    X, affine, patches = noise_images(2, (6, 6)), Affine((6, 6), spread=0.3), Patches((6, 6), 3, 2)
    orbit = Composed([affine, patches])
    U = np.random.default_rng(1).uniform(size=(2, 5, 7))
    drawn, moved = orbit.transform(X, U), affine.transform(X, U[:, :, :6]).numpy()
    for n, s in np.ndindex(2, 5):
        every = patches.full(moved[n, s : s + 1]).numpy()[0]
        np.testing.assert_array_equal(drawn[n, s], every[int(U[n, s, 6] * patches.order)])
    assert orbit.sample(X, 2, 3, [0, 1]).shape == (2, 2, 3, orbit.point_length(36)) == (2, 2, 3, 11)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"size": 6}, ValueError, "size must be an integer of at least 1 and at most 5, got 6"),
        ({"size": 0}, ValueError, "size must be an integer of at least 1 and at most 5, got 0"),
        ({"size": 2.5}, TypeError, "size must be an integer"),
        ({"size": 2, "stride": 0}, ValueError, "stride must be an integer of at least 1, got 0"),
        ({"size": 2, "shape": (5,)}, ValueError, r"shape must be \(H, W\)"),
    ],
)
def test_patches_that_there_are_not_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        Patches(**{"shape": (5, 8), **settings})


def test_images_of_another_size_are_refused():
    with pytest.raises(ValueError, match="X has 9 columns"):
        Patches((4, 4), 2).full(np.zeros((1, 9)))
