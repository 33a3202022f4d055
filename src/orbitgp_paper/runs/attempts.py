"""The log of a training that may take several attempts: each names its process and how it ended. No TensorFlow."""

from __future__ import annotations

import faulthandler
import os
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TextIO

from orbitgp.fitting.lock import FolderInUse, NoLocks
from orbitgp.fitting.stopping import Interrupted, listen

MARK = "=== "  # before the first and the last line of an attempt
ENDS = tuple(f"{MARK}{end}" for end in ("ended", "stopped", "failed"))
LONGEST = 600  # characters of a reason; TensorFlow's go on for pages


@contextmanager
def attempt(path: Path, story: Path) -> Iterator[tuple[TextIO, Callable[[str], None]]]:
    """
    Opens a log for one more attempt, whose last line says how it ended, unless it was killed. If the attempt before has
    no last line, the log says so.

    :param path: the log. Snakemake removes it before each attempt.
    :param story: a file with the first and last lines of the attempts so far, which a new log begins with. It is
        removed when a training has ended.
    :return: the open log, for others to write to, and a function that writes a line to it.
    """
    for file in (path, story):
        file.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as log, open(story, "a+", encoding="utf-8") as marks:
        marks.seek(0)
        earlier = marks.read().splitlines()

        def say(line: str) -> None:
            _say(log, line)

        def mark(line: str) -> None:
            say(f"{MARK}{line}")
            _say(marks, f"{MARK}{line}")

        if log.tell() == 0:
            for line in earlier:
                say(line)
        if earlier and not earlier[-1].startswith(ENDS):
            mark("the attempt before has no last line: it was killed, for want of memory perhaps, or still runs")
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
        mark(f"{now}: process {os.getpid()} on {socket.gethostname()}")
        faulthandler.enable(log)  # a crash in TensorFlow leaves a word too
        try:
            with listen(say):
                yield log, say
            mark("ended")
            story.unlink(missing_ok=True)
        except BaseException as error:
            if not isinstance(error, SystemExit | FolderInUse | NoLocks):
                say(traceback.format_exc())
            mark(_reason(error))
            raise
        finally:
            faulthandler.disable()


def _say(file: TextIO, line: str) -> None:
    """Writes a line. A full or missing disk must not end a training here: the next file that fails names itself."""
    try:
        os.write(file.fileno(), f"{line}\n".encode())  # past Python's buffer, which would fail again when it is closed
    except OSError:
        sys.stderr.write(f"{line}\n")


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    name = type(error).__name__
    if isinstance(error, Interrupted):
        return f"stopped: {text}; the same command goes on from the last checkpoint"
    if isinstance(error, MemoryError) or name == "ResourceExhaustedError":  # Python's, TensorFlow's
        return f"failed: out of memory: {text[:LONGEST]}"
    return f"failed: {name}: {text[:LONGEST]}"
