"""Copies of the repository for tests to run Snakemake in: the smoke size, made once, and checkouts without results."""

import fcntl
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("Snakefile", "config", "environment.yml", "profiles", "pyproject.toml", "src", "workflow")

# a process that has loaded Snakemake and TensorFlow, and forks for each plan and training: to load takes longer.
# Nothing of this repository: each workspace has its own
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["snakemake.cli", "snakemake.dag", "snakemake.workflow", "pandas", "scipy.stats", "pydantic", "gpflow"]
)


class Job(NamedTuple):
    """A line of a plan, such as ``Job("train_run", "mnist/rbf/0")``."""

    rule: str
    wildcards: str = ""


class Workspace:
    """A copy of the repository, with the results in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results" / "smoke"

    def environment(self, python_path: Sequence[Path] = (), **variables: str) -> dict[str, str]:
        """Of a process in the workspace: with its own orbitgp, whose byte code it keeps, without a GPU."""
        path = os.pathsep.join(map(str, [*python_path, self.folder / "src"]))
        left_out = ("ORBITGP_", "COV_", "PYTHONDONTWRITEBYTECODE")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
        return kept | {"PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "-1"} | variables

    def snakemake(
        self, *arguments: str, check: bool = True, python_path: Sequence[Path] = (), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs Snakemake, in the smoke size unless another is named."""
        done = self.python("-m", "snakemake", *_with_size(arguments), python_path=python_path, **variables)
        assert not check or done.returncode == 0, done.stdout[-6000:]
        return done

    def python(
        self, *arguments: str, python_path: Sequence[Path] = (), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs Python in the workspace."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.environment(python_path, **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1500,
        )

    def dry_run(self, *arguments: str, check: bool = True, **variables: str) -> str:
        """What Snakemake says it would do."""
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as said:
            given = (self.folder, ("--dry-run", *_with_size(arguments)), self.environment(**variables), said.name)
            process = FORKS.Process(target=_snakemake, args=given)
            process.start()
            process.join(300)
            text = said.read()
        assert not check or process.exitcode == 0, text[-6000:]
        return text

    def plan(self, *arguments: str, **variables: str) -> dict[Job, str]:
        """What Snakemake would run, each with what it says of it."""
        said = self.dry_run(*arguments, **variables)
        jobs = {}
        for block in re.split(r"\n(?=(?:local)?rule \w+:\n)", said):
            if found := re.match(r"(?:local)?rule (\w+):\n", block):
                wildcards = re.search(r"^    wildcards: (.*)$", block, flags=re.M)
                values = re.sub(r"\w+=", "", wildcards[1]).replace(", ", "/") if wildcards else ""
                jobs[Job(found[1], re.sub(r"/[0-9a-f]{12,}$", "", values))] = block  # less the digest of images
        counted = sum(map(int, re.findall(r"^total +(\d+)$", said, flags=re.M)[-1:]))
        assert len(jobs) == counted, said  # every job was understood
        return jobs

    def work(self, *arguments: str) -> set[str]:
        """The plan as words, ``"train_run mnist/rbf/0"``, less what always follows: the page and targets."""
        follows = {"page", "tables", "figures", "all"}
        return {" ".join(job).strip() for job in self.plan(*arguments) if job.rule not in follows}

    def replace(self, file: str, old: str, new: str) -> None:
        """Edits a file that has ``old`` in it exactly once."""
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def comment(self, file: str) -> None:
        """Adds a comment to a file of Python or YAML."""
        path = self.folder / file
        path.write_text(path.read_text(encoding="utf-8") + "\n# nothing changes\n", encoding="utf-8")


def _with_size(arguments: Sequence[str]) -> tuple[str, ...]:
    return (*arguments,) if "--config" in arguments else (*arguments, "--config", "tier=smoke")


def _snakemake(folder: Path, arguments: Sequence[str], environment: dict[str, str], said: str) -> None:
    """Snakemake in a process of its own, as if it had been started in ``folder``."""
    from snakemake.cli import main

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    with open(said, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    main(list(arguments))


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


def made_once(
    factory: pytest.TempPathFactory, worker_id: str, name: str, make: Callable[[Path], subprocess.CompletedProcess[str]]
) -> Workspace:
    """
    :param name: of the folder that the workspace gets.
    :param make: fills it; called by one process however many there are.
    """
    base = factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    made = Workspace(shared / name)
    with open(shared / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made.folder / "code.txt").exists():
            shutil.rmtree(made.folder, ignore_errors=True)  # left by a worker that was killed
            done = make(made.folder)
            (made.folder / "made.txt").write_text(done.stdout)
            (made.folder / "code.txt").write_text(str(done.returncode))
    assert (made.folder / "code.txt").read_text() == "0", (made.folder / "made.txt").read_text()[-6000:]
    return made


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Workspace:
    """The whole smoke size. Not to be changed: see ``workspace``."""
    return made_once(
        tmp_path_factory, worker_id, "smoke", lambda folder: checkout(folder).python("workflow/scripts/run.py", "smoke")
    )


ORBIT = """
from orbitgp.orbits import Rotation


def little(shape, alpha):
    return Rotation(shape, alpha=alpha)
"""


def with_photos(folder: Path) -> Workspace:
    """
    A checkout whose config/own.yaml is of a minute: a folder of colour images, an orbit of the user's own beside
    affine maps, and few steps from one seed.
    """
    import tensorflow as tf

    made, rng = checkout(folder), np.random.default_rng(0)
    for number in range(60):
        path = folder / "photos" / ("flat", "upright", "blank")[number % 3] / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 60, (8, 6, 3), np.uint8)
        pixels[(slice(1, 7), 3) if number % 3 else (4, slice(1, 5))] += np.uint8(190 * (number % 3 < 2))
        path.write_bytes(tf.io.encode_png(pixels).numpy())
    (folder / "src" / "my_orbits.py").write_text(ORBIT)
    changes = {
        "      rbf: {dataset: mine, orbit: {kind: identity}, label: no invariance}\n": "",
        "path: my_images.npz": "path: photos",
        "seeds: [0, 1, 2]": "seeds: [0]",
        "count: 100": "count: 8",
        "steps: 300": "steps: 40",
        "batch: 100": "batch: 20",
        "orbit: {kind: rotation, alpha: 10}": "orbit: {kind: own, path: 'my_orbits:little', settings: {alpha: 10}}",
    }
    for old, new in changes.items():
        made.replace("config/own.yaml", old, new)
    return made


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Workspace:
    """Results of :func:`with_photos`. Not to be changed."""
    return made_once(
        tmp_path_factory,
        worker_id,
        "own",
        lambda folder: with_photos(folder).snakemake(
            "--config", "tier=own", "--report-after-run", "--report", "report.html", check=False
        ),
    )


@pytest.fixture
def workspace(smoke: Workspace, tmp_path: Path) -> Workspace:
    """The smoke size for a test to change, with the dates that files have there, and Snakemake's records."""
    return Workspace(shutil.copytree(smoke.folder, tmp_path / "workspace", symlinks=True))


@pytest.fixture
def bare(tmp_path: Path) -> Workspace:
    """A checkout without results."""
    return checkout(tmp_path / "bare")
