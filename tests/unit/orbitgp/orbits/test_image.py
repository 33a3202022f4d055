import math

import numpy as np
import pytest
import tensorflow as tf

from orbitgp.orbits import Affine, InterpretableAffine, QuantisedRotation, RightAngles, Rotation, Scaling, Translation
from orbitgp.orbits.image import rotation_matrices, warp_affine

SHAPES = [(6, 5, 1), (4, 6, 3), (5, 5, 2)]


def turns(degrees):
    """[N, S] → [N, S, 2, 3]"""
    cos, sin, zero = np.cos(np.radians(degrees)), np.sin(np.radians(degrees)), np.zeros_like(degrees)
    return np.stack([np.stack([cos, -sin, zero], -1), np.stack([sin, cos, zero], -1)], -2)


@pytest.mark.parametrize("shape", SHAPES)
def test_affine_draws_agree_with_plain_loops(shape, noise_images, affine_by_loops):
    lower, upper = np.random.default_rng(5).normal([1, 0, 0, 0, 1, 0], 0.4, (2, 6))
    X, U = noise_images(2, shape), np.random.default_rng(6).uniform(size=(2, 4, 6))
    maps = (lower + U * (upper - lower)).reshape(2, 4, 2, 3)
    expected = affine_by_loops(shape, X, maps)
    np.testing.assert_allclose(Affine(shape, lower, upper).transform(X, U), expected, atol=1e-13)
    np.testing.assert_allclose(warp_affine(Affine(shape), X, maps), expected, atol=1e-13)


def test_rotations_agree_with_plain_loops(noise_images, affine_by_loops):
    shape = (4, 6, 3)
    X, U = noise_images(2, shape), np.random.default_rng(3).uniform(size=(2, 3, 1))
    expected = affine_by_loops(shape, X, turns(70 * (2 * U[:, :, 0] - 1)))
    np.testing.assert_allclose(Rotation(shape, alpha=70.0).transform(X, U), expected, atol=1e-12)
    interpretable = InterpretableAffine(shape, [-70, 1, 1, 0, 0, 0, 0], [70, 1, 1, 0, 0, 0, 0])
    np.testing.assert_allclose(interpretable.transform(X, np.tile(U, 7)), expected, atol=1e-12)
    orbit = QuantisedRotation(shape, 5)
    listed = orbit.full(X).numpy()
    assert orbit.order == 5
    expected = affine_by_loops(shape, X, turns(np.tile(np.arange(5) * 72.0, (2, 1))))
    np.testing.assert_allclose(listed, expected, atol=1e-12)
    chosen = np.floor(5 * U).astype(int)
    np.testing.assert_allclose(orbit.transform(X, U), np.take_along_axis(listed, chosen, axis=1), atol=1e-14)


def test_translation_and_scaling_are_affine_maps_with_the_other_numbers_fixed(noise_images):
    shape = (5, 4, 2)
    X, rng = noise_images(2, shape), np.random.default_rng(3)
    U, one, zero = rng.uniform(size=(2, 3, 2)), np.ones((2, 3)), np.zeros((2, 3))
    x, y = -0.4 + 0.8 * U[..., 0], -0.4 + 0.8 * U[..., 1]
    whole = Affine(shape, [0.0] * 6, [1.0] * 6)  # whose uniforms are its numbers
    for orbit, uniforms, numbers in (
        (Translation(shape, spread=0.4), U, [one, zero, x, zero, one, y]),
        (Scaling(shape, spread=0.4), U[..., :1], [1 + x, zero, zero, zero, 1 + x, zero]),
    ):
        expected = whole.transform(X, np.stack(numbers, axis=-1))
        np.testing.assert_allclose(orbit.transform(X, uniforms), expected, atol=1e-12)


