from types import SimpleNamespace

import numpy as np
import pytest

from orbitgp.datasets import PointData, square_grid, symmetric
from orbitgp.datasets.symmetric_toy import LENGTHSCALE, _draw


def plain_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.array([[np.exp(-((a - b) @ (a - b)) / (2 * LENGTHSCALE**2)) for b in B] for a in A])


def invariant_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return plain_kernel(A, B) + plain_kernel(A, B[:, ::-1])


def regression(kernel, data: PointData, noise: float) -> tuple[float, float, float]:  # type: ignore[no-untyped-def]
    """Return log marginal likelihood, training and test RMSE of an exact Gaussian process."""
    X, Y = data.train.X, data.train.Y
    K = kernel(X, X)
    L = np.linalg.cholesky(K + noise**2 * np.eye(len(X)))
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, Y))
    evidence = -0.5 * float(Y[:, 0] @ alpha[:, 0]) - np.log(np.diag(L)).sum() - len(X) / 2 * np.log(2 * np.pi)
    train = np.sqrt(np.mean((K @ alpha - Y) ** 2))
    test = np.sqrt(np.mean((kernel(data.test.X, X) @ alpha - data.test.Y) ** 2))
    return evidence, float(train), float(test)


@pytest.mark.parametrize("seed", range(2))
def test_the_function_is_symmetric_and_smooth_and_fixed_by_its_seed(seed: int) -> None:
    data = symmetric(seed, train=20, test=21, noise=0.1)
    assert square_grid(3).tolist() == [[a, b] for a in (-1, 0, 1) for b in (-1, 0, 1)]
    assert np.array_equal(data.test.X, square_grid(21))
    assert data.train.X.shape == (20, 2) and data.train.Y.shape == (20, 1)
    assert 0.5 < np.abs(data.train.X).max() <= 1
    picture = data.test.Y.reshape(21, 21)
    assert np.array_equal(picture, picture.T)
    assert picture.std() > 0.1
    assert np.abs(np.diff(picture, n=3, axis=0)).max() < 0.2 * np.ptp(picture)
    for part in ("train", "test"):
        mine, again = getattr(data, part), getattr(symmetric(seed, 20, 21, 0.1), part)
        assert np.array_equal(mine.X, again.X) and np.array_equal(mine.Y, again.Y)
    assert not np.array_equal(data.test.Y, symmetric(seed + 1, 20, 21, 0.1).test.Y)


def test_the_covariance_of_the_function_is_that_of_the_invariant_kernel() -> None:
    """f = A ε with standard normal ε: ε one axis after the other gives A, and A Aᵀ is the covariance."""
    X = np.concatenate([square_grid(3), [[0.3, -0.2]]])
    axes = np.eye(7)  # of the six points on or above the diagonal of the grid, and one more
    A = np.stack([_draw(X, SimpleNamespace(standard_normal=lambda size, e=e: e[:, None]))[:, 0] for e in axes], axis=1)
    np.testing.assert_allclose(A @ A.T, invariant_kernel(X, X), atol=1e-6)


def test_noise_has_the_size_asked_for() -> None:
    clean, noisy = (symmetric(1, train=400, test=2, noise=noise) for noise in (0.0, 0.3))
    assert np.array_equal(clean.test.Y, noisy.test.Y)
    assert np.std(noisy.train.Y - clean.train.Y) == pytest.approx(0.3, rel=0.1)


@pytest.mark.parametrize("seed", range(2))
def test_shows_what_the_paper_shows(seed: int) -> None:
    """The plain model fits better, the invariant one generalises better and has the higher evidence."""
    data = symmetric(seed, test=12)
    plain, invariant = (regression(kernel, data, 0.05) for kernel in (plain_kernel, invariant_kernel))
    assert invariant[0] > plain[0] + 5
    assert plain[1] < invariant[1]
    assert invariant[2] < plain[2]
