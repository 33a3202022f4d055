"""What several test files share."""

import pytest

from orbitgp.datasets import ImageData, mnist


@pytest.fixture(scope="session")
def mnist_data() -> ImageData:
    """MNIST from the repository, loaded once."""
    return mnist()
