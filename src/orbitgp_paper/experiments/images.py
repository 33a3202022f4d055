"""From a configuration's data set to a file of images, and back. Loads no TensorFlow."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np

from orbitgp import files
from orbitgp.datasets import ImageData, Images, enlarged, fashion_mnist, images, mnist, parity, rotated, transformed
from orbitgp.datasets.own_images import count_images, folder_images
from orbitgp_paper import sources
from orbitgp_paper.spec import Augmentation, Dataset, OwnImages, ParityData, RotatedData, TransformedData, canonical

ARRAYS = ("train_images", "train_labels", "test_images", "test_labels", "classes")
MNIST_SHAPE = (28, 28)


def make_dataset(dataset: Dataset) -> ImageData:
    """Makes the images of a data set, or reads them."""
    if isinstance(dataset, OwnImages):
        return images(dataset.path, dataset.test_fraction, dataset.seed, dataset.labels)
    if isinstance(dataset, RotatedData):
        return rotated(dataset.seed, dataset.train, dataset.test)
    fashion = isinstance(dataset, TransformedData) and dataset.source == "fashion_mnist"
    whole = (fashion_mnist if fashion else mnist)(dataset.folder)
    first = ImageData(whole.name, whole.train.take(dataset.train), whole.test.take(dataset.test), whole.classes)
    if isinstance(dataset, ParityData):
        return parity(dataset.alpha, dataset.seed, first)
    if isinstance(dataset, TransformedData):
        data, more = transformed(first, dataset.seed, **_movement(dataset)), dataset.augment
        train = data.train if more is None else enlarged(data.train, more.copies, dataset.seed, **_movement(more))
        return ImageData(data.name, train, data.test, data.classes)
    return first


def dataset_digest(dataset: Dataset) -> str:
    """
    :return: 16 hexadecimal digits that stand for all that decides the images: the settings, the code that makes them,
        and the bytes of the user's own files. (MNIST's files are the same in every folder: their sums are checked.)
    """
    total = hashlib.sha256((canonical(dataset) + sources.digest(__name__)).encode())
    for name, path in _own_files(dataset):
        total.update(name.encode())
        with path.open("rb") as file:
            while part := file.read(2**20):
                total.update(part)
    return total.hexdigest()[:16]


def image_counts(dataset: Dataset) -> tuple[int, int, int]:
    """
    :return: numbers of training images, of test images, and of values in each image. Of one's own files only the heads
        are read.
    """
    if isinstance(dataset, OwnImages):
        return count_images(dataset.path, dataset.test_fraction)
    return dataset.training_images, dataset.test, math.prod(MNIST_SHAPE)


def write_dataset(path: Path, data: ImageData) -> None:
    """
    Writes a data set, with bytes instead of floats where these are exact, so that MNIST stays small.

    :param path: of an .npz.
    """
    arrays = {"classes": np.array(data.classes)}
    for name, part in (("train", data.train), ("test", data.test)):
        arrays[f"{name}_images"], arrays[f"{name}_labels"] = _as_bytes(part.images), part.labels
    files.write_npz(path, arrays, compress=True)


def read_dataset(path: Path) -> ImageData:
    """
    :param path: written by :func:`write_dataset`.
    """
    arrays = files.read_npz(path, ARRAYS)
    try:
        train, test = (
            Images(_as_floats(arrays[f"{name}_images"]), arrays[f"{name}_labels"]) for name in ("train", "test")
        )
        return ImageData(path.stem, train, test, tuple(arrays["classes"].tolist()))
    except (TypeError, ValueError) as error:
        raise files.DamagedFile(f"{path} does not hold a data set: {error}") from error


def _movement(settings: Augmentation | TransformedData) -> dict[str, float]:
    return {name: getattr(settings, name) for name in ("rotation", "scale", "translation")}


def _own_files(dataset: Dataset) -> list[tuple[str, Path]]:
    """All files that the user's own images are in, those of a folder with their names, as these say the class."""
    if not isinstance(dataset, OwnImages):
        return []
    path, labels = Path(dataset.path), [] if dataset.labels is None else [("", Path(dataset.labels))]
    if not path.is_dir():
        return [("", path), *labels]
    return [(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0", file) for file in folder_images(path)]


def _as_bytes(pixels: np.ndarray) -> np.ndarray:
    as_bytes = np.round(pixels * 255).astype(np.uint8)
    return as_bytes if np.array_equal(_as_floats(as_bytes), pixels) else pixels


def _as_floats(pixels: np.ndarray) -> np.ndarray:
    return pixels / np.float32(255) if pixels.dtype == np.uint8 else pixels
