"""The whole smoke size: what it leaves, and what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ("fig1", "fig2", "fig2_bound", "fig3", "fig4", "fig5", "appendix_a", "appendix_b")
TABLES = ("toy", "toy_halves", "toy_bounds", "parity", "mnist", "rotated", "insensitivity", "estimators", "runs")


def test_every_figure_table_and_verdict_is_there(smoke):
    wanted = [f"figures/{name}.{ending}" for name in FIGURES for ending in ("pdf", "svg", "png")]
    wanted += [f"tables/{name}.{ending}" for name in TABLES for ending in ("csv", "md", "tex")]
    wanted += ["claims.csv", "claims.md", "report.html"]
    assert not [name for name in wanted if not (smoke.results / name).stat().st_size]


def test_the_table_of_mnist_has_the_columns_that_are_asked_for(smoke):
    table = pd.read_csv(smoke.results / "tables" / "mnist.csv")
    assert {"variant", "paper_error", "paper_std", "error_mean", "error_std", "n_seeds"} <= set(table)
    assert {"elbo_mean", "elbo_std"} <= set(table)
    assert list(table["variant"]) == ["rbf", "rotation", "affine", "local"]


def test_every_run_leaves_its_files_its_log_and_its_benchmark(smoke):
    runs = sorted((smoke.results / "runs").glob("*/*/seed*"))
    assert len(runs) == 16
    for run in runs:
        names = {path.name for path in run.iterdir()}
        assert names == {"config.yaml", "final.json", "metrics.csv", "params.npz", "provenance.json", "timing.csv"}
        stem = Path("train", *run.parts[-3:])
        log = (smoke.results / "logs" / stem).with_suffix(".log").read_text()
        assert re.search(r"^ended: bound .* test error", log, flags=re.M)
        assert "no GPU was found: training on the CPU, 1 thread" in log
        assert pd.read_csv((smoke.results / "benchmarks" / stem).with_suffix(".tsv"), sep="\t")["s"][0] > 0


def test_every_job_says_what_it_needs(smoke):
    planned = smoke.plan("--forceall")
    for job, said in planned.items():
        if job.rule != "all":
            resources = re.search(r"^    resources: (.*)$", said, flags=re.M)[1]
            assert {"gpu", "mem_mb", "runtime"} <= set(re.findall(r"(\w+)=", resources)), job
            assert "    log: " in said, job
        if job.rule == "train_run":
            assert "    benchmark: " in said
    # two trainings at a time on two cores without a GPU
    assert "gpu=0" in planned["train_run", "mnist/rbf/0"]


def test_with_a_gpu_trainings_ask_for_it_and_the_profile_lends_one(bare, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin"
    planned = bare.plan("train", CUDA_VISIBLE_DEVICES="0", PATH=path)
    assert "gpu=1" in planned["train_run", "mnist/rbf/0"]
    assert re.search(r"^ +- gpu=1\b", (bare.folder / "profiles/default/config.yaml").read_text(), flags=re.M)


def test_targets(bare):
    assert {job.rule for job in bare.plan("data")} == {"data", "dataset"}
    assert {job.rule for job in bare.plan("train")} == {"dataset", "train", "train_run"}
    tables = {job.rule for job in bare.plan("tables")}
    assert {"table", "claims", "train_run"} <= tables and not tables & {"fig1", "report_page"}
    assert "report_page" in {job.rule for job in bare.plan("report")}


def test_the_summary_shows_table_claims_and_report(smoke):
    done = subprocess.run(
        [sys.executable, "workflow/scripts/summary.py", "smoke"],
        cwd=smoke.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "| rbf | RBF | 2.15 ± 0.03 |" in done.stdout
    assert "| claim | where | verdict | evidence |" in done.stdout
    assert done.stdout.rstrip().endswith("results/smoke/report.html")


def test_a_training_that_fails_ends_its_log_with_the_traceback(smoke, tmp_path):
    (tmp_path / "images.npz").write_bytes(b"not an archive")
    log = tmp_path / "logs" / "train.log"
    options = {"spec": "{}", "images": tmp_path / "images.npz", "log": log}
    options |= {name: tmp_path / name for name in ("folder", "checkpoints")}
    command = [sys.executable, "workflow/scripts/train.py"]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, cwd=smoke.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" in log.read_text() and "images.npz" in log.read_text().splitlines()[-1]


@pytest.mark.parametrize("command", [["snakemake", "--lint"], ["snakefmt", "--check", "Snakefile", "workflow/rules"]])
def test_the_workflow_is_tidy(command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
