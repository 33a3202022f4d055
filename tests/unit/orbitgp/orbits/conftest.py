"""Images, and references written as plain loops."""

import math

import numpy as np
import pytest
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
    """Rows X [N, D] of images under maps [N, S, 2, 3], in the coordinates that ``ImageOrbit`` documents. [N, S, D]"""

    def warp(shape, X, maps):
        height, width, _ = shape
        h = (max(height, width) - 1) / 2
        i, j = np.indices((height, width))
        x, y = (j - (width - 1) / 2) / h, (i - (height - 1) / 2) / h
        warped = np.zeros((*maps.shape[:2], X.shape[1]))
        for n, s in np.ndindex(*maps.shape[:2]):
            (a, b, c), (d, e, f) = maps[n, s]
            dx, dy = h * (a * x + b * y + c - x), h * (d * x + e * y + f - y)
            warped[n, s] = bilinear_by_loops(X[n].reshape(shape), dx, dy).ravel()
        return warped

    return warp
