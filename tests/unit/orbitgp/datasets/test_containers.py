import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbitgp.datasets import ImageData, Images, PointData, Points, one_hot


def some_images(count: int = 3, shape: tuple[int, int, int] = (2, 4, 3)) -> Images:
    pixels = np.random.default_rng(0).uniform(size=(count, *shape)).astype(np.float32)
    return Images(pixels, np.arange(count))


def some_points(count: int = 4, dimension: int = 2) -> Points:
    return Points(np.zeros((count, dimension)), np.ones((count, 1)))


def test_inputs_are_row_major() -> None:
    data = some_images()
    X = data.inputs()
    assert X.shape == (3, 24) and X.dtype == np.float64
    for n, i, j, c in np.ndindex(*data.images.shape):
        assert X[n, (i * 4 + j) * 3 + c] == data.images[n, i, j, c]
    assert data.inputs(np.float32).dtype == np.float32
    data.inputs(np.float32)[:] = 7  # of a copy
    assert data.images.max() <= 1
    with pytest.raises(ValueError, match="dtype must be a floating type"):
        data.inputs(np.int64)


@pytest.mark.parametrize("indices", [[2, 0, 0], (2, 0, 0), np.array([2, 0, 0], np.uint8)])
def test_take_by_count_and_by_index(indices: object) -> None:
    assert np.array_equal(some_images().take(2).labels, [0, 1])
    assert len(some_images().take(np.int64(3))) == 3
    taken = some_images().take(indices)  # type: ignore[arg-type]
    assert np.array_equal(taken.labels, [2, 0, 0])
    assert np.array_equal(taken.images, some_images().images[[2, 0, 0]])


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (0, "count must be an integer of at least 1 and at most 3"),
        (4, "at most 3"),
        (1.0, "count must be an integer"),
        ([3], "indices must lie in 0 … 2, not 3"),
        ([-1], "indices must lie in 0 … 2, not -1"),
        ([True, False, True], "indices must be integers"),
        ([[0]], r"indices must be integers \[n\], not int64 \[1, 1\]"),
        (np.zeros(0, int), "must not be empty"),
    ],
)
def test_take_refuses(wanted: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        some_images().take(wanted)  # type: ignore[arg-type]


GOOD_PIXELS = np.zeros((2, 3, 3, 1), np.float32)
GOOD_LABELS = np.zeros(2, np.int64)


@pytest.mark.parametrize(
    ("pixels", "labels", "message"),
    [
        ([[0.0]], GOOD_LABELS, "images must be an array .* not list"),
        (GOOD_PIXELS.astype(np.float64), GOOD_LABELS, "images must be float32, not float64"),
        (GOOD_PIXELS.astype(np.uint8), GOOD_LABELS, "images must be floating, not uint8"),
        (GOOD_PIXELS[..., 0], GOOD_LABELS, r"images must be \[N, H, W, C\], not \[2, 3, 3\]"),
        (GOOD_PIXELS[:0], GOOD_LABELS[:0], "images must not be empty"),
        (GOOD_PIXELS + 1.5, GOOD_LABELS, r"images must lie in \[0, 1\], but they span \[1.5, 1.5\]"),
        (GOOD_PIXELS * np.float32("nan"), GOOD_LABELS, r"images must lie in \[0, 1\], but they span \[nan"),
        (GOOD_PIXELS, GOOD_LABELS.astype(np.int32), "labels must be int64, not int32"),
        (GOOD_PIXELS, GOOD_LABELS[:, None], r"labels must be \[N\], not \[2, 1\]"),
        (GOOD_PIXELS, np.zeros(3, np.int64), "2 images but 3 labels"),
    ],
)
def test_images_refuse(pixels: object, labels: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Images(pixels, labels)  # type: ignore[arg-type]


def test_image_data_has_one_shape() -> None:
    assert ImageData("pair", some_images(), some_images(2)).train.shape == (2, 4, 3)
    with pytest.raises(ValueError, match=r"pair: training images are \(2, 4, 3\) but test images \(4, 4, 3\)"):
        ImageData("pair", some_images(), some_images(shape=(4, 4, 3)))


def test_classes_name_the_labels() -> None:
    images = some_images()
    assert ImageData("own", images, images).classes == (0, 1, 2)
    assert ImageData("named", images, images, ("cat", "dog", "owl")).classes == ("cat", "dog", "owl")
    signs = Images(images.images, np.array([-1, 1, -1]))
    assert ImageData("signs", signs, signs).classes == (-1, 1)
    with pytest.raises(ValueError, match="pair: there are 2 classes but a label 2"):
        ImageData("pair", images, images, ("cat", "dog"))


def test_point_data_has_one_dimension() -> None:
    assert len(PointData("pair", some_points(4), some_points(5)).test) == 5
    with pytest.raises(ValueError, match="pair: training inputs have 2 dimensions but test inputs 3"):
        PointData("pair", some_points(), some_points(dimension=3))


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.zeros((2, 2), np.float32), np.zeros((2, 1)), "X must be float64, not float32"),
        (np.zeros(2), np.zeros((2, 1)), r"X must be \[N, D\], not \[2\]"),
        (np.zeros((2, 2)), np.zeros(2), r"Y must be \[N, 1\], not \[2\]"),
        (np.zeros((2, 2)), np.zeros((3, 1)), r"Y must be \[2, 1\] for this X, not \[3, 1\]"),
        (np.full((2, 2), np.inf), np.zeros((2, 1)), "X must be finite"),
        (np.zeros((2, 2)), np.full((2, 1), np.nan), "Y must be finite"),
    ],
)
def test_points_refuse(X: np.ndarray, Y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Points(X, Y)


@given(st.lists(st.integers(0, 6), max_size=20))
def test_one_hot_has_its_one_at_the_label(labels: list[int]) -> None:
    targets = one_hot(np.array(labels, np.int64), 7)
    assert targets.shape == (len(labels), 7) and targets.dtype == np.float64
    for row, label in zip(targets, labels, strict=True):
        assert row[label] == 1 and np.count_nonzero(row) == 1


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        ([0, 3], 3, "labels must lie in 0 … 2, not 3"),
        ([0.0, 1.0], 3, "labels must be integers"),
        ([[0], [1]], 3, "labels must be integers"),
        ([0], 0, "classes must be an integer of at least 1"),
    ],
)
def test_one_hot_refuses(labels: object, classes: int, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        one_hot(labels, classes)  # type: ignore[arg-type]
