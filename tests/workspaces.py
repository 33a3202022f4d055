"""Copies of the repository for tests to run Snakemake in: the smoke size, made once, and checkouts without results."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("Snakefile", "config", "environment.yml", "profiles", "pyproject.toml", "src", "workflow")


class Job(NamedTuple):
    """A line of a plan, such as ``Job("train_run", "mnist/rbf/0")``."""

    rule: str
    wildcards: str = ""


class Workspace:
    """A copy of the repository, with the results in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results" / "smoke"

    def snakemake(
        self, *arguments: str, check: bool = True, python_path: Sequence[Path] = (), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs Snakemake in the smoke size, with the workspace's own orbitgp."""
        if "--config" not in arguments:
            arguments = (*arguments, "--config", "tier=smoke")
        path = os.pathsep.join(map(str, [*python_path, self.folder / "src"]))
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("ORBITGP_", "COV_"))}
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", *arguments],
            cwd=self.folder,
            env=environment | {"PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "-1"} | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1500,
        )
        assert not check or done.returncode == 0, done.stdout[-6000:]
        return done

    def plan(self, *arguments: str, **variables: str) -> dict[Job, str]:
        """What Snakemake would run, each with what it says of it."""
        said = self.snakemake("--dry-run", *arguments, **variables).stdout
        jobs = {}
        for block in re.split(r"\n(?=(?:local)?rule \w+:\n)", said):
            if found := re.match(r"(?:local)?rule (\w+):\n", block):
                wildcards = re.search(r"^    wildcards: (.*)$", block, flags=re.M)
                values = re.sub(r"\w+=", "", wildcards[1]).replace(", ", "/") if wildcards else ""
                jobs[Job(found[1], values)] = block
        counted = sum(map(int, re.findall(r"^total +(\d+)$", said, flags=re.M)[-1:]))
        assert len(jobs) == counted, said  # every job was understood
        return jobs

    def copy(self, folder: Path) -> "Workspace":
        """With the dates that files have here, and Snakemake's records."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Workspace(folder)

    def replace(self, file: str, old: str, new: str) -> None:
        """Edits a file that has ``old`` in it exactly once."""
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def comment(self, file: str) -> None:
        """Adds a comment to a Python file."""
        path = self.folder / file
        path.write_text(path.read_text(encoding="utf-8") + "\n# nothing changes\n", encoding="utf-8")


def checkout(folder: Path) -> Workspace:
    """What the workflow needs of the repository, without results; MNIST is linked, as nothing changes it."""
    folder.mkdir(parents=True)
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy2(ROOT / part, folder / part)
    (folder / "data").symlink_to(ROOT / "data")
    return Workspace(folder)


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Workspace:
    """The whole smoke size, made by one process however many there are. Not to be changed: see ``workspace``."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    made = Workspace(shared / "smoke")
    with open(shared / "smoke.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made.folder / "code.txt").exists():
            shutil.rmtree(made.folder, ignore_errors=True)  # left by a worker that was killed
            started = time.monotonic()
            said = checkout(made.folder).snakemake("--cores", "2", check=False)
            (made.folder / "said.txt").write_text(f"{said.stdout}\n{time.monotonic() - started:.0f} s\n")
            (made.folder / "code.txt").write_text(str(said.returncode))
    assert (made.folder / "code.txt").read_text() == "0", (made.folder / "said.txt").read_text()[-6000:]
    return made


@pytest.fixture
def workspace(smoke: Workspace, tmp_path: Path) -> Workspace:
    """The smoke size for a test to change."""
    return smoke.copy(tmp_path / "workspace")


@pytest.fixture
def bare(tmp_path: Path) -> Workspace:
    """A checkout without results."""
    return checkout(tmp_path / "bare")


@pytest.fixture
def only() -> Callable[..., set[Job]]:
    """Jobs without those that always follow: pages, the report, the target itself."""

    def strip(jobs: dict[Job, str]) -> set[Job]:
        return {job for job in jobs if job.rule not in ("page", "settings_page", "report_page", "all", "figures")}

    return strip
