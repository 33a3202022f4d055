"""The whole smoke size: what it leaves, and what it says."""

import csv
import re
import sys
from pathlib import Path

import pandas as pd
from workspaces import Workspace

FIGURES = ("fig1", "fig2", "fig2_bound", "fig3", "fig4", "fig5", "appendix_a", "appendix_b")
TABLES = (
    *("toy", "toy_halves", "toy_bounds", "toy_rates", "parity", "mnist", "rotated", "insensitivity", "estimators"),
    *("costs", "monitor", "runs"),
)


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
    planned = bare.plan("train", "--printshellcmds", CUDA_VISIBLE_DEVICES="0", PATH=path)
    large, small = (planned["train_run", f"{name}/rbf/0"] for name in ("mnist", "rotated"))
    assert "gpu=1" in large and "gpu=1" in small
    assert " --gpus 1 " in large  # so that a training says when it finds none
    asked = [int(re.search(r"mem_mb=(\d+)", said)[1]) for said in (large, small)]
    assert asked[0] > asked[1] + 1000  # 60,000 images of 28 × 28
    assert re.search(r"^ +- gpu=1\b", (bare.folder / "profiles/default/config.yaml").read_text(), flags=re.M)


def test_targets(bare: Workspace):
    runs = {"dataset", "train_run"}
    measured = {"toy", "toy_draws", "insensitivity", "estimators", "costs"}
    for target, rules in {"data": {"dataset"}, "train": runs, "tables": runs | measured | {"table", "claims"}}.items():
        assert {job.rule for job in bare.plan(target)} == rules | {target}


def test_it_says_how_far_it_is_and_what_came_out(smoke: Workspace):
    *lines, took = (smoke.folder / "made.txt").read_text().splitlines()
    assert lines[0] == "Without a GPU: some 0.1 hours on two cores."
    assert sum(bool(re.match(r"\d+ of 10 trainings, \d running, \d+ %", line)) for line in lines) >= 5
    assert re.search(r"^ *rotation +2\.08 ± 0\.06 +[0-9.]+", "\n".join(lines), flags=re.M)
    assert re.match(r"Claims: .*\d+ not measured.* \(results/smoke/claims\.md\)", lines[-4])
    assert lines[-2:] == [
        "All figures, tables and claims, in one page: results/smoke/index.html",
        "Where they come from: results/smoke/report.html",
    ]
    assert re.match(
        r"All of it took .*; results/smoke/logs/run\.log and results/smoke/times\.csv have the times\.", took
    )
    assert "Finished jobid" in (smoke.results / "logs" / "run.log").read_text()
    with open(smoke.results / "times.csv", encoding="utf-8") as lines:
        (row,) = csv.DictReader(lines)
    assert (row["device"], row["trainings_ended"], row["trainings_to_do"]) == ("CPU", "10", "10")
    assert float(row["seconds"]) > 10


def test_without_a_gpu_the_papers_size_has_to_be_insisted_on(bare: Workspace):
    done = bare.python("workflow/scripts/run.py", "paper")
    assert done.returncode == 1 and not (bare.folder / "results").exists()
    assert re.match(r"No GPU was found, and on two cores size paper takes some [0-9,]+ hours\.", done.stdout)


def test_a_failure_shows_the_end_of_the_log(bare: Workspace):
    bare.replace("Snakefile", 'min_version("9.5")\n', 'min_version("9.5")\nraise RuntimeError("it broke")\n')
    done = bare.python("workflow/scripts/run.py", "smoke")
    assert done.returncode == 1
    assert "results/smoke/logs/run.log has all of it" in done.stdout and "it broke" in done.stdout
