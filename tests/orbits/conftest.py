"""What the tests of the orbits share: images, references written as plain loops, and finite differences."""

import math

import numpy as np
import pytest
import tensorflow as tf
from scipy.ndimage import gaussian_filter


@pytest.fixture
def noise_images():
    """Rows of uniform noise in (0.1, 1): no two pixels alike, none zero."""

    def make(count, shape, dtype=np.float64, seed=0):
        return np.random.default_rng(seed).uniform(0.1, 1, (count, math.prod(shape))).astype(dtype)

    return make


@pytest.fixture
def smooth_images():
    """Rows of blurred noise, scaled to a standard deviation of one."""

    def make(count, shape, seed=0):
        noise = np.random.default_rng(seed).normal(size=(count, *shape))
        blurred = gaussian_filter(noise, (0, 1, 1) + (0,) * (len(shape) - 2))
        return (blurred / blurred.std()).reshape(count, -1)

    return make


@pytest.fixture
def bilinear_by_loops():
    """The reference for every warp: one image, one displacement in pixels for each pixel, zero outside."""

    def sample(image, dx, dy):
        height, width, channels = image.shape
        result = np.zeros(image.shape)
        for i in range(height):
            for j in range(width):
                row, column = i + dy[i, j], j + dx[i, j]
                for k in (math.floor(row), math.floor(row) + 1):
                    for m in (math.floor(column), math.floor(column) + 1):
                        if 0 <= k < height and 0 <= m < width:
                            weight = (1 - abs(row - k)) * (1 - abs(column - m))
                            for c in range(channels):
                                result[i, j, c] += weight * image[k, m, c]
        return result

    return sample


@pytest.fixture
def affine_by_loops(bilinear_by_loops):
    """One image [H, W, C] under one map [2, 3], in the coordinates that ``ImageOrbit`` documents."""

    def warp(image, matrix):
        height, width, _ = image.shape
        h = (max(height, width) - 1) / 2
        dx, dy = np.zeros((height, width)), np.zeros((height, width))
        for i in range(height):
            for j in range(width):
                x, y = (j - (width - 1) / 2) / h, (i - (height - 1) / 2) / h
                to_x = matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]
                to_y = matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]
                dx[i, j] = h * to_x + (width - 1) / 2 - j
                dy[i, j] = h * to_y + (height - 1) / 2 - i
        return bilinear_by_loops(image, dx, dy)

    return warp


@pytest.fixture
def smooth_loss():
    """A smooth function of an array, with a weight of its own for each entry."""

    def loss(drawn):
        weights = np.random.default_rng(7).normal(size=drawn.shape)
        return tf.reduce_sum(weights * tf.sin(2 * drawn))

    return loss


@pytest.fixture
def assert_gradients_match():
    """Automatic gradients against central differences, one entry of one variable at a time."""

    def check(loss, variables, eps=1e-6, rtol=1e-5):
        assert variables
        with tf.GradientTape() as tape:
            value = loss()
        for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
            assert gradient is not None, f"no gradient reaches {variable.name}"
            start = np.array(variable.numpy())
            measured = np.zeros(start.shape)
            for index in np.ndindex(start.shape):
                ends = []
                for step in (eps, -eps):
                    moved = start.copy()
                    moved[index] += step
                    variable.assign(moved)
                    ends.append(loss().numpy())
                measured[index] = (ends[0] - ends[1]) / (2 * eps)
            variable.assign(start)
            # were one of them zero, the comparison would say nothing about it
            assert np.all(np.abs(measured) > 1e-4), measured
            np.testing.assert_allclose(
                tf.convert_to_tensor(gradient), measured, rtol=rtol, atol=rtol * np.abs(measured).max()
            )

    return check
