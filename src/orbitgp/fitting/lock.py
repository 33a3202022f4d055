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
    Within it, no other process can hold the folder too. The system lets go of it however this process ends. The file
    stays: were it taken away, two processes could hold two files of one name.

    :param folder: what is held.
    :param file: what is locked, the same for all who want this folder; ``folder / "lock"`` unless given.
    """
    file = folder / "lock" if file is None else file
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in TAKEN:
                raise NoLocks(
                    f"{file} cannot be locked ({error.strerror}), so that another process could write to {folder} at "
                    "the same time; have the file system mounted with locks (for Lustre: -o flock), or let the "
                    "variable ORBITGP_RESULTS name a folder elsewhere"
                ) from error
            lock.seek(0)
            holder = lock.read().strip() or "another process"
            raise FolderInUse(f"{folder} is in use by {holder}; wait for it or stop it first") from error
        _sign(lock.fileno(), file)
        yield


def beside(checkpoints: Path, folder: Path, kind: str = "locks") -> Path:
    """
    :param checkpoints: where trainings keep their checkpoints.
    :param folder: where one of them leaves its results.
    :param kind: what the file is for.
    :return: a file that belongs to ``folder``, such as the one to lock. It lies with the checkpoints, as results hold
        nothing but results, and its name has the way from there to the folder, which is the same on every machine.
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
