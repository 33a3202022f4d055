import math

import numpy as np
import pytest
import tensorflow as tf
from check_shapes.exceptions import ShapeMismatchError

from orbitgp.orbits import Affine, InterpretableAffine, QuantisedRotation, RightAngles, Rotation
from orbitgp.orbits.image import rotation_matrices, warp_affine

SHAPES = [(6, 5, 1), (4, 6, 3), (5, 5, 2)]


def constant(*values):
    """Uniforms of one image: one draw for each value, the same in its one coordinate."""
    return np.array(values, float).reshape(1, -1, 1)


def turn(degrees):
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[cos, -sin, 0], [sin, cos, 0]])


@pytest.mark.parametrize("shape", SHAPES)
def test_affine_warps_agree_with_plain_loops(shape, noise_images, affine_by_loops):
    X = noise_images(3, shape)
    maps = np.random.default_rng(4).normal([[1, 0, 0], [0, 1, 0]], 0.4, (3, 4, 2, 3))
    warped = warp_affine(Affine(shape), X, maps).numpy()
    for n in range(3):
        for s in range(4):
            expected = affine_by_loops(X[n].reshape(shape), maps[n, s])
            np.testing.assert_allclose(warped[n, s].reshape(shape), expected, atol=1e-13)


@pytest.mark.parametrize("shape", SHAPES)
def test_affine_draws_agree_with_plain_loops(shape, noise_images, affine_by_loops):
    lower, upper = np.random.default_rng(5).normal([1, 0, 0, 0, 1, 0], 0.3, (2, 6))
    X, U = noise_images(2, shape), np.random.default_rng(6).uniform(size=(2, 3, 6))
    drawn = Affine(shape, lower, upper).transform(X, U).numpy()
    for n in range(2):
        for s in range(3):
            matrix = np.reshape([lower[i] + U[n, s, i] * (upper[i] - lower[i]) for i in range(6)], (2, 3))
            expected = affine_by_loops(X[n].reshape(shape), matrix)
            np.testing.assert_allclose(drawn[n, s].reshape(shape), expected, atol=1e-13)


@pytest.mark.parametrize(("entry", "axis"), [("t_x", 1), ("t_y", 0)])
def test_a_shift_of_one_moves_by_half_the_longer_side(entry, axis, noise_images):
    shape = (7, 5)  # h is 3 pixels
    box = np.array(Affine.identity)
    box[Affine.names.index(entry)] = 1.0
    X = noise_images(1, shape)
    drawn = Affine(shape, box, box).transform(X, np.full((1, 1, 6), 0.3)).numpy().reshape(shape)
    image, expected = X.reshape(shape), np.zeros(shape)
    if axis == 1:
        expected[:, :2] = image[:, 3:]
    else:
        expected[:4] = image[3:]
    np.testing.assert_allclose(drawn, expected, atol=1e-13)


@pytest.mark.parametrize(
    ("entry", "slice_"),
    [("a_xx", (slice(None), slice(None, None, -1))), ("a_yy", (slice(None, None, -1), slice(None)))],
)
def test_a_scale_of_minus_one_mirrors_its_own_axis(entry, slice_, noise_images):
    shape, box = (6, 5), np.array(Affine.identity)
    box[Affine.names.index(entry)] = -1.0
    X = noise_images(1, shape)
    drawn = Affine(shape, box, box).transform(X, np.full((1, 1, 6), 0.3)).numpy().reshape(shape)
    np.testing.assert_allclose(drawn, X.reshape(shape)[slice_], atol=1e-13)


@pytest.mark.parametrize(("entry", "row", "column"), [("a_xy", 0, 1), ("a_yx", 1, 0)])
def test_the_off_diagonal_entries_stand_where_their_names_say(entry, row, column):
    box = np.array(Affine.identity)
    box[Affine.names.index(entry)] = 0.7
    matrix = Affine((4, 4), box, box).matrices(np.full((1, 1, 6), 0.3))[0, 0].numpy()
    expected = np.eye(2, 3)
    expected[row, column] = 0.7
    assert np.array_equal(matrix, expected)


