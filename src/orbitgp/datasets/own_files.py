"""Images of the user's own, in an npz file, in idx files, or as PNG or JPEG files, alone or in folders."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from orbitgp.datasets.idx import axes_of_idx, read_idx
from orbitgp.datasets.image_files import is_image, read_image_files
from orbitgp.datasets.user_images import Labelled, as_pixels, labelled_images, open_npz, unlabelled_images

AnyPath = str | os.PathLike[str]
Format = Literal["npz", "idx", "image", "folder"]

NAMED = 3  # files that an error names before it counts the others


def read_labelled(path: AnyPath, labels: AnyPath | None = None) -> Labelled:
    """Read images with their labels, from what is found at ``path``.

    - An npz file with ``images`` and ``labels``, as :func:`orbitgp.datasets.images` reads it.
    - An idx file of images, packed by gzip or plain, with another of their labels.
    - A folder with one sub-folder for each class, which holds PNG or JPEG files of one size and number of channels. The
      names of the sub-folders are the labels. Names decide the order; files whose name starts with a dot are skipped.

    :param path: a file or a folder.
    :param labels: the idx file of the labels, for an idx file of images; None for all others.
    :return: images [N, H, W, C] float32 in [0, 1], and labels [N], int64 or words.
    """
    path, found = Path(path), format_of(path)
    if labels is not None and found != "idx":
        raise ValueError(
            f"{path}: a file of labels, {labels}, goes with an idx file of images, but this is {_ARE[found]}"
        )
    if found == "npz":
        with open_npz(path) as archive:
            return labelled_images(path, archive)
    if found == "idx":
        if labels is None:
            raise ValueError(
                f"{path}: expected an idx file of labels beside this idx file of images, but none is given"
            )
        return _idx_pair(path, Path(labels))
    if found == "image":
        raise ValueError(f"{path}: expected images with labels, but this is a single image")
    classes = _classes(path)
    if not classes:
        raise ValueError(f"{path}: expected one sub-folder for each class, but there is none")
    paths = {folder.name: _images_in(folder) for folder in classes}
    names = [name for name, members in paths.items() for _ in members]
    return read_image_files([member for members in paths.values() for member in members]), np.array(names)


def read_images(path: AnyPath) -> npt.NDArray[np.float32]:
    """Read images, from what is found at ``path``; labels are ignored.

    - An npz file with ``images``.
    - An idx file of images, packed by gzip or plain.
    - A folder of PNG or JPEG files of one size and number of channels, or of one sub-folder of these for each class.
    - A single PNG or JPEG file.

    :param path: a file or a folder.
    :return: [N, H, W, C] float32 in [0, 1].
    """
    return read_named_images(path)[0]


def read_named_images(path: AnyPath) -> tuple[npt.NDArray[np.float32], list[str] | None]:
    """Read images as :func:`read_images` does, with their names.

    :param path: a file or a folder.
    :return: images [N, H, W, C], and the name of the file that each is from, such as ``cat/01.png``; None instead of
        names where all are in one npz or idx file.
    """
    path, found = Path(path), format_of(path)
    if found == "npz":
        with open_npz(path) as archive:
            return unlabelled_images(path, archive), None
    if found == "idx":
        return _idx_images(path), None
    if found == "image":
        return read_image_files([path]), [path.name]
    paths = image_paths(path)
    return read_image_files(paths), [member.relative_to(path).as_posix() for member in paths]


#: what errors call the formats
_ARE: dict[Format, str] = {"npz": "an npz file", "idx": "an idx file", "image": "an image", "folder": "a folder"}


def format_of(path: AnyPath) -> Format:
    """Return the format, by content and not by name: a browser may unpack a file and keep its name."""
    path = Path(path)
    if path.is_dir():
        return "folder"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file or folder")
    if is_image(path):
        return "image"
    if axes_of_idx(path) is not None:
        return "idx"
    if zipfile.is_zipfile(path):
        return "npz"
    raise ValueError(
        f"{path}: expected an npz file, an idx file, a PNG or JPEG image, or a folder of such images, but found "
        "something else"
    )


# -- idx -----------------------------------------------------------------------------------------------------------


def _idx_images(path: Path) -> npt.NDArray[np.float32]:
    axes = axes_of_idx(path)
    if axes not in (3, 4):
        raise ValueError(f"{path}: expected images, an idx file with 3 axes (or 4 with channels), but it has {axes}")
    return as_pixels(read_idx(path, axes), str(path))


def _idx_pair(path: Path, labels_path: Path) -> Labelled:
    if not labels_path.is_file():
        raise FileNotFoundError(f"{labels_path}: no such file")
    if (axes := axes_of_idx(labels_path)) != 1:
        found = "found something else" if axes is None else f"it has {axes}"
        raise ValueError(f"{labels_path}: expected labels, an idx file with 1 axis, but {found}")
    labels = read_idx(labels_path, 1).astype(np.int64)  # first, as they are small
    images = _idx_images(path)
    if len(images) != len(labels):
        raise ValueError(f"{labels_path}: expected a label for each of the {len(images)} images, not {len(labels)}")
    return images, labels


# -- folders -------------------------------------------------------------------------------------------------------


def image_paths(path: AnyPath) -> list[Path]:
    """Return the image files of a folder, by class or not, in the order in which they are read; or a single one."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    return [member for folder in _classes(path) or [path] for member in _images_in(folder)]


def members(folder: Path) -> list[Path]:
    """Return what a folder has, by name, without hidden files and folders."""
    return sorted(
        (member for member in folder.iterdir() if not member.name.startswith(".")), key=lambda path: path.name
    )


def _classes(folder: Path) -> list[Path]:
    """Return the sub-folders; where there are some, nothing else may be there."""
    found = members(folder)
    classes = [member for member in found if member.is_dir()]
    if classes and (others := [member for member in found if not member.is_dir()]):
        raise ValueError(f"{folder}: expected nothing beside its sub-folders of images, but found {named(others)}")
    return classes


def _images_in(folder: Path) -> list[Path]:
    found = members(folder)
    if not found:
        raise ValueError(f"{folder}: expected PNG or JPEG images, but it has none")
    if others := [member for member in found if not (member.is_file() and is_image(member))]:
        raise ValueError(f"{folder}: expected PNG or JPEG images only, but found {named(others)}")
    return found


def named(paths: list[Path]) -> str:
    """Return the names of the first few, and how many more there are."""
    names = ", ".join(path.name for path in paths[:NAMED])
    return names if len(paths) <= NAMED else f"{names} and {len(paths) - NAMED} more"
