"""Trainings to be disturbed, as processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SAME = ("metrics.csv", "final.json", "params.npz", "config.yaml")  # in every run of one specification
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}


class Child:
    """A running training."""

    def __init__(self, pid: int, code: Callable[[], int]) -> None:
        self.pid, self._code = pid, code

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def wait(self, seconds: float = 400.0) -> int:
        """How it ended, as subprocess has it; one that has not ended by then is killed."""
        end = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > end:
                self.kill()
                break
            time.sleep(0.0005)
        return self._code()

    def alive(self) -> bool:
        """False from its last breath on, even if nobody has asked how it ended."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False


class Training:
    """One run in a folder of its own, and all that it takes to make it."""

    def __init__(self, base: Path, spec: dict[str, Any], server: "Server") -> None:
        self.base, self.spec, self.server = base, spec, server
        self.folder = base / "results" / "small" / "rotation" / "seed3"
        self.checkpoints, self.log, self.said = base / "checkpoints", base / "train.log", base / "said.txt"
        self.images, self.gpus = base / "small.npz", 0
        self.checkpoint_every = 0.0  #: seconds: with every row of metrics, unless a test wants it otherwise

    def options(self) -> list[str]:
        given = {"spec": json.dumps(self.spec), "images": self.images, "folder": self.folder, "log": self.log}
        given |= {"checkpoints": self.checkpoints, "checkpoint-every": self.checkpoint_every, "gpus": self.gpus}
        return [word for name, value in given.items() for word in (f"--{name}", str(value))]

    def start(self, inject: str = "", **variables: str) -> Child:
        """Begins, without the seconds that loading TensorFlow takes."""
        return self.server.start(self, inject, variables)

    def start_anew(self) -> subprocess.Popen[bytes]:
        """Begins as the workflow does."""
        command = [sys.executable, "workflow/scripts/train.py", *self.options()]
        with open(self.said, "ab") as said:
            return subprocess.Popen(command, cwd=ROOT, env=os.environ | QUIET, stdout=said, stderr=said)

    def run(self, inject: str = "", **variables: str) -> int:
        """Begins, and waits for the end."""
        return self.start(inject, **variables).wait()

    def wait_for(self, child: Child, happened: Callable[[], Any], timeout: float = 400.0) -> bool:
        """Whether something happened while the training was alive."""
        end = time.monotonic() + timeout
        while not happened():
            if not child.alive():
                return bool(happened())
            assert time.monotonic() < end, self.told()
            time.sleep(0.0005)
        return True

    def logged(self) -> str:
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""

    def told(self) -> str:
        """All that it said, for messages."""
        return self.logged()[-4000:] + (self.said.read_text()[-4000:] if self.said.exists() else "")

    def results(self) -> dict[str, bytes]:
        return {name: (self.folder / name).read_bytes() for name in SAME}


class Server:
    """tests/faults/server.py at work."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | QUIET,
            text=True,
        )
        assert self._line() == "ready"

    def start(self, training: Training, inject: str, variables: dict[str, str]) -> Child:
        request = {"said": str(training.said), "options": training.options(), "inject": inject, "variables": variables}
        assert self.process.stdin
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return Child(int(self._line()), lambda: int(self._line()))

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def stop(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
