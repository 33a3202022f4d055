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


@pytest.mark.parametrize("sampler", ["sobol", "iid"])
def test_draws_have_the_mean_and_covariance_of_the_noise(sampler, noise_images):
    X, count = noise_images(1, (3,)), 4000
    drawn = GaussianNoise(3, scale=0.5).sample(np.repeat(X, count, axis=0), 1, 3, [2, 9], sampler).numpy()
    for draw in range(3):
        error = drawn[:, 0, draw] - X
        assert np.all(np.abs(error.mean(axis=0)) < 4 * 0.5 / np.sqrt(count))
        np.testing.assert_allclose(np.cov(error.T), 0.25 * np.eye(3), atol=4 * 0.25 * np.sqrt(2 / count))


def test_the_noise_stays_finite_in_single_precision():
    ends = np.array([2.0**-24, 1 - 2.0**-24], np.float32).reshape(1, 2, 1)
    drawn = GaussianNoise(1, scale=1.0).transform(np.zeros((1, 1), np.float32), ends).numpy().ravel()
    np.testing.assert_allclose(drawn, stats.norm.ppf([2.0**-24, 1 - 2.0**-24]), rtol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "input_dim must be an integer of at least 1, got 0"),
        ((2.5,), "input_dim must be an integer of at least 1, got 2.5"),
        ((2, 0.0), "scale must be more than 0"),
        ((2, -0.1), r"scale must be a finite number in \[0, inf\], got -0.1"),
        ((2, "big"), r"scale must be a finite number in \[0, inf\], got 'big'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        GaussianNoise(*arguments)
