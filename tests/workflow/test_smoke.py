"""The whole smoke size: what it leaves, and what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
from workspaces import Workspace

FIGURES = ("fig1", "fig2", "fig2_bound", "fig3", "fig4", "fig5", "appendix_a", "appendix_b")
TABLES = ("toy", "toy_halves", "toy_bounds", "parity", "mnist", "rotated", "insensitivity", "estimators", "runs")


def test_every_figure_table_and_verdict_is_there(smoke: Workspace):
    wanted = [f"figures/{name}.{ending}" for name in FIGURES for ending in ("pdf", "svg", "png")]
    wanted += [f"tables/{name}.{ending}" for name in TABLES for ending in ("csv", "md", "tex")]
    wanted += ["claims.csv", "claims.md", "report.html"]
    assert not [name for name in wanted if not (smoke.results / name).stat().st_size]


def test_every_run_leaves_its_files_its_log_and_its_benchmark(smoke: Workspace):
    runs = sorted((smoke.results / "runs").glob("*/*/seed*"))
    assert len(runs) == 10
    for run in runs:
        names = {path.name for path in run.iterdir()}
        assert names == {"config.yaml", "final.json", "metrics.csv", "params.npz", "provenance.json", "timing.csv"}
        stem = Path("train", *run.parts[-3:])
        log = (smoke.results / "logs" / stem).with_suffix(".log").read_text()
        assert re.search(r"^ended: bound .* test error", log, flags=re.M)
        assert "no GPU was found: training on the CPU, 1 thread" in log
        assert pd.read_csv((smoke.results / "benchmarks" / stem).with_suffix(".tsv"), sep="\t")["s"][0] > 0


def test_every_job_says_what_it_needs(bare: Workspace):
    planned = bare.plan()
    for job, said in planned.items():
        resources = re.search(r"^    resources: (.*)$", said, flags=re.M)
        assert resources and {"gpu", "mem_mb", "runtime"} <= set(re.findall(r"(\w+)=", resources[1])), job
        assert "    log: " in said or job.rule == "all", job
        assert "    benchmark: " in said or job.rule != "train_run"
    # two trainings at a time on two cores without a GPU
    assert "gpu=0" in planned["train_run", "mnist/rbf/0"]


def test_trainings_ask_for_the_gpu_there_is_and_for_memory_for_their_images(bare: Workspace, tmp_path: Path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin"
    bare.replace("config/smoke.yaml", "mnist: {kind: mnist, train: 200,", "mnist: {kind: mnist, train: 60000,")
    planned = bare.plan("train", CUDA_VISIBLE_DEVICES="0", PATH=path)
    large, small = (planned["train_run", f"{name}/rbf/0"] for name in ("mnist", "rotated"))
    assert "gpu=1" in large and "gpu=1" in small
    asked = [int(re.search(r"mem_mb=(\d+)", said)[1]) for said in (large, small)]
    assert asked[0] > asked[1] + 1000  # 60,000 images of 28 × 28
    assert re.search(r"^ +- gpu=1\b", (bare.folder / "profiles/default/config.yaml").read_text(), flags=re.M)


def test_targets(bare: Workspace):
    runs = {"dataset", "train_run"}
    measured = {"toy", "insensitivity", "estimators"}
    for target, rules in {"data": {"dataset"}, "train": runs, "tables": runs | measured | {"table", "claims"}}.items():
        assert {job.rule for job in bare.plan(target)} == rules | {target}


def test_the_summary_shows_table_claims_and_report(smoke: Workspace):
    command = [sys.executable, "workflow/scripts/summary.py", "smoke"]
    said = subprocess.run(command, cwd=smoke.folder, capture_output=True, text=True, check=True).stdout
    assert "| rbf | RBF | 2.15 ± 0.03 |" in said
    assert "| claim | where | verdict | evidence |" in said
    assert said.rstrip().endswith("results/smoke/report.html")
