"""PNG and JPEG files: their sizes, read from their heads, and their pixels, decoded by TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from orbitgp import files

PNG_MARK = b"\x89PNG\r\n\x1a\n"
JPEG_MARK = b"\xff\xd8\xff"

#: pixels of one file, at most: far above any image that a Gaussian process is fitted to, and 64 MiB to decode
LARGEST_IMAGE = 2**24

#: markers of a JPEG's frame, which has its size, and those that stand alone, without a length
JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
JPEG_ALONE = {0x01, *range(0xD0, 0xD8)}


def is_image(path: Path) -> bool:
    """Whether a file starts as a PNG or a JPEG does; its name says nothing."""
    with path.open("rb") as file:
        return file.read(len(PNG_MARK)).startswith((PNG_MARK, JPEG_MARK))


def image_size(path: Path) -> tuple[int, int]:
    """Return height and width of a PNG or JPEG, from its head: nothing is unpacked.

    :param path: the file; errors name it.
    """
    with path.open("rb") as file:
        head = file.read(len(PNG_MARK))
        if head == PNG_MARK:
            size = _png_size(file)
        elif head.startswith(JPEG_MARK):
            file.seek(2)
            size = _jpeg_size(file)
        else:
            raise ValueError(f"{path}: expected a PNG or JPEG image, but found something else")
    if size is None or min(size) == 0:
        raise ValueError(f"{path}: a damaged image, as its head does not say its size")
    return size


def _png_size(file: IO[bytes]) -> tuple[int, int] | None:
    """Return height and width of an open PNG after its mark: the chunk IHDR comes first, and has both."""
    chunk = file.read(16)
    if len(chunk) < 16 or chunk[4:8] != b"IHDR":
        return None
    return int.from_bytes(chunk[12:16], "big"), int.from_bytes(chunk[8:12], "big")


def _jpeg_size(file: IO[bytes]) -> tuple[int, int] | None:
    """Return height and width of an open JPEG after its first two bytes: its frame, after other segments, has both."""
    while file.read(1) == b"\xff":
        marker = file.read(1)
        while marker == b"\xff":  # any number of these may stand before a marker
            marker = file.read(1)
        if not marker:
            return None
        if marker[0] in JPEG_ALONE:
            continue
        length = int.from_bytes(file.read(2), "big")
        if marker[0] in JPEG_FRAMES:
            frame = file.read(5)  # the precision, height, width
            return (int.from_bytes(frame[1:3], "big"), int.from_bytes(frame[3:5], "big")) if len(frame) == 5 else None
        if length < 2:
            return None
        file.seek(length - 2, 1)
    return None


def read_image_files(paths: Sequence[Path]) -> npt.NDArray[np.float32]:
    """Decode PNG and JPEG files, all of one size and number of channels.

    The heads of all files are looked at before any is decoded, so that a small file cannot unpack to more than memory
    holds. Transparency is a channel like any other; palettes are resolved; 16-bit PNGs keep their precision.

    :param paths: the files, at least one; errors name the first that is wrong.
    :return: [N, H, W, C] in [0, 1], in the order of ``paths``.
    """
    first = paths[0]
    height, width = image_size(first)
    if height * width > LARGEST_IMAGE:
        raise ValueError(f"{first}: {height} × {width} pixels are more than the {LARGEST_IMAGE:,} that are read")
    for path in paths:
        if (size := image_size(path)) != (height, width):
            raise ValueError(
                f"{path}: expected {height} × {width} pixels, height × width, as {first} has, not {size[0]} × {size[1]}"
            )
    shape = (height, width, _decode(first).shape[2])
    if (total := 4 * len(paths) * shape[0] * shape[1] * shape[2]) > files.LARGEST:
        raise ValueError(
            f"{first.parent}: its {len(paths)} images would take {total:,} bytes, more than the {files.LARGEST:,} that "
            "are read"
        )
    images = np.empty((len(paths), *shape), np.float32)
    for place, path in enumerate(paths):
        pixels = _decode(path)
        if pixels.shape != shape:
            raise ValueError(f"{path}: expected {_channels(shape)}, as {first} has, not {_channels(pixels.shape)}")
        images[place] = pixels
    return images


def _channels(shape: tuple[int, ...]) -> str:
    return f"{shape[2]} channel" + "s" * (shape[2] > 1)


def _decode(path: Path) -> npt.NDArray[np.float32]:
    """:return: [H, W, C] in [0, 1]."""
    import tensorflow as tf  # here, so that whoever has no such files need not load it

    content = path.read_bytes()
    try:
        if content.startswith(PNG_MARK):
            # an 8-bit value v becomes 257 v, and 257 v / 65535 is v / 255 to the last bit
            return tf.io.decode_png(content, dtype=tf.uint16).numpy().astype(np.float32) / np.float32(65535)
        return tf.io.decode_jpeg(content).numpy().astype(np.float32) / np.float32(255)
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(f"{path}: a damaged image, which cannot be decoded") from error
