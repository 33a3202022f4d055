"""The two-dimensional toy: a smooth function that is symmetric in its two coordinates."""

import numpy as np
import numpy.typing as npt

from orbitgp import checks
from orbitgp.datasets.containers import PointData, Points
from orbitgp.datasets.random_streams import stream

LENGTHSCALE = 0.3  # the square [−1, 1]² then holds about ten hills and valleys
JITTER = 1e-8  # variance added for the factorisation; far below any noise that makes sense here


def square_grid(side: int) -> npt.NDArray[np.float64]:
    """Return a regular grid over [−1, 1]², [side², 2]; the second coordinate runs fastest.

    Values Y at these points are a picture after ``Y.reshape(side, side)``.

    :param side: points along each side, at least two.
    """
    side = checks.integer("side", side, least=2)
    ticks = np.linspace(-1, 1, side)
    return np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)


def symmetric(seed: int, train: int = 60, test: int = 31, noise: float = 0.05) -> PointData:
    """Noisy values of a function with f(x₁, x₂) = f(x₂, x₁), as in the paper's figure 2.

    f is one draw of f(x) = (g(x) + g(sx))/√2, where s switches the coordinates and g is a Gaussian process
    with squared-exponential kernel k of unit variance, so that

        cov(f(x), f(x′)) = k(x, x′) + k(x, sx′).

    The training inputs are uniform over the whole square and few: on either side of the diagonal they leave
    gaps, which only a model that knows the symmetry can fill from the other side.

    :param seed: fixes the function, the inputs and the noise.
    :param train: number of training points.
    :param test: points along each side of the test grid, at least two; see :func:`square_grid`.
    :param noise: standard deviation of the noise on the training outputs, in [0, 1].
    :return: training points with noise; test points, on the grid, without.
    """
    seed = checks.integer("seed", seed, least=0)
    train = checks.integer("train", train, least=1)
    grid = square_grid(checks.integer("test", test, least=2))
    noise = checks.number("noise", noise, least=0, most=1)
    X = stream("symmetric/inputs", seed).uniform(-1, 1, (train, 2))
    F = _draw(np.concatenate([X, grid]), stream("symmetric/function", seed))
    Y = F[:train] + noise * stream("symmetric/noise", seed).standard_normal((train, 1))
    return PointData("symmetric", Points(X, Y), Points(grid, F[train:]))


def _draw(X: npt.NDArray[np.float64], generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """Draw f at X, [N, 2] → [N, 1].

    Of each pair of mirror images only one is drawn and both receive its value: their joint covariance is
    singular, and the jitter that would mend it would break the symmetry.
    """
    half, place = np.unique(np.sort(X, axis=1), axis=0, return_inverse=True)
    K = _squared_exponential(half, half) + _squared_exponential(half, half[:, ::-1])
    L = np.linalg.cholesky(K + JITTER * np.eye(len(half)))
    return (L @ generator.standard_normal((len(half), 1)))[place.reshape(-1)]


def _squared_exponential(A: npt.NDArray[np.float64], B: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return k(a, b) = exp(−|a − b|²/2ℓ²) for all pairs, [N, 2] and [M, 2] → [N, M]."""
    squares = ((A[:, None, :] - B[None, :, :]) ** 2).sum(-1)
    return np.exp(-squares / (2 * LENGTHSCALE**2))
