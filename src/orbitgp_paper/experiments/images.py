"""From a configuration's data set to a file of images, and back. Loads no TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orbitgp import checks, files
from orbitgp.datasets import ImageData, Images, images, mnist, parity, rotated

ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


def make_dataset(dataset: Mapping[str, Any]) -> ImageData:
    """
    :param dataset: as in the configuration: ``kind`` and what that kind takes.
    """
    return KINDS[checks.one_of("dataset.kind", dataset["kind"], list(KINDS))](dataset)


def write_dataset(path: Path, data: ImageData) -> None:
    """
    Bytes instead of floats where these are exact, so that MNIST stays small.

    :param path: of an .npz.
    """
    arrays = {}
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
        return ImageData(path.stem, train, test)
    except (TypeError, ValueError) as error:
        raise files.DamagedFile(f"{path} does not hold a data set: {error}") from error


def _mnist(dataset: Mapping[str, Any]) -> ImageData:
    folder = dataset.get("folder")
    return _first(mnist(folder) if folder else mnist(), dataset)


def _first(data: ImageData, dataset: Mapping[str, Any]) -> ImageData:
    return ImageData(data.name, data.train.take(dataset["train"]), data.test.take(dataset["test"]))


KINDS: dict[str, Callable[[Mapping[str, Any]], ImageData]] = {
    "mnist": _mnist,
    "parity": lambda dataset: parity(dataset["alpha"], dataset["seed"], _mnist(dataset)),
    "rotated": lambda dataset: rotated(dataset["seed"], dataset["train"], dataset["test"]),
    "images": lambda dataset: images(dataset["path"], test_fraction=dataset["test_fraction"], seed=dataset["seed"]),
}


def _as_bytes(pixels: np.ndarray) -> np.ndarray:
    as_bytes = np.round(pixels * 255).astype(np.uint8)
    return as_bytes if np.array_equal(_as_floats(as_bytes), pixels) else pixels


def _as_floats(pixels: np.ndarray) -> np.ndarray:
    return pixels / np.float32(255) if pixels.dtype == np.uint8 else pixels
