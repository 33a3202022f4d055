"""The user's own images, as arrays or in an npz file."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from orbitgp import files

Labelled = tuple[npt.NDArray[np.float32], npt.NDArray]  #: pixels [N, H, W, C] and the file's own labels [N]


@contextmanager
def open_npz(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    """Open an npz file after a check of the size that its arrays unpack to; pickled objects are refused.

    :param path: the file; errors name it.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: expected an npz file, as np.savez writes it, but found something else")
    _check_size(path)
    with np.load(path, allow_pickle=False) as archive:
        yield archive


def _check_size(path: Path) -> None:
    try:
        files.check_archive(path)
    except files.DamagedFile as error:
        raise ValueError(str(error)) from error
    except (OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path}: expected an npz file, as np.savez writes it; reading it: {error}") from error


def labelled_images(path: Path, archive: np.lib.npyio.NpzFile, prefix: str = "") -> Labelled:
    """Return the images of an npz file, [N, H, W, C] in [0, 1], and its labels, [N], as they are in the file.

    :param path: what errors call the file.
    :param archive: the file, opened by :func:`open_npz`.
    :param prefix: what stands before ``images`` and ``labels`` in the names of the two arrays.
    """
    pixels = unlabelled_images(path, archive, prefix)
    labels = _labels(_array(path, archive, f"{prefix}labels"), f"{path}: '{prefix}labels'")
    if len(pixels) != len(labels):
        raise ValueError(
            f"{path}: '{prefix}labels' must have one label for each of the {len(pixels)} images in "
            f"'{prefix}images', not {len(labels)}"
        )
    return pixels, labels


def unlabelled_images(path: Path, archive: np.lib.npyio.NpzFile, prefix: str = "") -> npt.NDArray[np.float32]:
    """Return the images of an npz file, [N, H, W, C] in [0, 1]; parameters as for :func:`labelled_images`."""
    return as_pixels(_array(path, archive, f"{prefix}images"), f"{path}: '{prefix}images'")


def npz_shape(path: Path, name: str) -> tuple[int, ...] | None:
    """Return the shape of an array of an npz file, from its head; None if the file has no such array."""
    try:
        with zipfile.ZipFile(path) as archive:
            if f"{name}.npy" not in archive.namelist():
                return None
            with archive.open(f"{name}.npy") as file:
                return files.array_header(file)[0]
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: expected an npz file, as np.savez writes it; reading {name!r}: {error}") from error


def _array(path: Path, archive: np.lib.npyio.NpzFile, name: str) -> np.ndarray:
    if name not in archive:
        raise ValueError(f"{path}: expected an array '{name}', but found only {sorted(archive.files)}")
    try:
        array = archive[name]
    except (ValueError, EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: '{name}' must be a plain array of numbers; reading it: {error}") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path}: '{name}' must be an array, but is a file of another kind")
    return array


def as_pixels(array: np.ndarray, what: str) -> npt.NDArray[np.float32]:
    """
    :param array: [N, H, W] or [N, H, W, C], uint8, or floating in [0, 1].
    :param what: what an error calls it.
    :return: [N, H, W, C] in [0, 1].
    """
    if array.ndim not in (3, 4) or array.size == 0:
        raise ValueError(f"{what} must be [N, H, W] or [N, H, W, C] and not empty, not {list(array.shape)}")
    if array.ndim == 3:
        array = array[..., None]
    if array.dtype == np.uint8:
        return array.astype(np.float32) / np.float32(255)
    if not np.issubdtype(array.dtype, np.floating):
        raise ValueError(f"{what} must be uint8 or floating, not {array.dtype}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{what} must be finite, but hold NaN or infinity")
    if array.min() < 0 or array.max() > 1:
        raise ValueError(
            f"{what} are floating and must lie in [0, 1], but they span [{array.min():g}, {array.max():g}]"
        )
    return array.astype(np.float32)


def _labels(array: np.ndarray, what: str) -> npt.NDArray:
    if array.ndim != 1 or array.dtype.kind not in "iuU":
        raise ValueError(f"{what} must be integers or words [N], not {array.dtype} {list(array.shape)}")
    if array.dtype.kind == "U":
        return array
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{what} must be 64-bit integers, but there is {array.max()}")
    return array.astype(np.int64)
