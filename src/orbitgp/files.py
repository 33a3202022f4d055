"""Files that are written whole or not at all, and read with errors that name them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import secrets
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

PART = ".part"  # the ending of a file that is not whole yet; its name begins with a dot
LARGEST = 4 * 2**30  # bytes that the arrays of one file may have: far above any data set or model here


class DamagedFile(Exception):
    """A file is not what its name says; the message names it and what is wrong with it."""


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """
    Writes a temporary file beside ``path``, syncs it to the disk and renames it: whoever reads ``path`` finds the old
    file or the new one, and a full disk or a kill leaves the old one.

    :param write: fills the open file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PART}")
    try:
        # not tempfile, whose files are private: the kernel gives the usual mode
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, f"cannot write {path}: {error.strerror}") from error
        raise


def _sync_folder(folder: Path) -> None:
    """Brings the names in a folder to the disk: without it, a power cut may undo a rename."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Writes text as UTF-8, line ends as they are."""
    write_whole(path, lambda file: file.write(text.encode()))


def write_json(path: Path, content: Any) -> None:
    """Writes JSON as :func:`json_text` makes it."""
    write_text(path, json_text(content))


def json_text(content: Any) -> str:
    """Returns indented JSON. NaN and infinity are refused: they are no JSON, and most readers stumble over them."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes CSV as :func:`csv_text` makes it."""
    write_text(path, csv_text(header, rows))


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns CSV with numbers in their shortest exact form, so that the same numbers are the same bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def write_npz(path: Path, arrays: Mapping[str, np.ndarray], *, compress: bool = False) -> None:
    """Writes NumPy arrays by name; the same arrays are the same bytes."""
    save = np.savez_compressed if compress else np.savez
    write_whole(path, lambda file: save(file, **arrays))


def read_json(path: Path) -> Any:
    """
    :return: what ``path`` holds.
    """

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no number of JSON")

    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{path} is not whole JSON: {error}") from error


def read_npz(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """
    Reads arrays, without any pickles. Their checksums, which the archive has, are checked.

    :param names: arrays that must be there; None for all there are.
    """
    try:
        check_archive(path)
        with np.load(path, allow_pickle=False) as archive:
            if names is not None and (missing := sorted(set(names) - set(archive.files))):
                raise DamagedFile(f"{path} lacks the arrays {', '.join(missing)}; it has {', '.join(archive.files)}")
            return {name: archive[name] for name in (archive.files if names is None else names)}
    except FileNotFoundError:
        raise
    except (OSError, ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFile(f"{path} is not a whole .npz of plain arrays: {error}") from error


def check_archive(path: Path) -> None:
    """
    Checks the sizes that a .npz promises: a small file can promise, or really unpack to, more than any memory holds.
    Unpacks nothing but the headers of its arrays, so it does not see whether the arrays are whole.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len({member.filename for member in members}) < len(members):
            raise DamagedFile(f"{path} has two arrays of one name")
        if (total := sum(member.file_size for member in members)) > LARGEST:
            raise DamagedFile(f"{path} would unpack to {total:,} bytes, more than the {LARGEST:,} that are read")
        for member in members:
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise DamagedFile(f"{path} is compressed in a way that NumPy does not use")
            promised, held = _size_of_array(archive, member)
            if promised != held:
                raise DamagedFile(f"{path}: {member.filename} promises {promised:,} bytes and holds {held:,}")


def array_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """
    Shape and type of an array, from the head of its .npy file; KeyError for a version of the format that NumPy uses for
    nothing but names of fields.
    """
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, dtype = readers[np.lib.format.read_magic(file)](file)
    return shape, dtype


def _size_of_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[int, int]:
    """
    :return: bytes of the array by its own header, and by the archive's; (0, 0) for anything but a plain array, which
        NumPy does not read.
    """
    with archive.open(member) as file:
        try:
            shape, dtype = array_header(file)
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            return 0, 0
        if dtype.hasobject:
            return 0, 0
        return math.prod(shape) * dtype.itemsize, member.file_size - file.tell()


def sums(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """
    :return: the sha256 of each file, in hexadecimal digits.
    """
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def check_sums(folder: Path, wanted: Any, source: Path) -> None:
    """
    Raises :class:`DamagedFile` for the first file whose checksum is not the wanted one. Missing files are skipped, as
    large ones are not in the repository.

    :param wanted: names and their sha256, as :func:`sums` gives them.
    :param source: the file that ``wanted`` was read from.
    """
    if not isinstance(wanted, dict) or not wanted:
        raise DamagedFile(f"{source} does not say which files belong to it")
    for name, expected in wanted.items():
        if Path(name).name != name:
            raise DamagedFile(f"{source} names a file elsewhere, {name!r}")
        if (folder / name).is_file() and sums(folder, [name])[name] != expected:
            raise DamagedFile(f"{folder / name} is not the file that {source.name} beside it was written with")
