"""What the tests of the orbits share: images, and references written as plain loops."""

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
