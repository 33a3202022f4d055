import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbitgp.datasets import move, rotate, rotation


@pytest.fixture(scope="session")
def rotate_by_loops(bilinear_by_loops: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The reference: pixel by pixel, neighbour by neighbour, as the definition reads."""

    def turn(image: np.ndarray, degrees: float) -> np.ndarray:
        height, width, _ = image.shape
        theta = math.radians(degrees)
        dx, dy = np.zeros((height, width)), np.zeros((height, width))
        for i in range(height):
            for j in range(width):
                u, v = i - (height - 1) / 2, j - (width - 1) / 2
                dy[i, j] = u * math.cos(theta) + v * math.sin(theta) - u
                dx[i, j] = v * math.cos(theta) - u * math.sin(theta) - v
        return bilinear_by_loops(image, dx, dy)

    return turn


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(size=shape).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    channels=st.integers(1, 3),
    degrees=st.floats(-720, 720),
    seed=st.integers(0, 2**32 - 1),
)
def test_agrees_with_plain_loops(
    rotate_by_loops: Callable[..., np.ndarray], height: int, width: int, channels: int, degrees: float, seed: int
) -> None:
    image = noise(height, width, channels, seed=seed)
    result = rotate(image[None], [degrees])[0]
    assert result.dtype == np.float32 and result.min() >= 0 and result.max() <= 1
    np.testing.assert_allclose(result, rotate_by_loops(image, degrees), atol=2e-6)


def test_each_image_turns_by_its_own_angle(
    rotate_by_loops: Callable[..., np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    images, degrees = noise(7, 6, 5, 2), np.linspace(-170, 200, 7)
    whole = rotate(images, degrees)
    for image, angle, result in zip(images, degrees, whole, strict=True):
        np.testing.assert_allclose(result, rotate_by_loops(image, angle), atol=2e-6)
    monkeypatch.setattr(rotation, "PIXELS_PER_CHUNK", 70)  # two images and a bit
    assert np.array_equal(rotate(images, degrees), whole)


@pytest.mark.parametrize("turns", [-1, 1, 2, 3, 4])
@pytest.mark.parametrize("size", [1, 5, 8])
def test_right_angles_are_those_of_numpy(turns: int, size: int) -> None:
    images = noise(3, size, size, 2)
    expected = np.rot90(images, turns, axes=(1, 2))
    np.testing.assert_allclose(rotate(images, np.full(3, 90.0 * turns)), expected, atol=1e-6)
    assert np.array_equal(rotate(images.astype(np.float64), np.zeros(3)), images)


def test_rotated_then_enlarged_then_shifted_as_the_definition_reads(bilinear_by_loops) -> None:
    image, degrees, zoom, shift = noise(6, 9, 2), 25.0, 1.3, (0.7, -1.6)
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    dx, dy = np.zeros((6, 9)), np.zeros((6, 9))
    for i in range(6):
        for j in range(9):
            u, v = (i - 2.5 - shift[0]) / zoom, (j - 4 - shift[1]) / zoom
            dy[i, j] = u * cos + v * sin + 2.5 - i
            dx[i, j] = v * cos - u * sin + 4 - j
    moved = move(image[None], [degrees], [zoom], [shift])[0]
    np.testing.assert_allclose(moved, bilinear_by_loops(image, dx, dy), atol=2e-6)
    np.testing.assert_array_equal(move(image[None], [0], [1], [(2, -1)])[0, 2:, :-1], image[:-2, 1:])
    with pytest.raises(ValueError, match="zoom must be above 0, but holds -1"):
        move(image[None], [0.0], [-1.0], [shift])
    with pytest.raises(ValueError, match=r"shift must be \[1, 2\], one for each image"):
        move(image[None], [0.0], [1.0], [0.0])