def test_quarter_turns_are_those_of_numpy(noise_images):
    X, shape = noise_images(2, (6, 6, 3)), (6, 6, 3)
    right = RightAngles(shape).full(X).numpy()
    drawn = Rotation(shape, alpha=90.0).transform(X, np.tile([[[1.0], [0.5], [0.0]]], (2, 1, 1)))
    np.testing.assert_allclose(drawn, right[:, [1, 0, 3]], atol=1e-12)
    np.testing.assert_allclose(QuantisedRotation(shape, 4).full(X), right, atol=1e-12)
    oblong = noise_images(2, (4, 7))
    drawn = Rotation((4, 7), alpha=180.0).transform(oblong, np.tile([[[1.0], [0.0]]], (2, 1, 1)))
    np.testing.assert_allclose(drawn, np.stack([oblong[:, ::-1]] * 2, axis=1), atol=1e-12)
    matrices = rotation_matrices(np.radians([[0.0, 90.0, 33.0]]))
    np.testing.assert_allclose(matrices, turns(np.array([[0.0, 90.0, 33.0]])), rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", Affine.names)
def test_each_entry_does_what_its_name_says(name, noise_images):
    shape, X = (7, 5), noise_images(1, (7, 5))  # h is 3 pixels
    image = X.reshape(shape)
    expected = {
        "t_x": np.pad(image[:, 3:], ((0, 0), (0, 3))),  # a shift of one moves by half the longer side
        "t_y": np.pad(image[3:], ((0, 3), (0, 0))),
        "a_xx": image[:, ::-1],  # a scale of minus one mirrors its own axis
        "a_yy": image[::-1],
    }
    point = np.where(np.array(Affine.names) == name, 1.0 if name[0] == "t" else -1.0, Affine.identity)
    orbit, U = Affine(shape, point, point), np.full((1, 1, 6), 0.3)
    if name in expected:
        np.testing.assert_allclose(orbit.transform(X, U)[0, 0], expected[name].ravel(), atol=1e-13)
    else:
        assert orbit.matrices(U)[0, 0].numpy()["xy".index(name[2]), "xy".index(name[3])] == -1.0


def test_the_interpretable_matrix_is_the_product_of_its_factors():
    lower, upper = np.random.default_rng(1).normal([20, 1, 1, 0, 0, 0, 0], [30] + [0.5] * 6, (2, 7))
    U = np.random.default_rng(2).uniform(size=(2, 3, 7))
    matrices = InterpretableAffine((4, 4), lower, upper).matrices(U).numpy()
    for n, s in np.ndindex(2, 3):
        phi = dict(zip(InterpretableAffine.names, lower + U[n, s] * (upper - lower), strict=True))
        angle = math.radians(phi["angle"])
        linear = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        linear = linear @ np.diag([phi["scale_x"], phi["scale_y"]])
        linear = linear @ np.array([[1, phi["shear_x"]], [phi["shear_y"], 1]])
        np.testing.assert_allclose(matrices[n, s, :, :2], linear, atol=1e-14)
        np.testing.assert_allclose(matrices[n, s, :, 2], [phi["shift_x"], phi["shift_y"]], atol=1e-14)


@pytest.mark.parametrize("kind", [Affine, InterpretableAffine])
def test_boxes(kind):
    orbit, units = kind((4, 4), spread=0.2), np.array(kind.units)
    assert kind.units[0] == (180 / np.pi if kind is InterpretableAffine else 1.0)  # a spread is in radians
    np.testing.assert_allclose(orbit.lower, np.array(kind.identity) - 0.2 * units)
    np.testing.assert_allclose(orbit.upper, np.array(kind.identity) + 0.2 * units)
    orbit.lower.unconstrained_variable.assign_add(np.full(len(units), 0.1))  # as learning moves them
    np.testing.assert_allclose(orbit.lower, np.array(kind.identity) - 0.1 * units, atol=1e-12)
    count = orbit.num_uniforms
    assert count == len(kind.names) == len(kind.identity)
    mixed = kind((4, 4), upper=np.full(count, 3.0))
    np.testing.assert_allclose(mixed.lower, np.array(kind.identity) - 0.05 * units)
    np.testing.assert_allclose(mixed.upper, 3.0)
    # a box is the same when its ends change places
    lower, upper = np.random.default_rng(1).normal(size=(2, count))
    U = np.random.default_rng(2).uniform(size=(2, 3, count))
    swapped = kind((4, 4), upper, lower).matrices(1 - U)
    np.testing.assert_allclose(kind((4, 4), lower, upper).matrices(U), swapped, atol=1e-13)


def test_behind_a_sigmoid_the_angle_stays_within_its_ends():
    orbit = Rotation((4, 4), alpha=45.0, transform="sigmoid")
    np.testing.assert_allclose(orbit.alpha, 45.0, rtol=1e-12)
    np.testing.assert_allclose(orbit.alpha.unconstrained_variable, math.log(45 / 135), rtol=1e-12)
    orbit.alpha.unconstrained_variable.assign_add(3.0)
    np.testing.assert_allclose(orbit.alpha, 180 / (1 + 3 * math.exp(-3)), rtol=1e-12)
    for end in (0.0, 180.0):
        with pytest.raises(
            ValueError, match=rf"alpha must lie between 0 and 180 with transform=.sigmoid., got {end:g}"
        ):
            Rotation((4, 4), alpha=end, transform="sigmoid")


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 45.0, 180.0])
def test_learning_can_start_at_any_angle(alpha, smooth_images, smooth_loss):
    orbit, X = Rotation((6, 5), alpha=alpha), smooth_images(1, (6, 5))
    np.testing.assert_allclose(orbit.alpha, alpha, rtol=1e-14)
    with tf.GradientTape() as tape:
        loss = smooth_loss(orbit.transform(X, np.array([[[0.3], [0.8]]])))
    assert abs(tape.gradient(loss, orbit.trainable_variables)[0]) > 0.1
    orbit.alpha.assign(170.0)
    orbit.alpha.unconstrained_variable.assign_add(math.radians(15))  # a step through half a turn comes back
    np.testing.assert_allclose(orbit.alpha, 175.0, rtol=1e-12)
    for angle in (-1, 181):
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"the wall at [\s\S]*\[{angle}\.\]"):
            orbit.alpha.assign(angle)
