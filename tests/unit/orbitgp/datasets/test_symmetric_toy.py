import hashlib
import subprocess
import sys

import numpy as np
import pytest

from orbitgp.datasets import PointData, square_grid, symmetric
from orbitgp.datasets.symmetric_toy import LENGTHSCALE


def digest(data: PointData) -> str:
    arrays = (data.train.X, data.train.Y, data.test.X, data.test.Y)
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


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


def test_grid_is_regular_and_row_major() -> None:
    grid = square_grid(3)
    assert grid.tolist() == [[a, b] for a in (-1, 0, 1) for b in (-1, 0, 1)]


def test_sizes_and_places() -> None:
    data = symmetric(0, train=20, test=7, noise=0.1)
    assert data.name == "symmetric"
    assert data.train.X.shape == (20, 2) and data.train.Y.shape == (20, 1)
    assert np.array_equal(data.test.X, square_grid(7))
    assert np.abs(data.train.X).max() <= 1


@pytest.mark.parametrize("seed", range(3))
def test_the_function_is_symmetric(seed: int) -> None:
    picture = symmetric(seed, test=12).test.Y.reshape(12, 12)
    assert np.array_equal(picture, picture.T)
    assert picture.std() > 0.1


def test_the_function_is_smooth() -> None:
    fine = symmetric(0, test=41).test.Y.reshape(41, 41)
    assert np.abs(np.diff(fine, axis=0)).max() < 0.5 * np.ptp(fine)
    assert np.abs(np.diff(fine, n=3, axis=0)).max() < 0.05 * np.ptp(fine)


def test_covariance_over_many_draws() -> None:
    draws = np.stack([symmetric(seed, train=1, test=2).test.Y[:, 0] for seed in range(4000)])
    expected = invariant_kernel(square_grid(2), square_grid(2))
    # An entry's standard error is at most √(2·2²/4000) ≈ 0.045; four of them.
    np.testing.assert_allclose(draws.T @ draws / len(draws), expected, atol=0.18)


def test_noise_has_the_size_asked_for() -> None:
    clean, noisy = (symmetric(1, train=2000, test=2, noise=noise) for noise in (0.0, 0.3))
    assert np.array_equal(clean.test.Y, noisy.test.Y)
    assert np.std(noisy.train.Y - clean.train.Y) == pytest.approx(0.3, rel=0.1)


def test_training_points_lie_on_both_sides() -> None:
    for seed in range(5):
        X = symmetric(seed).train.X
        assert 10 < np.sum(X[:, 0] > X[:, 1]) < 50


@pytest.mark.parametrize("seed", range(3))
def test_shows_what_the_paper_shows(seed: int) -> None:
    """The plain model fits better, the invariant one generalises better and has the higher evidence."""
    data = symmetric(seed, test=16)
    plain, invariant = (regression(kernel, data, 0.05) for kernel in (plain_kernel, invariant_kernel))
    assert invariant[0] > plain[0] + 5
    assert plain[1] < invariant[1]
    assert invariant[2] < plain[2]


def test_the_same_bits_in_another_process() -> None:
    code = (
        "import hashlib, sys; from orbitgp.datasets import symmetric; d = symmetric(5, 12, 6);"
        "sys.stdout.write(hashlib.sha256(b''.join(a.tobytes() for a in"
        " (d.train.X, d.train.Y, d.test.X, d.test.Y))).hexdigest())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout == digest(symmetric(5, 12, 6)) == digest(symmetric(5, 12, 6))
    assert digest(symmetric(6, 12, 6)) != other.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed must be an integer"),
        ({"seed": True}, "seed must be an integer"),
        ({"train": 0}, "train must be an integer of at least 1"),
        ({"train": 3.0}, "train must be an integer"),
        ({"test": 1}, "test must be an integer of at least 2"),
        ({"noise": -0.1}, "noise must be"),
        ({"noise": float("nan")}, "noise must be"),
        ({"noise": 2}, "noise must be"),
        ({"noise": "0.1"}, "noise must be"),
    ],
)
def test_refuses(arguments: dict[str, object], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        symmetric(**{"seed": 0, **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize("side", [1, 0, 2.0, True])
def test_grid_refuses(side: int) -> None:
    with pytest.raises((ValueError, TypeError), match="side must be an integer of at least 2"):
        square_grid(side)
