"""From a configuration's data set to a file of images, and back. Loads no TensorFlow."""

from __future__ import annotations

import hashlib
import math
import zipfile
from pathlib import Path

import numpy as np

from orbitgp import files
from orbitgp.datasets import ImageData, Images, images, mnist, parity, rotated
from orbitgp_paper import sources
from orbitgp_paper.spec import Dataset, OwnImages, ParityData, RotatedData, canonical

ARRAYS = ("train_images", "train_labels", "test_images", "test_labels", "classes")
MNIST_SHAPE = (28, 28)


def make_dataset(dataset: Dataset) -> ImageData:
    """Makes the images of a data set, or reads them."""
    if isinstance(dataset, OwnImages):
        return images(dataset.path, dataset.test_fraction, dataset.seed)
    if isinstance(dataset, RotatedData):
        return rotated(dataset.seed, dataset.train, dataset.test)
    whole = mnist(dataset.folder)
    first = ImageData(whole.name, whole.train.take(dataset.train), whole.test.take(dataset.test), whole.classes)
    return parity(dataset.alpha, dataset.seed, first) if isinstance(dataset, ParityData) else first


def dataset_digest(dataset: Dataset) -> str:
    """
    :return: 16 hexadecimal digits that stand for all that decides the images: the settings, the code that makes them,
        and the bytes of the user's own file. (MNIST's files are the same in every folder: their sums are checked.)
    """
    total = hashlib.sha256((canonical(dataset) + sources.digest(__name__)).encode())
    if isinstance(dataset, OwnImages):
        with open(dataset.path, "rb") as file:
            while part := file.read(2**20):
                total.update(part)
    return total.hexdigest()[:16]


def image_counts(dataset: Dataset) -> tuple[int, int, int]:
    """
    :return: numbers of training images, of test images, and of values in each image. Of one's own file only the heads
        of its arrays are read.
    """
    if not isinstance(dataset, OwnImages):
        return dataset.train, dataset.test, math.prod(MNIST_SHAPE)
    try:
        with zipfile.ZipFile(dataset.path) as archive:
            count, *shape = _shape(archive, "images")
            if "test_images.npy" in archive.namelist():
                return count, _shape(archive, "test_images")[0], math.prod(shape)
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{dataset.path}: expected an npz file with 'images': {error}") from error
    test = round(dataset.test_fraction * count)
    return count - test, test, math.prod(shape)


def write_dataset(path: Path, data: ImageData) -> None:
    """
    Bytes instead of floats where these are exact, so that MNIST stays small.

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


def _shape(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    """Shape of an array in a .npz, from its head."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with archive.open(f"{name}.npy") as file:
        return readers[np.lib.format.read_magic(file)](file)[0]


def _as_bytes(pixels: np.ndarray) -> np.ndarray:
    as_bytes = np.round(pixels * 255).astype(np.uint8)
    return as_bytes if np.array_equal(_as_floats(as_bytes), pixels) else pixels


def _as_floats(pixels: np.ndarray) -> np.ndarray:
    return pixels / np.float32(255) if pixels.dtype == np.uint8 else pixels
