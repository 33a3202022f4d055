"""What a data set is: arrays that have been checked once, when the container was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from orbitgp import checks

SIGNS = (-1, 1)  #: labels of two classes that are their own names


@dataclass(frozen=True, eq=False)
class Images:
    """Images with a label each.

    :param images: [N, H, W, C] float32 in [0, 1], N, H, W and C at least one.
    :param labels: [N] int64.
    """

    images: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        check_pixels("images", self.images)
        _check_array("labels", self.labels, np.int64, "[N]", axes=1)
        if self.images.dtype != np.float32:
            raise ValueError(f"images must be float32, not {self.images.dtype}")
        if len(self.images) != len(self.labels):
            raise ValueError(f"there are {len(self.images)} images but {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and number of channels of each image."""
        _, height, width, channels = self.images.shape
        return height, width, channels

    def inputs(self, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[np.floating]:
        """Return the images as rows of a matrix, [N, H·W·C], in row-major order of (H, W, C).

        :param dtype: floating type of the matrix.
        """
        if not np.issubdtype(dtype, np.floating):
            raise ValueError(f"dtype must be a floating type, not {dtype!r}")
        return self.images.reshape(len(self), -1).astype(dtype)

    def take(self, count_or_indices: int | Sequence[int] | npt.NDArray[np.integer]) -> Images:
        """Return some of the images with their labels.

        :param count_or_indices: a count, for the first so many; or indices in 0 … N − 1, in the order wanted.
        """
        if np.ndim(count_or_indices) == 0:
            count = checks.integer("count", count_or_indices, least=1, most=len(self))
            return Images(self.images[:count], self.labels[:count])
        indices = np.asarray(count_or_indices)
        if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
            raise ValueError(f"indices must be integers [n], not {indices.dtype} {list(indices.shape)}")
        outside = indices[(indices < 0) | (indices >= len(self))]
        if len(outside):
            raise ValueError(f"indices must lie in 0 … {len(self) - 1}, not {outside[0]}")
        return Images(self.images[indices], self.labels[indices])


@dataclass(frozen=True, eq=False)
class ImageData:
    """Images to train on and images to test with, of one shape.

    :param name: what to call the data set in results.
    :param classes: names of the classes: labels 0 … K − 1 stand for ``classes[0]`` … ``classes[K − 1]``. The labels
        −1 and +1 of two classes stand for themselves. Unless given, all labels do.
    """

    name: str
    train: Images
    test: Images
    classes: tuple[int | str, ...] = ()

    def __post_init__(self) -> None:
        if self.train.shape != self.test.shape:
            raise ValueError(f"{self.name}: training images are {self.train.shape} but test images {self.test.shape}")
        labels = np.union1d(self.train.labels, self.test.labels).tolist()
        if not self.classes:
            object.__setattr__(self, "classes", SIGNS if labels[0] < 0 else tuple(range(labels[-1] + 1)))
        if labels[0] >= 0 and labels[-1] >= len(self.classes):
            raise ValueError(f"{self.name}: there are {len(self.classes)} classes but a label {labels[-1]}")


@dataclass(frozen=True, eq=False)
class Points:
    """Inputs and outputs of a regression.

    :param X: [N, D] float64, finite.
    :param Y: [N, 1] float64, finite.
    """

    X: npt.NDArray[np.float64]
    Y: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        _check_array("X", self.X, np.float64, "[N, D]", axes=2)
        _check_array("Y", self.Y, np.float64, "[N, 1]", axes=2)
        if self.Y.shape != (len(self.X), 1):
            raise ValueError(f"Y must be [{len(self.X)}, 1] for this X, not {list(self.Y.shape)}")
        for name, array in (("X", self.X), ("Y", self.Y)):
            if not np.all(np.isfinite(array)):
                raise ValueError(f"{name} must be finite, but holds NaN or infinity")

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, eq=False)
class PointData:
    """Points to train on and points to test with, of one dimension.

    :param name: what to call the data set in results.
    """

    name: str
    train: Points
    test: Points

    def __post_init__(self) -> None:
        train, test = self.train.X.shape[1], self.test.X.shape[1]
        if train != test:
            raise ValueError(f"{self.name}: training inputs have {train} dimensions but test inputs {test}")


def one_hot(labels: npt.ArrayLike, classes: int) -> npt.NDArray[np.float64]:
    """Return a row of zeros with a single one for each label: [N, classes].

    :param labels: [N] integers in 0 … classes − 1.
    :param classes: number of classes, at least one.
    """
    classes = checks.integer("classes", classes, least=1)
    labels = np.asarray(labels)
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be integers [N], not {labels.dtype} {list(labels.shape)}")
    outside = labels[(labels < 0) | (labels >= classes)]
    if len(outside):
        raise ValueError(f"labels must lie in 0 … {classes - 1}, not {outside[0]}")
    targets = np.zeros((len(labels), classes))
    targets[np.arange(len(labels)), labels] = 1.0
    return targets


def check_pixels(name: str, array: object) -> None:
    """Refuse anything but floating images [N, H, W, C] in [0, 1].

    :param name: what the error calls the array.
    :param array: what to look at.
    """
    _check_array(name, array, np.floating, "[N, H, W, C]", axes=4)
    assert isinstance(array, np.ndarray)
    low, high = array.min(), array.max()  # both NaN if there is a single NaN among the pixels
    if not (low >= 0 and high <= 1):
        raise ValueError(f"{name} must lie in [0, 1], but they span [{low:g}, {high:g}]")


def _check_array(name: str, array: object, kind: type[np.generic], shape: str, axes: int) -> None:
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} must be an array {shape}, not {type(array).__name__}")
    if not np.issubdtype(array.dtype, kind):
        raise ValueError(f"{name} must be {kind.__name__}, not {array.dtype}")
    if array.ndim != axes:
        raise ValueError(f"{name} must be {shape}, not {list(array.shape)}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, but is {list(array.shape)}")
