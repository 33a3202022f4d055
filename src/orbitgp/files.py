"""Files that are written whole or not at all, and read with errors that name them."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

PART = ".part"  # the ending of a file that is not whole yet; its name begins with a dot


class DamagedFile(Exception):
    """A file is not what its name says; the message names it and what is wrong with it."""


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """
    Writes a file beside ``path``, brings it to the disk and only then gives it its name: whoever reads ``path`` finds
    the old file or the new one, and a full disk or a kill leaves the old one.

    :param write: fills the open file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, f"cannot write {path}: {error.strerror}") from error
        raise


def write_text(path: Path, text: str) -> None:
    """UTF-8, as it stands."""
    write_whole(path, lambda file: file.write(text.encode()))


def write_json(path: Path, content: Any) -> None:
    """Indented, with NaN refused: it is no JSON, and most readers stumble over it."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Numbers in their shortest exact form, so that the same numbers are the same bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_npz(path: Path, arrays: Mapping[str, np.ndarray], *, compress: bool = False) -> None:
    """NumPy arrays by name; the same arrays are the same bytes."""
    save = np.savez_compressed if compress else np.savez
    write_whole(path, lambda file: save(file, **arrays))


def read_json(path: Path) -> Any:
    """
    :return: what ``path`` holds.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DamagedFile(f"{path} is not whole JSON: {error}") from error


def read_npz(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """
    Arrays without any pickle in them. The archive carries a checksum of each, and each is looked at.

    :param names: arrays that must be there; None for all there are.
    """
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it holds one array without a name")
        with archive:
            if names is not None and (missing := sorted(set(names) - set(archive.files))):
                raise DamagedFile(f"{path} lacks the arrays {', '.join(missing)}; it has {', '.join(archive.files)}")
            return {name: archive[name] for name in (archive.files if names is None else names)}
    except FileNotFoundError:
        raise
    except (OSError, ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFile(f"{path} is not a whole .npz of plain arrays: {error}") from error


def _umask() -> int:
    """Of this process; there is no way to read it but to set it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
