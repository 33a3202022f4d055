"""Clocks that jump, disks that are slow, caches that cannot be written, a GPU that is not there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from faults.trainings import ROOT, Training
from workspaces import Workspace

from orbitgp import files
from orbitgp_paper import measured

CLOCK = """
import itertools, time
real, jumps = time.time, itertools.cycle([0, 86400, -365 * 86400])
time.time = lambda: real() + next(jumps)
"""
SLOW = """
import os, time
for name in ("replace", "fsync"):
    def slow(*arguments, call=getattr(os, name)):
        time.sleep(0.01)
        call(*arguments)
        time.sleep(0.01)
    setattr(os, name, slow)
"""


@pytest.mark.parametrize("fault", [CLOCK, SLOW], ids=["a clock that jumps", "a slow disk"])
def test_nothing_else_comes_out(training: Training, undisturbed: Training, fault: str) -> None:
    child = training.start(fault)
    assert training.wait_for(child, lambda: "step 200 of 400" in training.logged()), training.told()
    child.kill()
    child.wait()
    kept = sorted(training.checkpoints.glob("*/checkpoint-*.npz"))
    for path, date in zip(kept, (4e9, 3.9e9), strict=True):  # in the years 2096 and 2093, the newer one first
        os.utime(path, (date, date))
    assert training.run(fault) == 0, training.told()
    assert f"resumed at step {int(kept[-1].stem[-9:])} of 400" in training.logged()
    assert training.results() == undisturbed.results()
    timing = (training.folder / "timing.csv").read_text().split()[1:]
    seconds = [float(line.split(",")[1]) for line in timing]
    assert seconds == sorted(seconds) and seconds[0] >= 0 and seconds[-1] < 600


def test_a_gpu_that_was_asked_for_and_is_not_there(training: Training, undisturbed: Training) -> None:
    training.gpus = 1
    assert training.run(CUDA_VISIBLE_DEVICES="-1") == 0, training.told()  # hides those that there may be
    assert json.loads((training.folder / "provenance.json").read_text())["device"] == "CPU"
    line = "1 GPU was asked for, but TensorFlow sees none (CUDA_VISIBLE_DEVICES is '-1'): training on the CPU, 1 thread"
    assert line in training.logged()
    assert f"small/rotation/seed3: {line}" in training.said.read_text()
    assert training.results() == undisturbed.results()


# as a file system shared by several machines may show a new file to others a while after it was written
LATE = """
import os, subprocess, sys
if sys.argv[0].endswith("train.py") or "train.py" in " ".join(getattr(sys, "orig_argv", [])):
    replace = os.replace
    def late(source, target):
        if str(target).endswith("seed0/final.json"):
            os.rename(source, str(source) + ".late")
            subprocess.Popen(["sh", "-c", 'sleep 3; mv "$0" "$1"', str(source) + ".late", str(target)])
        else:
            replace(source, target)
    os.replace = late
"""


def test_a_result_that_others_see_late(bare: Workspace, tmp_path: Path) -> None:
    pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "sitecustomize.py").write_text(LATE)
    run = "results/smoke/runs/mnist/rbf/seed0"
    done = bare.snakemake(f"{run}/final.json", "--cores", "2", python_path=[tmp_path / "late"])
    assert re.search(r"Waiting at most \d+ seconds for missing files", done.stdout), done.stdout
    assert files.read_json(bare.folder / run / "final.json")["steps"] == 6


NOWHERE = "/dev/null/none"  # not even root can make a folder there


HIDDEN = dict.fromkeys(("HOME", "MPLCONFIGDIR", "XDG_CACHE_HOME"), NOWHERE)


@pytest.mark.parametrize("profile", ["profiles/default", "profiles/local-gpu", "profiles/kubernetes"])
def test_the_workflow_needs_no_cache(bare: Workspace, profile: str) -> None:
    pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")
    target = "results/smoke/data/mnist.npz"
    bare.snakemake(target, "--cores", "1", "--workflow-profile", profile, **HIDDEN)
    assert (bare.folder / target).exists()
    assert "Nothing to be done" in bare.snakemake(target, "--dry-run", **HIDDEN).stdout


def test_with_no_profile_snakemake_names_the_cache_that_cannot_be_written(bare: Workspace) -> None:
    """Before it reads anything of ours, so that a traceback is around it."""
    pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")
    refused = bare.snakemake("--cores", "1", "--workflow-profile", "none", check=False, **HIDDEN)
    assert refused.returncode == 1
    assert f"Not a directory: '{NOWHERE}" in refused.stdout.strip().splitlines()[-1]
    assert not bare.results.exists()


def test_a_figure_needs_no_cache(tmp_path: Path) -> None:
    rows = [[model, count, -1.0 / count, 1.0] for model in ("invariant", "plain") for count in (4, 8)]
    files.write_csv(tmp_path / "bounds.csv", ["model", "inducing", "elbo", "log_marginal_likelihood"], rows)
    measured.write_settings(tmp_path / "config.yaml", {}, tmp_path / "bounds.csv")
    command = [sys.executable, "workflow/scripts/figure.py", "--output"]
    drawn = []
    for name, variables in (("here", {}), ("nowhere", HIDDEN)):
        output = tmp_path / name / "fig2_bound.svg"
        environment = os.environ | variables
        subprocess.run([*command, str(output), str(tmp_path / "bounds.csv")], cwd=ROOT, env=environment, check=True)
        drawn.append(output.read_bytes())
    assert drawn[0] == drawn[1]
