"""What several test files share."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from orbitgp.datasets import ImageData, Images, mnist
from orbitgp_paper.spec import RunSpec

pytest_plugins = ["workspaces"]  # tests/workspaces.py: Snakemake in copies of the repository

# how long an example takes says nothing here: machines are shared, and the first one loads TensorFlow
# derandomised: a failure comes again
settings.register_profile("patient", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


#: files in the order in which they begin, the longest first so that both workers end together; trainings that are timed
#: not beside a Slurm that is full of them
ORDER = (
    "faults/test_trainings",
    "slurm/test_faults_on_slurm",
    "faults/",
    "slurm/",
    "workflow/",
    "browser/",
    "estimators/",
    "trainings/",
    "repository/",
)
ORDER += ("orbitgp/test_models", "runs/test_train", "test_steps", "test_figures", "unit/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, the unit tests last."""
    items.sort(key=lambda item: next(i for i, name in enumerate(ORDER) if name in item.path.as_posix()))


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


@pytest.fixture(scope="session")
def assert_gradients_match(central_differences: Callable[..., np.ndarray]) -> Callable[..., None]:
    """Automatic gradients against central differences, one entry of one variable at a time."""
    import tensorflow as tf  # here, so that tests of figures and data need not load it

    def check(loss: Callable[[], tf.Tensor], variables: Any, step: float = 1e-6, rtol: float = 1e-5) -> None:
        assert variables
        with tf.GradientTape() as tape:
            value = loss()
        for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
            assert gradient is not None, f"no gradient reaches {variable.name}"
            start = variable.numpy()

            def at(value: np.ndarray, variable: tf.Variable = variable) -> float:
                variable.assign(value)
                return float(loss())

            measured = central_differences(at, start, step)
            variable.assign(start)
            # were one of them zero, the comparison would say nothing about it
            assert np.all(np.abs(measured) > 1e-4), measured
            np.testing.assert_allclose(
                tf.convert_to_tensor(gradient), measured, rtol=rtol, atol=rtol * np.abs(measured).max()
            )

    return check


@pytest.fixture
def eagerly():
    """Runs tf.functions step by step: for a few steps, tracing would take longer."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="session")
def bilinear_by_loops() -> Callable[..., np.ndarray]:
    """The reference for every warp: one image, one displacement in pixels for each pixel, zero outside."""

    def sample(image: np.ndarray, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
        height, width, channels = image.shape
        result = np.zeros(image.shape)
        for i in range(height):
            for j in range(width):
                row, column = i + dy[i, j], j + dx[i, j]
                for k in (math.floor(row), math.floor(row) + 1):
                    for m in (math.floor(column), math.floor(column) + 1):
                        if 0 <= k < height and 0 <= m < width:
                            weight = (1 - abs(row - k)) * (1 - abs(column - m))
                            for c in range(channels):
                                result[i, j, c] += weight * image[k, m, c]
        return result

    return sample


@pytest.fixture(scope="session")
def small_images() -> ImageData:
    """Three classes of 8 × 8 images, told apart by the row of a bar, with noise: learned within a few steps."""

    def make(count: int, seed: int) -> Images:
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 3, count)
        pixels = 0.25 * rng.uniform(size=(count, 8, 8, 1))
        for image, label in zip(pixels, labels, strict=True):
            image[2 + label, 1:7] += 0.7
        return Images(pixels.astype(np.float32), labels.astype(np.int64))

    return ImageData("small", make(60, 0), make(30, 1))


@pytest.fixture(scope="session")
def small_signs(small_images: ImageData) -> ImageData:
    """The same images with labels −1 and +1."""
    train, test = (
        Images(part.images, np.where(part.labels == 1, 1, -1)) for part in (small_images.train, small_images.test)
    )
    return ImageData("signs", train, test)


@pytest.fixture(scope="session")
def small_spec() -> Callable[..., RunSpec]:
    """What a run on them depends on, with changes to its blocks: ``small_spec(kernel={"variance": 2.0})``."""
    spec = RunSpec.model_validate(
        {
            "experiment": "small",
            "variant": "rotation",
            "label": "from 30°",
            "seed": 3,
            "dataset": {"name": "small", "kind": "images", "path": "small.npz", "test_fraction": 0.3},
            "orbit": {"kind": "rotation", "alpha": 30.0},
            "likelihood": {"kind": "gaussian", "variance": 0.1},
            "kernel": {"variance": 1.0, "lengthscale": 2.0},
            "inducing": {"count": 8},
            "scheme": {"kind": "groups", "groups": 2, "size": 2},
            "compile": False,
            "optimiser": {
                "kind": "natural",
                "steps": 8,
                "batch": 30,
                "rates": {"inducing": 0.01, "kernel": 0.01, "likelihood": 0.01, "orbit": 0.01},
                "natural": {"first": 0.5, "last": 0.1},
                "warmup": 0.1,
                "floor": 0.1,
            },
            "final_pass": {"samples": 8},
            "evaluation": {"count": 4, "samples": 4},
        }
    )
    return spec.changed
