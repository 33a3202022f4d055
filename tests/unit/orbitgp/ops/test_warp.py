import numpy as np
import pytest
import tensorflow as tf

from orbitgp._ops.warp import displace


def displacements(count, draws, height, width, scale, seed=0):
    return np.random.default_rng(seed).normal(0, scale, (2, count, draws, height, width))


@pytest.mark.parametrize(("shape", "scale"), [((4, 7, 3), 0.3), ((6, 5, 1), 4.0), ((2, 2, 2), 1.0)])
def test_agrees_with_plain_loops(shape, scale, bilinear_by_loops):
    images = np.random.default_rng(1).normal(size=(3, *shape))
    dx, dy = displacements(3, 2, *shape[:2], scale)
    result = displace(images, dx, dy)
    assert result.shape == (3, 2, *shape)
    for n, s in np.ndindex(3, 2):
        np.testing.assert_allclose(result[n, s], bilinear_by_loops(images[n], dx[n, s], dy[n, s]), atol=1e-13)
    unknown = [tf.TensorSpec([None] * 4, tf.float64)] * 3
    traced = tf.function(displace, unknown, autograph=False)
    np.testing.assert_allclose(traced(images, dx, dy), result, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_pixels_move_exactly_and_bring_in_zeros(dtype):
    images = np.random.default_rng(1).lognormal(0, 5, (2, 6, 5, 3)).astype(dtype)
    still = np.zeros((2, 4, 6, 5), dtype)
    assert displace(images, still, still).numpy().tobytes() == np.repeat(images[:, None], 4, axis=1).tobytes()
    image = np.random.default_rng(2).normal(size=(6, 5)).astype(dtype)
    for down, right in ((1, 0), (0, 2), (-2, 1), (-1, -3)):
        expected = np.zeros_like(image)
        for i, j in np.ndindex(6, 5):
            if 0 <= i + down < 6 and 0 <= j + right < 5:
                expected[i, j] = image[i + down, j + right]
        dx, dy = (np.full((1, 1, 6, 5), move, dtype) for move in (right, down))
        shown = displace(image[None, :, :, None], dx, dy)[0, 0, :, :, 0]
        np.testing.assert_allclose(shown, expected, rtol=0, atol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("distance", [8.0, 1e30, -8.0, -1e30])
def test_far_outside_is_zero(distance):
    images = np.random.default_rng(1).normal(size=(1, 6, 5, 2)).astype(np.float32)
    for axis in (0, 1):
        moves = displacements(1, 3, 6, 5, 0.4).astype(np.float32)
        moves[axis] = distance
        np.testing.assert_allclose(displace(images, *moves), 0, atol=1e-6)


def test_gradients_of_image_and_displacement(smooth_loss, assert_gradients_match):
    images = tf.Variable(np.random.default_rng(1).normal(size=(2, 3, 4, 2)))
    # all inside: beyond the edge the gradient is zero, which is the next test
    inner = np.random.default_rng(2).uniform(0.1, 0.9, (2, 2, 1, 3, 4))
    toward = np.where(np.arange(4) < 1.5, 1, -1), np.where(np.arange(3) < 1.5, 1, -1)[:, None]
    dx, dy = (tf.Variable(move * sign) for move, sign in zip(inner, toward, strict=True))
    loss = tf.function(lambda: smooth_loss(displace(images, dx, dy)), autograph=False)
    assert_gradients_match(loss, [images, dx, dy])


def test_no_gradient_is_left_outside_and_none_leaks_into_another_image():
    images, far = (
        tf.Variable(np.random.default_rng(1).normal(size=(3, 4, 3, 1))),
        tf.Variable(np.full((3, 2, 4, 3), 50.0)),
    )
    dx, dy = displacements(3, 2, 4, 3, 1.0)
    with tf.GradientTape(persistent=True) as tape:
        outside = tf.reduce_sum(displace(images, far, far))
        of_one = tf.reduce_sum(displace(images, dx, dy)[1])
    for gradient in tape.gradient(outside, [images, far]):
        np.testing.assert_allclose(tf.convert_to_tensor(gradient), 0, atol=1e-15)
    gradient = tf.convert_to_tensor(tape.gradient(of_one, images)).numpy()
    assert np.all(gradient[[0, 2]] == 0) and np.any(gradient[1] != 0)
