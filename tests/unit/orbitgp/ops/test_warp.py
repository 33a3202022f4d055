import numpy as np
import pytest
import tensorflow as tf
from check_shapes.exceptions import ShapeMismatchError

from orbitgp._ops.warp import displace


def displacements(count, draws, height, width, scale, seed=0):
    return np.random.default_rng(seed).normal(0, scale, (2, count, draws, height, width))


@pytest.mark.parametrize(("height", "width", "channels"), [(6, 5, 1), (4, 7, 3), (2, 2, 2)])
@pytest.mark.parametrize("scale", [0.3, 4.0])
def test_agrees_with_plain_loops(height, width, channels, scale, bilinear_by_loops):
    images = np.random.default_rng(1).normal(size=(3, height, width, channels))
    dx, dy = displacements(3, 2, height, width, scale)
    result = displace(images, dx, dy)
    assert result.shape == (3, 2, height, width, channels)
    for n in range(3):
        for s in range(2):
            np.testing.assert_allclose(result[n, s], bilinear_by_loops(images[n], dx[n, s], dy[n, s]), atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_displacement_returns_the_image_bit_by_bit(dtype):
    images = np.random.default_rng(1).lognormal(0, 5, (2, 6, 5, 3)).astype(dtype)
    still = np.zeros((2, 4, 6, 5), dtype)
    assert displace(images, still, still).numpy().tobytes() == np.repeat(images[:, None], 4, axis=1).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("down", "right"), [(1, 0), (0, 2), (-2, 1), (-1, -3)])
def test_whole_pixels_move_exactly_and_bring_in_zeros(dtype, down, right):
    image = np.random.default_rng(1).normal(size=(6, 5)).astype(dtype)
    expected = np.zeros_like(image)
    for i in range(6):
        for j in range(5):
            if 0 <= i + down < 6 and 0 <= j + right < 5:
                expected[i, j] = image[i + down, j + right]
    shown = displace(image[None, :, :, None], np.full((1, 1, 6, 5), right, dtype), np.full((1, 1, 6, 5), down, dtype))
    np.testing.assert_allclose(shown[0, 0, :, :, 0], expected, rtol=0, atol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("distance", [8.0, 1e6, 1e30, -8.0, -1e6, -1e30])
@pytest.mark.parametrize("axis", [0, 1])
def test_far_outside_is_zero(distance, axis):
    images = np.random.default_rng(1).normal(size=(1, 6, 5, 2)).astype(np.float32)
    moves = displacements(1, 3, 6, 5, 0.4).astype(np.float32)
    moves[axis] = distance
    np.testing.assert_allclose(displace(images, *moves), 0, atol=1e-6)


def test_fades_linearly_to_zero_over_one_pixel_beyond_the_edge():
    images, still = np.ones((1, 3, 3, 1)), np.zeros((1, 5, 3, 3))
    steps = np.array([0.0, 0.25, 0.75, 1.0, 1.5])
    dx = np.broadcast_to(steps[None, :, None, None], still.shape)
    shown = displace(images, dx, still)[0, :, :, :, 0].numpy()
    np.testing.assert_allclose(shown[:, 1, 2], [1, 0.75, 0.25, 0, 0], atol=1e-15)
    shown = displace(images, still, -dx)[0, :, :, :, 0].numpy()
    np.testing.assert_allclose(shown[:, 0, 1], [1, 0.75, 0.25, 0, 0], atol=1e-15)


def test_compiled_for_any_batch_gives_the_same_numbers():
    images = np.random.default_rng(1).normal(size=(3, 6, 5, 2))
    dx, dy = displacements(3, 2, 6, 5, 2.0)
    unknown = [tf.TensorSpec([None] * 4, tf.float64)] * 3
    np.testing.assert_allclose(
        tf.function(displace, input_signature=unknown)(images, dx, dy), displace(images, dx, dy), atol=1e-14
    )


@pytest.mark.parametrize("channels", [1, 2])
def test_gradients_of_image_and_displacement(channels, smooth_loss, assert_gradients_match):
    images = tf.Variable(np.random.default_rng(1).normal(size=(2, 4, 3, channels)))
    # all inside: beyond the edge the gradient is zero, which is the next test
    inner = np.random.default_rng(2).uniform(0.1, 0.9, (2, 2, 2, 4, 3))
    toward = np.where(np.arange(3) < 1.5, 1, -1), np.where(np.arange(4) < 1.5, 1, -1)[:, None]
    dx, dy = (tf.Variable(move * sign) for move, sign in zip(inner, toward, strict=True))
    loss = tf.function(lambda: smooth_loss(displace(images, dx, dy)))
    assert_gradients_match(loss, [images, dx, dy])


def test_outside_no_gradient_is_left():
    images, far = tf.Variable(np.ones((1, 4, 3, 1))), tf.Variable(np.full((1, 1, 4, 3), 50.0))
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(displace(images, far, far))
    for gradient in tape.gradient(total, [images, far]):
        np.testing.assert_allclose(tf.convert_to_tensor(gradient), 0, atol=1e-15)


def test_one_draw_s_gradient_does_not_leak_into_another_image():
    images = tf.Variable(np.random.default_rng(1).normal(size=(3, 4, 3, 1)))
    dx, dy = displacements(3, 2, 4, 3, 1.0)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(displace(images, dx, dy)[1])
    gradient = tf.convert_to_tensor(tape.gradient(total, images)).numpy()
    assert np.all(gradient[[0, 2]] == 0) and np.any(gradient[1] != 0)


@pytest.mark.parametrize(
    ("argument", "shape"),
    [("images", (2, 4, 3)), ("dx", (2, 5, 4, 4)), ("dy", (3, 5, 4, 3)), ("dy", (2, 4, 3))],
)
def test_shapes_that_do_not_fit_are_named(argument, shape):
    arguments = {"images": np.zeros((2, 4, 3, 1)), "dx": np.zeros((2, 5, 4, 3)), "dy": np.zeros((2, 5, 4, 3))}
    numbers = ", ".join(map(str, shape))
    with pytest.raises(ShapeMismatchError, match=rf"Argument: {argument}\s+Expected: .*\s+Actual: +\[{numbers}\]"):
        displace(**{**arguments, argument: np.zeros(shape)})
