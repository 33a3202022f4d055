import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbitgp.datasets import ImageData, Images, one_hot


def some_images(count: int = 3, shape: tuple[int, int, int] = (2, 4, 3)) -> Images:
    pixels = np.random.default_rng(0).uniform(size=(count, *shape)).astype(np.float32)
    return Images(pixels, np.arange(count))


def test_inputs_are_row_major() -> None:
    data = some_images()
    X = data.inputs()
    assert X.shape == (3, 24) and X.dtype == np.float64
    for n, i, j, c in np.ndindex(*data.images.shape):
        assert X[n, (i * 4 + j) * 3 + c] == data.images[n, i, j, c]
    assert data.inputs(np.float32).dtype == np.float32
    data.inputs(np.float32)[:] = 7  # of a copy
    assert data.images.max() <= 1


@pytest.mark.parametrize("indices", [[2, 0, 0], (2, 0, 0), np.array([2, 0, 0], np.uint8)])
def test_take_by_count_and_by_index(indices: object) -> None:
    assert np.array_equal(some_images().take(2).labels, [0, 1])
    assert len(some_images().take(np.int64(3))) == 3
    taken = some_images().take(indices)  # type: ignore[arg-type]
    assert np.array_equal(taken.labels, [2, 0, 0])
    assert np.array_equal(taken.images, some_images().images[[2, 0, 0]])


def test_classes_name_the_labels() -> None:
    images = some_images()
    assert ImageData("own", images, images).classes == (0, 1, 2)
    assert ImageData("named", images, images, ("cat", "dog", "owl")).classes == ("cat", "dog", "owl")
    signs = Images(images.images, np.array([-1, 1, -1]))
    assert ImageData("signs", signs, signs).classes == (-1, 1)
    with pytest.raises(ValueError, match="pair: there are 2 classes but a label 2"):
        ImageData("pair", images, images, ("cat", "dog"))


@given(st.lists(st.integers(0, 6), max_size=20))
def test_one_hot_has_its_one_at_the_label(labels: list[int]) -> None:
    targets = one_hot(np.array(labels, np.int64), 7)
    assert targets.shape == (len(labels), 7) and targets.dtype == np.float64
    for row, label in zip(targets, labels, strict=True):
        assert row[label] == 1 and np.count_nonzero(row) == 1
