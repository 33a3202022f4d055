"""What several test files share."""

from collections.abc import Callable

import numpy as np
import pytest

from orbitgp.datasets import ImageData, mnist


@pytest.fixture(scope="session")
def mnist_data() -> ImageData:
    """MNIST from the repository, loaded once."""
    return mnist()


@pytest.fixture(scope="session")
def central_differences() -> Callable[..., np.ndarray]:
    """The gradient of a function of an array, by brute force."""

    def gradient(function: Callable[[np.ndarray], float], at: np.ndarray, step: float = 1e-5) -> np.ndarray:
        at = np.array(at, dtype=np.float64)
        slopes = np.zeros_like(at)
        for place in np.ndindex(*at.shape):
            shift = np.zeros_like(at)
            shift[place] = step
            slopes[place] = (float(function(at + shift)) - float(function(at - shift))) / (2 * step)
        return slopes

    return gradient
