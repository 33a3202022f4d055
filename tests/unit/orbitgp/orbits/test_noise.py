import numpy as np
import pytest
from scipy import stats

from orbitgp.orbits import GaussianNoise


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_draws_are_normal_quantiles_of_the_uniforms(dtype, noise_images):
    X = noise_images(2, (4,), dtype)
    U = np.random.default_rng(0).uniform(0.001, 0.999, (2, 3, 4)).astype(dtype)
    drawn = GaussianNoise(4, scale=0.3).transform(X, U).numpy()
    assert drawn.dtype == dtype
    np.testing.assert_allclose(drawn, X[:, None] + 0.3 * stats.norm.ppf(U), rtol=0, atol=50 * np.finfo(dtype).eps)


def test_the_noise_stays_finite_in_single_precision():
    ends = np.array([2.0**-24, 1 - 2.0**-24], np.float32).reshape(1, 2, 1)
    drawn = GaussianNoise(1, scale=1.0).transform(np.zeros((1, 1), np.float32), ends).numpy().ravel()
    np.testing.assert_allclose(drawn, stats.norm.ppf([2.0**-24, 1 - 2.0**-24]), rtol=1e-4)
