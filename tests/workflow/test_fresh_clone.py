"""A clone that has result files, but no images, no parameters, no records of Snakemake, and dates that mean nothing."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

EXPENSIVE = {"dataset", "train_run", "toy", "samples", "insensitivity", "estimators"}
RBF = "results/smoke/runs/mnist/rbf/seed0"
A_NEW_VARIANT = (
    "      local:\n",
    "      wide: {dataset: mnist, orbit: {kind: rotation, alpha: 90}, label: wide}\n      local:\n",
)


@pytest.fixture
def clone(smoke, tmp_path: Path):
    """What of the smoke size would be in a repository, if it were the paper's."""
    cloned = smoke.copy(tmp_path / "clone")
    shutil.rmtree(cloned.folder / ".snakemake")
    for name in ("data", "checkpoints", "logs", "benchmarks", "pages"):
        shutil.rmtree(cloned.results / name)
    for path in [*cloned.results.rglob("params.npz"), cloned.results / "report.html"]:
        path.unlink()
    return cloned


def scatter_dates(folder: Path, seed: int) -> None:
    shuffle = random.Random(seed)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            when = 1.7e9 + shuffle.uniform(0, 1e6)
            os.utime(path, (when, when))


def expensive(jobs) -> set:
    return {job for job in jobs if job.rule in EXPENSIVE}


@pytest.mark.parametrize("seed", [0, 1])
def test_whatever_the_dates_only_what_is_cheap_is_planned(clone, seed: int):
    scatter_dates(clone.folder, seed)
    assert not expensive(clone.plan("figures", "tables"))
    assert not expensive(clone.plan())


def test_figures_are_drawn_without_tensorflow_and_come_out_the_same(clone, smoke, tmp_path: Path):
    for name in ("tensorflow", "gpflow", "tensorflow_probability"):
        (tmp_path / "poison").mkdir(exist_ok=True)
        (tmp_path / "poison" / f"{name}.py").write_text(f"raise RuntimeError('{name} was loaded')\n")
    shutil.rmtree(clone.results / "figures")
    shutil.rmtree(clone.results / "tables")
    clone.snakemake("--cores", "2", "figures", "tables", python_path=[tmp_path / "poison"])
    made = sorted(path for name in ("figures", "tables") for path in (smoke.results / name).iterdir())
    assert len(made) == 8 * 3 + 9 * 3
    for path in made:
        again = clone.results / path.relative_to(smoke.results)
        assert again.read_bytes() == path.read_bytes(), path.name
    assert "Nothing to be done" in clone.snakemake("--dry-run", "figures", "tables").stdout


def test_a_new_variant_trains_alone(clone):
    scatter_dates(clone.folder, 2)
    clone.replace("config/smoke.yaml", *A_NEW_VARIANT)
    assert expensive(clone.plan()) == {("dataset", "mnist"), ("train_run", "mnist/wide/0")}


def test_a_changed_variant_trains_alone_and_is_measured_again(clone):
    scatter_dates(clone.folder, 3)
    clone.replace(
        "config/smoke.yaml",
        "affine: {dataset: mnist, orbit: {kind: affine, spread: 0.05}",
        "affine: {dataset: mnist, orbit: {kind: affine, spread: 0.06}",
    )
    assert expensive(clone.plan()) == {
        ("dataset", "mnist"),
        ("train_run", "mnist/affine/0"),
        ("samples", ""),
        ("insensitivity", "affine"),
    }


def test_what_came_with_the_repository_and_is_trained_here_is_not_trained_once_more(clone):
    clone.snakemake("--cores", "2", f"{RBF}/final.json", "--forcerun", "train_run")
    follows = {("insensitivity", "rbf")}  # it has a model to measure now
    assert expensive(clone.plan("figures")) == follows
    clone.replace("config/smoke.yaml", *A_NEW_VARIANT)
    clone.snakemake("--cores", "2", "results/smoke/runs/mnist/wide/seed0/final.json")  # makes the images
    assert (clone.results / "data" / "mnist.npz").exists()
    assert expensive(clone.plan("figures")) == follows
    clone.comment("src/orbitgp/kernels.py")
    assert ("train_run", "mnist/rbf/0") in clone.plan("figures")


def test_a_model_that_a_measurement_needs_is_trained_once(clone):
    clone.replace("config/smoke.yaml", "digits: 4, draws: 4", "digits: 4, draws: 6")
    follows = {("insensitivity", "affine")}
    trained = {("train_run", "mnist/affine/0"), ("samples", "")}
    assert expensive(clone.plan("figures")) == follows | trained
    clone.snakemake("--cores", "2", "results/smoke/figures/fig1.svg")
    assert expensive(clone.plan("figures")) == follows


def test_a_job_of_a_cluster_that_is_started_again_asks_for_no_images_that_nobody_planned(clone):
    """Its results are gone by then, and with them what says that they came with the repository."""
    shutil.rmtree(clone.folder / RBF)
    job = ("--target-jobs", "train_run:experiment=mnist,variant=rbf,seed=0", "--allowed-rules", "train_run")
    clone.snakemake("--mode", "remote", "--force", "--cores", "1", "--nolock", *job)
    assert (clone.folder / RBF / "final.json").exists()


def test_results_of_other_settings_are_told_apart_even_when_they_are_newer(clone):
    clone.replace("config/smoke.yaml", "label: learned rotation", "label: free rotation")
    os.utime(clone.folder / "config" / "smoke.yaml", (1, 1))
    said = clone.snakemake("--dry-run").stdout
    assert (
        "Made from other settings than config/smoke.yaml has now, under results/smoke: rotated/rotation/seed0" in said
    )


def test_a_fig_module_edited_in_a_clone_is_redrawn(clone):
    clone.comment("src/orbitgp/figures/fig5.py")
    planned = clone.plan("figures")
    assert ("fig5", "") in planned and not expensive(planned)


def test_git_keeps_what_figures_need_and_leaves_out_what_is_large():
    root = Path(__file__).resolve().parents[2]

    def ignored(path: str) -> bool:
        return subprocess.run(["git", "check-ignore", "-q", path], cwd=root).returncode == 0

    if not shutil.which("git") or not (root / ".git").exists():
        pytest.skip("not a git repository")
    run = "results/paper/runs/mnist/rbf/seed0"
    kept = ["final.json", "metrics.csv", "timing.csv", "provenance.json", "config.yaml"]
    assert not [name for name in kept if ignored(f"{run}/{name}")]
    kept = ["runs/toy/surfaces.npz", "runs/samples/samples.npz", "figures/fig1.pdf", "tables/mnist.csv", "claims.md"]
    assert not [name for name in kept if ignored(f"results/paper/{name}")]
    left_out = [
        "data/mnist.npz",
        "runs/mnist/rbf/seed0/params.npz",
        "checkpoints/x/lock",
        "logs/toy.log",
        "report.html",
    ]
    assert [name for name in left_out if ignored(f"results/paper/{name}")] == left_out
    assert ignored("results/smoke/claims.md") and ignored("results/quick/claims.md")
