"""Trainings to be disturbed, as processes of their own."""

import os
import re
import runpy
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from workspaces import FORKS, ROOT

from orbitgp_paper.config import canonical

SCRIPT = ROOT / "workflow" / "scripts" / "train.py"
SAME = ("metrics.csv", "final.json", "params.npz", "config.yaml")  # in every run of one specification
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}


def alive(pid: int) -> bool:
    """False from its last breath on, even if nobody has asked how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(happened: Callable[[], Any], lives: Callable[[], bool], seconds: float = 400.0) -> bool:
    """Whether something happened while a process lived."""
    end = time.monotonic() + seconds
    while not happened():
        if not lives() or time.monotonic() > end:
            return bool(happened())
        time.sleep(0.003)
    return True


@contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """A small file system of memory."""
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small disk needs root and the right to mount: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _train(said: Path, inject: str, variables: dict[str, str], options: list[str]) -> None:
    """workflow/scripts/train.py, after the fault that is to be injected, in a process that has TensorFlow loaded."""
    with open(said, "ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.environ.update(QUIET | variables)
    exec(inject, {})
    sys.argv[:] = [str(SCRIPT), *options]
    sys.path.insert(0, str(SCRIPT.parent))
    runpy.run_path(str(SCRIPT), run_name="__main__")


class Training:
    """One run in a folder of its own, and all that it takes to make it."""

    def __init__(self, base: Path, spec: Any) -> None:
        self.base, self.spec = base, spec
        self.folder = base / "results" / "small" / "rotation" / "seed3"
        self.checkpoints, self.log, self.said = base / "checkpoints", base / "train.log", base / "said.txt"
        self.images, self.gpus = base / "small.npz", 0
        self.checkpoint_every = 0.0  #: seconds: with every row of metrics, unless a test wants it otherwise

    def options(self) -> list[str]:
        given = {"spec": canonical(self.spec), "images": self.images, "folder": self.folder, "log": self.log}
        given |= {"checkpoints": self.checkpoints, "checkpoint-every": self.checkpoint_every, "gpus": self.gpus}
        return [word for name, value in given.items() for word in (f"--{name}", str(value))]

    def start(self, inject: str = "", **variables: str) -> BaseProcess:
        """Begins, without the seconds that loading TensorFlow takes; what it logs from now on is of this attempt."""
        self._before = len(self.logged())
        process = FORKS.Process(target=_train, args=(self.said, inject, variables, self.options()), daemon=True)
        process.start()
        return process

    def start_anew(self) -> subprocess.Popen[bytes]:
        """Begins as the workflow does."""
        with open(self.said, "ab") as said:
            command = [sys.executable, str(SCRIPT), *self.options()]
            return subprocess.Popen(command, env=os.environ | QUIET, stdout=said, stderr=said)

    def run(self, inject: str = "", **variables: str) -> int:
        """Begins, and waits for the end."""
        return self.end(self.start(inject, **variables))

    def end(self, process: BaseProcess, seconds: float = 400.0) -> int:
        """How it ends, as subprocess has it; one that has not ended by then is killed."""
        process.join(seconds)
        process.kill()
        process.join()
        assert process.exitcode is not None
        return process.exitcode

    def wait_for(self, process: BaseProcess, happened: Callable[[], Any]) -> None:
        """Until something happens in the attempt, which must live so long."""
        assert wait_until(happened, process.is_alive), self.told()

    def logged(self) -> str:
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""

    def attempt(self) -> str:
        """What the last attempt has logged so far."""
        return self.logged()[self._before :]

    def rows(self) -> list[int]:
        """The steps that the last attempt tells of."""
        return [int(found) for found in re.findall(r"^step (\d+) of \d+:", self.attempt(), flags=re.M)]

    def resumed_at(self) -> int:
        """Where the last attempt went on; zero if it began from the start."""
        found = re.search(r"^resumed at step (\d+) of \d+$", self.attempt(), flags=re.M)
        return int(found[1]) if found else 0

    def spoken(self) -> str:
        """What it said on the terminal."""
        return self.said.read_text() if self.said.exists() else ""

    def told(self) -> str:
        """All that it said, for messages."""
        return self.logged()[-4000:] + self.spoken()[-4000:]

    def results(self) -> dict[str, bytes]:
        return {name: (self.folder / name).read_bytes() for name in SAME}
