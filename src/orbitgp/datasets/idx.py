"""Files in the idx format, packed by gzip or plain, with or without a known checksum."""

import gzip
import hashlib
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from orbitgp import files

GZIP_MARK = b"\x1f\x8b"
BYTE_TYPE = 0x08  # the idx code of unsigned bytes, the only type read here


@dataclass(frozen=True)
class Expected:
    """What the plain bytes of a file have to be.

    :param size: their number.
    :param sha256: their sum, in hexadecimal.
    """

    size: int
    sha256: str


def read_verified(path: Path, expected: Expected) -> bytes:
    """Return the plain bytes of a file after checking them.

    Whether the file is packed is read from its first bytes, not from its name: a browser may unpack a file
    and keep its name. The sum is that of the plain bytes, because it does not depend on who packed them. At
    most one byte more than expected is ever unpacked, so that a file made to swell cannot fill the memory.

    :param path: the file.
    :param expected: what it has to hold.
    """
    try:
        content = _read_plain(path, expected.size + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(
            f"{path}: it cannot be unpacked ({error}); expected sha256 {expected.sha256} of the plain bytes, "
            f"found {_sum_of_file(path)} of the packed ones"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != expected.sha256:
        trouble = _what_is_wrong(content, expected.size)
        raise ValueError(f"{path}: {trouble}; expected sha256 {expected.sha256}, found {found}")
    return content


def _read_plain(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        packed = file.read(len(GZIP_MARK)) == GZIP_MARK
        file.seek(0)
        return gzip.GzipFile(fileobj=file).read(limit) if packed else file.read(limit)


def _sum_of_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def _what_is_wrong(content: bytes, size: int) -> str:
    if content.lstrip()[:64].lower().startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        return "it looks like an HTML page, perhaps the error page of a server"
    if len(content) > size:
        return f"it is longer than the {size} bytes expected (sum found: of its first {size + 1})"
    if len(content) < size:
        return f"it is too short, {len(content)} bytes where {size} were expected"
    return "its bytes are not the ones expected"


def parse_idx(content: bytes, axes: int, source: str) -> npt.NDArray[np.uint8]:
    """Return the array of unsigned bytes that an idx file holds.

    The format: two zero bytes, the type, the number of axes; the length of each axis as a big-endian 32-bit
    number; the elements, last axis fastest.

    :param content: the plain bytes of the file.
    :param axes: number of axes that the array has to have.
    :param source: what errors call the file.
    """
    mark = bytes([0, 0, BYTE_TYPE, axes])
    if content[:4] != mark:
        raise ValueError(f"{source}: an idx file of bytes starts with {mark.hex()}, not {content[:4].hex()}")
    start = 4 + 4 * axes
    if len(content) < start:
        raise ValueError(f"{source}: the header needs {start} bytes, but there are only {len(content)}")
    shape = tuple(int(length) for length in np.frombuffer(content, ">u4", count=axes, offset=4))
    size = math.prod(shape)  # of Python integers: a header that lies must not overflow
    if len(content) - start != size:
        raise ValueError(f"{source}: the header promises {shape}, {size} elements, but {len(content) - start} follow")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def axes_of_idx(path: Path) -> int | None:
    """Return the number of axes of the array in an idx file of bytes; None if the file is of another format.

    :param path: a file, packed or plain.
    """
    try:
        start = _read_plain(path, 4)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return None
    return start[3] if len(start) == 4 and start[:3] == bytes([0, 0, BYTE_TYPE]) else None


def shape_of_idx(path: Path) -> tuple[int, ...]:
    """Return the lengths that the header of an idx file of bytes promises.

    :param path: a file, packed or plain.
    """
    if (axes := axes_of_idx(path)) is None:
        raise ValueError(f"{path}: expected an idx file of bytes, but found something else")
    header = _read_plain(path, 4 + 4 * axes)
    return tuple(int.from_bytes(header[place : place + 4], "big") for place in range(4, len(header), 4))


def read_idx(path: Path, axes: int) -> npt.NDArray[np.uint8]:
    """Return the array of unsigned bytes in an idx file, packed or plain.

    The header is read first: it must not promise more than :data:`orbitgp.files.LARGEST` bytes, and at most one byte
    more than it promises is ever unpacked.

    :param path: the file; errors name it.
    :param axes: number of axes that the array has to have.
    """
    start = 4 + 4 * axes
    try:
        if (size := math.prod(shape_of_idx(path))) > files.LARGEST:
            raise ValueError(
                f"{path}: its header promises {size:,} bytes, more than the {files.LARGEST:,} that are read"
            )
        content = _read_plain(path, start + size + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: it cannot be unpacked ({error})") from error
    return parse_idx(content, axes, str(path))
