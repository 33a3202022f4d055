"""Two that want one folder: Snakemake's lock or ours says so, and nothing is written twice."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.trainings import SAME
from workspaces import Workspace

RUN = "results/smoke/runs/mnist/rbf/seed0"


def wait_until(happened: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 400
    while not happened():
        assert time.monotonic() < end, what
        time.sleep(0.001)


def of_the_trainings(checkpoints: Path) -> dict[Path, bytes]:
    """All that they keep there but the story of their attempts, which one that is refused has a line in too."""
    return {
        path: path.read_bytes() for path in checkpoints.rglob("*") if path.is_file() and "attempts" not in path.parts
    }


def signed(lock: Path) -> bool:
    return lock.exists() and lock.read_text().endswith("\n")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_two_workflows_at_once_and_the_orphan_of_one_that_was_killed(bare: Workspace) -> None:
    pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")
    environment = os.environ | {"PYTHONPATH": str(bare.folder / "src"), "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, "-m", "snakemake", f"{RUN}/final.json", "--cores", "2", "--config", "tier=smoke"]
    lock = bare.results / "checkpoints" / "locks" / "runs.mnist.rbf.seed0"
    with open(bare.folder / "first.txt", "w") as said:
        first = subprocess.Popen(command, cwd=bare.folder, env=environment, stdout=said, stderr=said)
    orphan = 0
    try:
        wait_until(lambda: signed(lock) or first.poll() is not None, "neither a lock nor an end")
        assert signed(lock), (bare.folder / "first.txt").read_text()
        orphan = int(lock.read_text().split()[1])
        os.kill(orphan, signal.SIGSTOP)  # it takes its time

        at_once = bare.snakemake(f"{RUN}/final.json", check=False)
        assert at_once.returncode == 1
        assert "Directory cannot be locked" in at_once.stdout

        first.kill()
        first.wait()
        assert alive(orphan)
        left_behind = bare.snakemake(f"{RUN}/final.json", check=False)
        assert left_behind.returncode == 1 and "--unlock" in left_behind.stdout

        bare.snakemake("--unlock")
        before = of_the_trainings(bare.results / "checkpoints")
        again = bare.snakemake(f"{RUN}/final.json", "--rerun-incomplete", check=False)
        assert of_the_trainings(bare.results / "checkpoints") == before
        assert again.returncode == 1
        assert re.search(rf"{RUN} is in use by process {orphan} on \S+; wait for it or stop it first", again.stdout)
        assert "Traceback" not in again.stdout
        assert not (bare.folder / RUN / "final.json").exists()

        os.kill(orphan, signal.SIGCONT)
        wait_until(lambda: not alive(orphan), "the orphan does not end")
    finally:
        first.kill()
        first.wait()
        if orphan and alive(orphan):
            os.kill(orphan, signal.SIGKILL)
    of_the_orphan = {name: (bare.folder / RUN / name).read_bytes() for name in SAME}
    log = (bare.results / "logs" / "train" / "mnist" / "rbf" / "seed0.log").read_text()
    assert f"process {orphan} on " in log and log.count("=== failed: FolderInUse") == 1
    bare.snakemake(f"{RUN}/final.json", "--rerun-incomplete", "--forcerun", "train_run")
    assert {name: (bare.folder / RUN / name).read_bytes() for name in SAME} == of_the_orphan