@pytest.mark.parametrize("kind", [Affine, InterpretableAffine])
def test_a_box_is_the_same_when_its_ends_change_places(kind):
    count = len(kind.identity)
    lower, upper = np.random.default_rng(1).normal(size=(2, count))
    U = np.random.default_rng(2).uniform(size=(2, 3, count))
    np.testing.assert_allclose(
        kind((4, 4), lower, upper).matrices(U), kind((4, 4), upper, lower).matrices(1 - U), atol=1e-13
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_box_without_width_is_its_point_exactly(dtype):
    point = np.random.default_rng(1).normal(size=6)
    U = np.random.default_rng(2).uniform(size=(5, 20, 6)).astype(dtype)
    matrices = Affine((4, 4), point, point).matrices(U).numpy()
    assert np.array_equal(matrices, np.broadcast_to(point.reshape(2, 3).astype(dtype), matrices.shape))


@pytest.mark.parametrize("kind", [Affine, InterpretableAffine])
def test_boxes_start_around_the_identity(kind):
    orbit = kind((4, 4), spread=0.2)
    np.testing.assert_allclose(orbit.lower, np.array(kind.identity) - 0.2)
    np.testing.assert_allclose(orbit.upper, np.array(kind.identity) + 0.2)
    assert orbit.num_uniforms == len(kind.names) == len(kind.identity)
    mixed = kind((4, 4), upper=np.full(orbit.num_uniforms, 3.0))
    np.testing.assert_allclose(mixed.lower, np.array(kind.identity) - 0.05)
    np.testing.assert_allclose(mixed.upper, 3.0)


@pytest.mark.parametrize("shape", [(5, 5), (6, 6, 3)])
@pytest.mark.parametrize(("u", "turns"), [(1.0, 1), (0.5, 0), (0.0, 3)])
def test_a_quarter_turn_is_that_of_numpy(shape, u, turns, noise_images):
    X = noise_images(2, shape)
    drawn = Rotation(shape, alpha=90.0).transform(X, np.full((2, 1, 1), u))[:, 0]
    expected = np.rot90(X.reshape(2, *shape), turns, axes=(1, 2)).reshape(2, -1)
    np.testing.assert_allclose(drawn, expected, atol=1e-12)


@pytest.mark.parametrize("shape", [(6, 5), (4, 7, 3)])
@pytest.mark.parametrize("u", [0.0, 1.0])
def test_half_a_turn_of_an_oblong_image_is_two_quarter_turns_of_numpy(shape, u, noise_images):
    X = noise_images(2, shape)
    drawn = Rotation(shape, alpha=180.0).transform(X, np.full((2, 1, 1), u))[:, 0]
    expected = np.rot90(X.reshape(2, *shape), 2, axes=(1, 2)).reshape(2, -1)
    np.testing.assert_allclose(drawn, expected, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_rotations_agree_with_plain_loops(shape, noise_images, affine_by_loops):
    X, U = noise_images(2, shape), np.random.default_rng(3).uniform(size=(2, 3, 1))
    drawn = Rotation(shape, alpha=70.0).transform(X, U).numpy()
    for n in range(2):
        for s in range(3):
            expected = affine_by_loops(X[n].reshape(shape), turn(70 * (2 * U[n, s, 0] - 1)))
            np.testing.assert_allclose(drawn[n, s].reshape(shape), expected, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 45.0, 180.0])
def test_any_angle_up_to_half_a_turn_can_be_set_and_assigned(alpha):
    orbit = Rotation((4, 4), alpha=alpha)
    np.testing.assert_allclose(orbit.alpha, alpha, rtol=1e-14)
    orbit.alpha.assign(90.0)
    orbit.alpha.assign(alpha)
    np.testing.assert_allclose(orbit.alpha, alpha, rtol=1e-14)


@pytest.mark.parametrize("alpha", [0.0, 180.0])
def test_learning_can_start_at_either_end(alpha, smooth_images, smooth_loss):
    orbit, X = Rotation((6, 5), alpha=alpha), smooth_images(1, (6, 5))
    with tf.GradientTape() as tape:
        loss = smooth_loss(orbit.transform(X, constant(0.3, 0.8)))
    assert abs(tape.gradient(loss, orbit.trainable_variables)[0]) > 0.1


def test_a_step_through_half_a_turn_comes_back_on_the_inside():
    orbit = Rotation((4, 4), alpha=170.0)
    orbit.alpha.unconstrained_variable.assign_add(math.radians(15))
    np.testing.assert_allclose(orbit.alpha, 175.0, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_interpretable_angle_is_that_of_a_rotation(shape, noise_images):
    X, U = noise_images(2, shape), np.random.default_rng(3).uniform(size=(2, 3, 7))
    lower, upper = (np.array(InterpretableAffine.identity) for _ in range(2))
    lower[0], upper[0] = -70.0, 70.0
    drawn = InterpretableAffine(shape, lower, upper).transform(X, U)
    np.testing.assert_allclose(drawn, Rotation(shape, alpha=70.0).transform(X, U[:, :, :1]), atol=1e-12)


def test_the_interpretable_matrix_is_the_product_of_its_factors():
    lower, upper = np.random.default_rng(1).normal([0, 1, 1, 0, 0, 0, 0], 0.5, (2, 7))
    U = np.random.default_rng(2).uniform(size=(2, 3, 7))
    matrices = InterpretableAffine((4, 4), lower, upper).matrices(U).numpy()
    assert matrices.shape == (2, 3, 2, 3)
    for n in range(2):
        for s in range(3):
            phi = dict(zip(InterpretableAffine.names, lower + U[n, s] * (upper - lower), strict=True))
            angle = math.radians(phi["angle"])
            cos, sin = math.cos(angle), math.sin(angle)
            linear = np.array([[cos, -sin], [sin, cos]])
            linear = linear @ np.diag([phi["scale_x"], phi["scale_y"]])
            linear = linear @ np.array([[1, phi["shear_x"]], [phi["shear_y"], 1]])
            np.testing.assert_allclose(matrices[n, s, :, :2], linear, atol=1e-14)
            np.testing.assert_allclose(matrices[n, s, :, 2], [phi["shift_x"], phi["shift_y"]], atol=1e-14)


def test_a_scale_above_one_shrinks_and_a_shift_to_the_right_moves_to_the_left():
    shape, X = (9, 9), np.zeros((1, 9, 9))
    X[0, 4, 6] = 1.0  # h is 4 pixels; this one is at x = 0.5

    def column_of_the_mass(name, value):
        box = np.array(InterpretableAffine.identity)
        box[InterpretableAffine.names.index(name)] = value
        drawn = InterpretableAffine(shape, box, box).transform(X.reshape(1, -1), np.full((1, 1, 7), 0.3))
        drawn = drawn.numpy().reshape(shape)
        return (drawn.sum(axis=0) @ np.arange(9)) / drawn.sum()

    np.testing.assert_allclose(column_of_the_mass("scale_x", 2.0), 5.0)
    np.testing.assert_allclose(column_of_the_mass("shift_x", 0.25), 5.0)


def test_rotation_matrices_turn_as_numpy_does():
    matrices = rotation_matrices(np.radians([[0.0, 90.0, 33.0]]))[0]
    np.testing.assert_allclose(matrices, [turn(0), turn(90), turn(33)], rtol=0, atol=1e-15)  # cos 90° is 0 or 6e-17


@pytest.mark.parametrize("shape", [(4, 4), (5, 5), (5, 5, 3)])
def test_four_quantised_angles_are_the_right_angles(shape, noise_images):
    X = noise_images(2, shape)
    np.testing.assert_allclose(QuantisedRotation(shape, 4).full(X), RightAngles(shape).full(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", [1, 2, 5])
def test_quantised_angles_agree_with_plain_loops(shape, order, noise_images, affine_by_loops):
    X, orbit = noise_images(2, shape), QuantisedRotation(shape, order)
    listed = orbit.full(X).numpy()
    assert orbit.order == order and listed.shape == (2, order, math.prod(shape))
    for n in range(2):
        for k in range(order):
            expected = affine_by_loops(X[n].reshape(shape), turn(k * 360 / order))
            np.testing.assert_allclose(listed[n, k].reshape(shape), expected, atol=1e-12)


def test_quantised_draws_are_points_of_the_listing(noise_images):
    X, U = noise_images(2, (6, 5)), np.random.default_rng(0).uniform(size=(2, 9, 1))
    orbit = QuantisedRotation((6, 5), 5)
    listed, drawn = orbit.full(X), orbit.transform(X, U)
    for n in range(2):
        for s in range(9):
            np.testing.assert_allclose(drawn[n, s], listed[n, math.floor(5 * U[n, s, 0])], atol=1e-14)


@pytest.mark.parametrize(
    "make",
    [Rotation, Affine, InterpretableAffine, lambda shape: QuantisedRotation(shape, 3)],
    ids=["rotation", "affine", "interpretable affine", "quantised rotation"],
)
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4, 5, 1, 1), r"shape must be \(H, W\) or \(H, W, C\), got \(4, 5, 1, 1\)"),
        (28, r"shape must be \(H, W\) or \(H, W, C\), got 28"),
        ((1, 5), r"shape\[0\] must be an integer of at least 2, got 1"),
        ((4, 5.0), r"shape\[1\] must be an integer of at least 2, got 5.0"),
        ((4, 5, 0), r"shape\[2\] must be an integer of at least 1, got 0"),
    ],
)
def test_bad_shapes_are_named(make, shape, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(shape)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rotation((4, 4), alpha=-1), r"alpha must be a finite number in \[0, 180\], got -1"),
        (lambda: Rotation((4, 4), alpha=180.5), r"alpha must be a finite number in \[0, 180\], got 180.5"),
        (lambda: Rotation((4, 4), alpha=np.nan), r"alpha must be a finite number in \[0, 180\], got nan"),
        (lambda: Rotation((4, 4), alpha="45"), r"alpha must be a finite number in \[0, 180\], got '45'"),
        (lambda: QuantisedRotation((4, 4), 0), "order must be an integer of at least 1, got 0"),
        (lambda: QuantisedRotation((4, 4), 4.0), "order must be an integer of at least 1, got 4.0"),
        (lambda: Affine((4, 4), spread=-0.1), r"spread must be a finite number in \[0, inf\], got -0.1"),
        (lambda: Affine((4, 4), lower=np.zeros(7)), r"lower must have shape \(6,\), got \(7,\)"),
        (lambda: Affine((4, 4), upper=[1, 0, 0, 0, np.inf, 0]), r"upper must be finite, got \[.*inf"),
        (lambda: Affine((4, 4), upper="wide"), "upper must be 6 numbers, got 'wide'"),
        (lambda: InterpretableAffine((4, 4), lower=np.zeros(6)), r"lower must have shape \(7,\), got \(6,\)"),
        (lambda: Affine((4, 4)).matrices(np.zeros((2, 6))), r"Argument: U\s+Expected: .*\s+Actual: +\[2, 6\]"),
        (lambda: rotation_matrices(np.zeros(3)), r"Argument: radians\s+Expected: .*\s+Actual: +\[3\]"),
        (
            lambda: warp_affine(Affine((4, 4)), np.zeros((1, 16)), np.zeros((1, 1, 2, 2))),
            r"Argument: maps\s+Expected: .*\s+Actual: +\[1, 1, 2, 2\]",
        ),
        (
            lambda: warp_affine(Affine((4, 4)), np.zeros((1, 15)), np.zeros((1, 1, 2, 3))),
            r"X has 15 columns, images of shape \(4, 4, 1\) have 16 values",
        ),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises((ValueError, TypeError, ShapeMismatchError), match=message):
        make()


def test_an_angle_outside_the_walls_cannot_be_assigned():
    orbit = Rotation((4, 4))
    for angle in (-1, 181):
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"the wall at [\s\S]*\[{angle}\.\]"):
            orbit.alpha.assign(angle)
    np.testing.assert_allclose(orbit.alpha, 45.0)
