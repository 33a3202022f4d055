"""Faults around real Snakemake: two that want one folder, results that cannot be written or show late, no caches."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from faults.trainings import ROOT, alive, mounted, wait_until
from workspaces import Workspace

from orbitgp_paper.runs.reading import read_runs

pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")

IMAGES = ("data", "--cores", "1", "--config", "tier=one")  # what takes a second to make
RUN = "results/smoke/runs/mnist/rbf/seed0"


@pytest.fixture
def one(bare: Workspace) -> Workspace:
    """A size that has nothing but one data set."""
    content = "tier: one\ndatasets: {mnist: {kind: mnist, train: 20, test: 20}}\n"
    (bare.folder / "config" / "one.yaml").write_text(content)
    return bare


def of_the_trainings(checkpoints: Path) -> dict[Path, bytes]:
    """All that they keep there but the story of their attempts, which one that is refused has a line in too."""
    found = (path for path in checkpoints.rglob("*") if path.is_file() and "attempts" not in path.parts)
    return {path: path.read_bytes() for path in found}


def test_two_workflows_at_once_and_the_orphan_of_one_that_was_killed(bare: Workspace) -> None:
    command = [sys.executable, "-m", "snakemake", f"{RUN}/final.json", "--cores", "2", "--config", "tier=smoke"]
    lock = bare.results / "checkpoints" / "locks" / "runs.mnist.rbf.seed0"
    with open(bare.folder / "first.txt", "w") as said:
        first = subprocess.Popen(command, cwd=bare.folder, env=bare.environment(), stdout=said, stderr=said)
    orphan = 0
    try:
        signed = wait_until(lambda: lock.exists() and lock.read_text().endswith("\n"), lambda: first.poll() is None)
        assert signed, (bare.folder / "first.txt").read_text()
        orphan = int(lock.read_text().split()[1])
        os.kill(orphan, signal.SIGSTOP)  # it takes its time

        at_once = bare.snakemake(f"{RUN}/final.json", check=False)
        assert at_once.returncode == 1
        assert "Directory cannot be locked" in at_once.stdout

        first.kill()
        first.wait()
        assert alive(orphan)
        before = of_the_trainings(bare.results / "checkpoints")
        again = bare.snakemake(f"{RUN}/final.json", "--nolock", "--rerun-incomplete", check=False)
        assert of_the_trainings(bare.results / "checkpoints") == before
        assert again.returncode == 1
        assert re.search(rf"{RUN} is in use by process {orphan} on \S+; wait for it or stop it first", again.stdout)
        assert "Traceback" not in again.stdout
        assert not (bare.folder / RUN / "final.json").exists()

        os.kill(orphan, signal.SIGCONT)
        assert wait_until(lambda: not alive(orphan), lambda: True)
    finally:
        first.kill()
        first.wait()
        if orphan and alive(orphan):
            os.kill(orphan, signal.SIGKILL)
    assert list(read_runs([bare.folder / RUN]).finals.steps) == [6]  # whole, by its sums
    log = (bare.results / "logs" / "train" / "mnist" / "rbf" / "seed0.log").read_text()
    assert f"process {orphan} on " in log and log.count("=== failed: FolderInUse") == 1


def test_results_that_cannot_be_written_to(one: Workspace) -> None:
    with mounted(one.folder / "results", "size=1m,ro"):
        done = one.snakemake(*IMAGES, check=False)
    assert done.returncode == 1
    assert "Read-only file system: 'results/one'" in done.stdout
    assert "Traceback" not in done.stdout


# as a file system shared by several machines may show a new file to others a while after it was written
LATE = """
import os, subprocess
replace = os.replace
def late(source, target):
    if "/data/mnist" in str(target):
        os.rename(source, f"{source}.late")
        subprocess.Popen(["sh", "-c", 'sleep 3; mv "$0" "$1"', f"{source}.late", str(target)])
    else:
        replace(source, target)
os.replace = late
"""
NOWHERE = "/dev/null/none"  # not even root can make a folder there
HIDDEN = dict.fromkeys(("HOME", "MPLCONFIGDIR", "XDG_CACHE_HOME"), NOWHERE)


def test_a_result_that_others_see_late_and_no_cache(one: Workspace, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(LATE)
    done = one.snakemake(*IMAGES, python_path=[tmp_path], **HIDDEN)
    assert re.search(r"Waiting at most \d+ seconds for missing files", done.stdout), done.stdout
    assert [*one.folder.glob("results/one/data/mnist*.npz")]


def test_the_other_profiles_need_no_cache_and_without_one_snakemake_names_it(one: Workspace) -> None:
    for profile in ("profiles/local-gpu", "profiles/kubernetes"):
        assert "rule dataset:" in one.snakemake(*IMAGES, "--dry-run", "--workflow-profile", profile, **HIDDEN).stdout
    # before it reads anything of ours, so that a traceback is around it
    refused = one.snakemake(*IMAGES, "--workflow-profile", "none", check=False, **HIDDEN)
    assert refused.returncode == 1
    assert f"Not a directory: '{NOWHERE}" in refused.stdout.strip().splitlines()[-1]
    assert not (one.folder / "results").exists()


def test_a_figure_needs_no_cache(tmp_path: Path) -> None:
    output, paper = tmp_path / "nowhere" / "fig2_bound.svg", ROOT / "results" / "paper"
    command = [sys.executable, "workflow/scripts/figure.py", "--output", output, paper / "runs" / "toy" / "bounds.csv"]
    subprocess.run(command, cwd=ROOT, env=os.environ | HIDDEN, check=True)
    assert output.read_bytes() == (paper / "figures" / output.name).read_bytes()
