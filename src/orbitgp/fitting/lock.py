"""Folders that only one process at a time may write to, on any machine that shares them."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)  # what flock says if another process has the lock


class FolderInUse(RuntimeError):
    """Another process writes to this folder."""


class NoLocks(RuntimeError):
    """The file system has no locks, so that nobody could say whether the folder is in use."""


@contextmanager
def hold(folder: Path, file: Path | None = None) -> Iterator[None]:
    """
    Holds a folder, which no other process can hold at the same time. The system releases it however this process ends.
    The lock file stays: if it were deleted, two processes could lock two files of one name.

    :param folder: the folder to hold.
    :param file: the file to lock, the same for every process that wants this folder; ``folder / "lock"`` if None.
    """
    file = folder / "lock" if file is None else file
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in TAKEN:
                raise NoLocks(
                    f"{file} cannot be locked ({error.strerror}), so another process could write to {folder} at "
                    "the same time; mount the file system with locks (for Lustre: -o flock), or set the "
                    "variable ORBITGP_RESULTS to a folder elsewhere"
                ) from error
            lock.seek(0)
            holder = lock.read().strip() or "another process"
            raise FolderInUse(f"{folder} is in use by {holder}; wait for it or stop it first") from error
        _sign(lock.fileno(), file)
        yield


def beside(checkpoints: Path, folder: Path, kind: str = "locks") -> Path:
    """
    :param checkpoints: the folder of all trainings' checkpoints.
    :param folder: the folder of one training's results.
    :param kind: sub-folder of such files, such as ``"locks"``.
    :return: a file that belongs to ``folder``. It lies with the checkpoints, so that results hold nothing else. Its
        name is the relative path from there to ``folder``, which is the same on every machine.
    """
    way = os.path.relpath(folder.absolute(), checkpoints.absolute())
    return checkpoints / kind / ".".join(part for part in Path(way).parts if part != os.pardir)


def _sign(descriptor: int, file: Path) -> None:
    """Writes who holds the lock, for others to read."""
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    except OSError as error:
        raise OSError(error.errno, f"cannot write {file}: {error.strerror}") from error
