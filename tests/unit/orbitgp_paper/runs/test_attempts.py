import os
import re
import signal
import subprocess
import sys

import pytest

from orbitgp.fitting.lock import FolderInUse
from orbitgp_paper.runs.attempts import attempt


@pytest.fixture
def log(tmp_path):
    return tmp_path / "logs" / "train.log"


@pytest.fixture
def story(tmp_path):
    return tmp_path / "attempts" / "run"


def marks(path):
    return [line for line in path.read_text().splitlines() if line.startswith("=== ")]


def fail(log, story, error):
    with pytest.raises(type(error)), attempt(log, story) as (_, say):
        say("at work")
        raise error


def test_an_attempt_has_a_first_and_a_last_line(log, story):
    with attempt(log, story) as (file, say):
        say("α")
        os.write(file.fileno(), "β\n".encode())
    first, *middle, last = log.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(rf"=== \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC: process {os.getpid()} on \S+", first)
    assert (middle, last) == (["α", "β"], "=== ended")
    assert not story.exists()


@pytest.mark.parametrize(
    ("error", "last", "traced"),
    [
        (ValueError("no\n  such thing"), "=== failed: ValueError: no such thing", True),
        (MemoryError("of 3 TiB"), "=== failed: out of memory: of 3 TiB", True),
        (FolderInUse("x is in use by y"), "=== failed: FolderInUse: x is in use by y", False),
        (SystemExit("no more"), "=== failed: SystemExit: no more", False),
        (KeyboardInterrupt(), "=== failed: KeyboardInterrupt: ", True),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_the_last_line_is_the_reason(log, story, error, last, traced):
    fail(log, story, error)
    assert log.read_text().splitlines()[-1] == last
    assert ("Traceback" in log.read_text()) == traced


def test_the_next_attempt_keeps_the_reason_whoever_takes_the_log_away(log, story):
    fail(log, story, ValueError("first"))
    fail(log, story, ValueError("second"))
    assert [line for line in marks(log) if "failed" in line] == marks(log)[1::2]
    log.unlink()  # as Snakemake does
    with attempt(log, story):
        pass
    ends = ["failed: ValueError: first", "failed: ValueError: second", "ended"]
    assert len(marks(log)) == 6 and marks(log)[1::2] == [f"=== {end}" for end in ends]
    with attempt(log, story):
        pass
    assert len(marks(log)) == 8


def test_asked_to_stop_it_says_by_whom(log, story):
    with pytest.raises(SystemExit), attempt(log, story):
        os.kill(os.getpid(), signal.SIGINT)
    assert log.read_text().splitlines()[-1].startswith("=== stopped: asked to stop by SIGINT; the same command goes on")


CRASH = """
import ctypes, os, sys
from pathlib import Path
from orbitgp_paper.runs.attempts import attempt
with attempt(*map(Path, sys.argv[1:])):
    {how}
"""


@pytest.mark.parametrize(
    "how", ["os.kill(os.getpid(), 9)", "os.abort()", "ctypes.string_at(0)"], ids=["kill", "abort", "segv"]
)
def test_an_attempt_without_a_last_line_is_told_of_by_the_next(log, story, how):
    command = [sys.executable, "-c", CRASH.format(how=how), log, story]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode < 0
    assert ("Fatal Python error" in log.read_text()) == ("kill" not in how)  # a crash has the place it happened at
    with attempt(log, story):
        pass
    assert "the attempt before has no last line: it was killed" in marks(log)[1]


def test_a_full_disk_is_not_what_ends_a_training(log, story, capsys):
    full = os.open("/dev/full", os.O_WRONLY)
    with attempt(log, story) as (file, say):
        os.dup2(full, file.fileno())
        say("still there")
    os.close(full)
    assert "still there" in capsys.readouterr().err
