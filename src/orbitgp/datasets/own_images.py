"""The user's own images as a data set: some to train on, some to test with."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from orbitgp import checks
from orbitgp.datasets.containers import ImageData, Images
from orbitgp.datasets.idx import shape_of_idx
from orbitgp.datasets.image_files import image_size
from orbitgp.datasets.own_files import AnyPath, format_of, image_paths, members, named, read_labelled
from orbitgp.datasets.random_streams import stream
from orbitgp.datasets.user_images import Labelled, labelled_images, npz_shape, open_npz

COLOURS = 3  #: channels that an image file is assumed to have before it is decoded


def images(path: AnyPath, test_fraction: float = 0.2, seed: int = 0, labels: AnyPath | None = None) -> ImageData:
    """Load images of any size with their labels.

    They are in an npz file, in idx files, or in a folder with one sub-folder for each class, as
    :func:`orbitgp.datasets.read_labelled` reads them. An npz file holds ``images``, [N, H, W] or [N, H, W, C], either
    uint8 (divided by 255) or floating in [0, 1], and ``labels``, [N] integers or words of at least two classes. If it
    holds ``test_images`` and ``test_labels`` too, these are the test set. A folder may have its sub-folders of classes
    in two folders ``train`` and ``test``; files beside the two are ignored. Otherwise some of the images are set aside
    at random. Pickled objects are never loaded.

    :param path: a file or a folder.
    :param test_fraction: share of the images to set aside, above 0 and below 1; not used if the file has a
        test set.
    :param seed: fixes which images are set aside.
    :param labels: the idx file of the labels, for an idx file of images; None for all others.
    :return: labels 0 … K − 1, in the order of the user's labels, which ``classes`` keeps: those of a file with the
        labels 3 and 7 are 0 and 1.
    """
    fraction = checks.number("test_fraction", test_fraction, least=0, most=1)
    seed = checks.integer("seed", seed, least=0)
    path = Path(path)
    train, own_test = _labelled(path, labels)
    train, test = _split(path, train, fraction, seed) if own_test is None else (train, own_test)
    if train[0].shape[1:] != test[0].shape[1:]:
        raise ValueError(
            f"{path}: test images must be {train[0].shape[1:]} each, (height, width, channels), as the training images "
            f"are, not {test[0].shape[1:]}"
        )
    names = np.unique(train[1])
    if len(names) < 2:
        raise ValueError(
            f"{path}: 'labels' must have at least two classes, but all training labels are {names.tolist()[0]!r}"
        )
    if test[1].dtype.kind != names.dtype.kind or not np.isin(test[1], names).all():
        raise ValueError(f"{path}: every label of the test set must be one of the training labels, {names.tolist()}")
    first, second = (Images(pixels, np.searchsorted(names, labels)) for pixels, labels in (train, test))
    return ImageData(path.stem, first, second, tuple(names.tolist()))


def _labelled(path: Path, labels: AnyPath | None) -> tuple[Labelled, Labelled | None]:
    """Images with labels to train on, or to split; and a test set, if there is one."""
    found = format_of(path)
    if found == "folder" and (parts := _parts(path)):
        train, test = (read_labelled(part, labels) for part in parts)
        return train, test
    train = read_labelled(path, labels)
    if found != "npz":
        return train, None
    with open_npz(path) as archive:
        has_one = "test_images" in archive or "test_labels" in archive
        return train, labelled_images(path, archive, prefix="test_") if has_one else None


def folder_images(folder: Path) -> list[Path]:
    """Return all files that :func:`images` reads of a folder."""
    return [file for part in _parts(folder) or [folder] for file in image_paths(part)]


def _parts(folder: Path) -> tuple[Path, Path] | None:
    """The folders ``train`` and ``test`` of a folder, if they hold folders themselves: they are no classes then."""
    folders = {member.name: member for member in members(folder) if member.is_dir()}
    train, test = folders.pop("train", None), folders.pop("test", None)
    if train is None or test is None or not all(any(map(Path.is_dir, members(part))) for part in (train, test)):
        return None
    if folders:
        raise ValueError(
            f"{folder}: expected no folder beside 'train' and 'test', but found {named([*folders.values()])}"
        )
    return train, test


def _split(path: Path, labelled: Labelled, fraction: float, seed: int) -> tuple[Labelled, Labelled]:
    pixels, labels = labelled
    count = round(fraction * len(pixels))
    if not 0 < count < len(pixels):
        raise ValueError(
            f"{path}: expected enough images to split, but test_fraction {fraction:g} of {len(pixels)} "
            f"leaves {len(pixels) - count} to train and {count} to test"
        )
    order = stream("images/split", seed).permutation(len(pixels))
    train, test = order[count:], order[:count]
    return (pixels[train], labels[train]), (pixels[test], labels[test])


class Counts(NamedTuple):
    """Numbers of images, and of the values in each."""

    train: int
    test: int
    values: int


def count_images(path: AnyPath, test_fraction: float = 0.2) -> Counts:
    """Sizes of what :func:`images` would return, from the headers of files; image files are assumed to be in colour.

    :param path: a file or a folder.
    :param test_fraction: share of the images to set aside, if the file has no test set.
    """
    path, tested = Path(path), None
    if (found := format_of(path)) == "npz":
        shape, own_test = npz_shape(path, "images"), npz_shape(path, "test_images")
        if shape is None:
            raise ValueError(f"{path}: expected an npz file with an array 'images'")
        count, *size = shape
        tested = None if own_test is None else own_test[0]
    elif found == "idx":
        count, *size = shape_of_idx(path)
    else:
        train, test = _parts(path) or (path, None)
        paths = image_paths(train)
        count, size = len(paths), [*image_size(paths[0]), COLOURS]
        tested = None if test is None else len(image_paths(test))
    if tested is None:
        tested = round(test_fraction * count)
        count -= tested
    return Counts(count, tested, math.prod(size))
