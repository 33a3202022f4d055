import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys

import pytest

from orbitgp.fitting.lock import FolderInUse, NoLocks, beside, hold

OTHER = """
import sys
from pathlib import Path
from orbitgp.fitting.lock import FolderInUse, hold
try:
    with hold(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
except FolderInUse as error:
    print(error, flush=True)
"""


@pytest.fixture
def another_process():
    """Starts a process that tries to hold a folder; its first line says how that went."""
    started = []

    def start(folder):
        process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process, process.stdout.readline().strip()

    yield start
    for process in started:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


def test_a_folder_held_by_another_process_is_refused_and_the_holder_named(tmp_path, another_process):
    folder = tmp_path / "run"
    process, said = another_process(folder)
    assert said == "held"
    with (
        pytest.raises(FolderInUse, match=rf"{folder} is in use by process {process.pid} on {socket.gethostname()};"),
        hold(folder),
    ):
        pass
    process.send_signal(signal.SIGKILL)  # even then the folder is free
    process.wait(10)
    with hold(folder):
        assert (folder / "lock").read_text() == f"process {os.getpid()} on {socket.gethostname()}\n"


def test_a_folder_held_here_is_refused_there_until_it_is_let_go(tmp_path, another_process):
    with pytest.raises(RuntimeError, match="in training"), hold(tmp_path):
        said = another_process(tmp_path)[1]
        assert said.startswith(f"{tmp_path} is in use by process {os.getpid()} on ")
        raise RuntimeError("in training")
    with hold(tmp_path):
        pass


def test_the_file_may_lie_elsewhere(tmp_path):
    file = beside(tmp_path / "checkpoints", tmp_path / "runs" / "mnist" / "rbf" / "seed0")
    assert file == tmp_path / "checkpoints" / "locks" / "runs.mnist.rbf.seed0"
    with (
        hold(tmp_path / "another"),  # two folders do not hinder each other
        hold(tmp_path / "results", file),
        pytest.raises(FolderInUse, match=f"{tmp_path / 'results'} is in use by process {os.getpid()} "),
        hold(tmp_path / "results", file),
    ):
        pass
    assert not (tmp_path / "results").exists()


def test_the_file_is_the_same_wherever_the_folders_are_mounted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").symlink_to(tmp_path)
    names = {beside(base / "checkpoints", base / "runs" / "a").name for base in (tmp_path, tmp_path / "elsewhere")}
    names.add(beside(tmp_path.__class__("checkpoints"), tmp_path.__class__("runs/a")).name)
    assert names == {"runs.a"}


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_file_system_without_locks_is_not_taken_for_a_folder_in_use(tmp_path, monkeypatch, number):
    """As Lustre answers where it is mounted without -o flock, and NFS without its lock daemon."""

    def refuse(file, operation):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(NoLocks, match=rf"lock cannot be locked \({os.strerror(number)}\).*ORBITGP_RESULTS"):
        hold(tmp_path).__enter__()


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def full(descriptor, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match=f"cannot write {tmp_path / 'lock'}: No space left"), hold(tmp_path):
        pass
