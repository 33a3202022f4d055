import numpy as np
import pytest
from sklearn.datasets import load_digits

from orbitgp import InvariantClassifier

#: of a training that takes seconds
SMALL = {"inducing": 30, "batch": 60, "draws": 4, "steps": 60, "verbose": False}


@pytest.fixture(scope="session")
def digits():
    """Images [N, 8, 8] in [0, 1] and labels 0 … 9: those to train on, and those to test with."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).reshape(-1, 8, 8)
    return (images[:600], labels[:600]), (images[600:900], labels[600:900])


@pytest.fixture(scope="session")
def classifier(digits):
    """Of ten digits, by affine maps."""
    return InvariantClassifier("affine", **SMALL).fit(*digits[0])


@pytest.fixture(scope="session")
def bars():
    """Colour images [N, 6, 10, 3] of an upright or a level bar at any place, and which it is."""
    rng = np.random.default_rng(0)
    upright, images = rng.integers(2, size=80), np.zeros((80, 6, 10, 3), np.uint8)
    for image, up in zip(images, upright, strict=True):
        place = rng.integers(1, 5)
        image[slice(None) if up else place, place if up else slice(None)] = rng.integers(128, 255, size=3)
    return images, np.where(upright, "upright", "level")
