"""Runs that come with the repository are inputs: figures and tables are drawn from them, and nothing is trained."""

import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from workspaces import ROOT, Workspace

#: sizes whose runs come with the repository, and some of what must be among what is made of them
SHIPPED = {
    "paper": {"tables/mnist.csv", "figures/fig4.svg", "claims.csv", "index.html"},
    "ablation": {"tables/parity.csv", "tables/rotated.csv", "tables/mnist.csv"},
    "beyond": {"tables/few_mnist.csv", "figures/sizes.svg", "index.html"},
    "why": {"tables/recipes.csv", "figures/recipes.svg"},
}
MADE = ("tables", "figures", "claims.csv", "claims.md", "index.html")
RBF = "results/paper/runs/mnist/rbf/seed0"


def tracked(size: str) -> dict[str, bytes]:
    """Path and content of each result file of a size that a clone has."""
    command = ["git", "ls-files", "-z", f"results/{size}"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name: (ROOT / name).read_bytes() for name in listed.stdout.split("\0") if name}


def is_made(name: str) -> bool:
    return Path(name).parts[2] in MADE


@pytest.fixture
def clone(bare: Workspace, request: pytest.FixtureRequest) -> Workspace:
    """Run files with dates that mean nothing, without what is made of them."""
    for i, (name, content) in enumerate(sorted(tracked(request.param).items())):
        if not is_made(name):
            (bare.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (bare.folder / name).write_bytes(content)
            os.utime(bare.folder / name, (when := 1.7e9 + random.Random(i).uniform(0, 1e6), when))
    return bare


@pytest.mark.parametrize(("clone", "size"), [(size, size) for size in SHIPPED], indirect=["clone"])
def test_what_is_shipped_is_drawn_from_the_runs_byte_by_byte_without_tensorflow(clone, size: str, tmp_path: Path):
    for name in ("tensorflow", "gpflow", "tensorflow_probability"):
        (tmp_path / f"{name}.py").write_text(f"raise RuntimeError('{name} was loaded')\n")
    made = {name: content for name, content in tracked(size).items() if is_made(name)}
    assert {f"results/{size}/{name}" for name in SHIPPED[size]} <= set(made)
    asked = (*made, "--config", f"tier={size}")
    assert {job.rule for job in clone.plan(*asked)} <= {"table", "claims", "figure", "page"}
    clone.snakemake("--cores", "2", *asked, python_path=[tmp_path])
    assert [name for name, content in made.items() if (clone.folder / name).read_bytes() != content] == []
    assert "Nothing to be done" in clone.dry_run(*asked)


@pytest.mark.parametrize("clone", ["paper"], indirect=True)
def test_what_the_archive_lacks_is_named_and_building_leaves_it_alone(clone: Workspace):
    clone.replace("config/paper.yaml", "label: learned rotation}", "label: free rotation}")
    said = clone.dry_run("--config", "tier=paper")
    [warning] = re.findall("Made from other settings than config/paper.yaml has now, under results/paper: (.*)", said)
    assert {f"rotated/rotation/seed{seed}" for seed in (0, 1, 2)} <= set(warning.split(", "))
    assert "mnist/rbf/seed0" not in warning
    building = clone.plan("--config", "tier=paper", "runs=build")
    assert ("train_run", "mnist/rbf/0") in building
    assert all("results/paper_build/" in said for job, said in building.items() if job.rule == "train_run")
    shutil.rmtree(clone.folder / RBF)
    (clone.folder / "results/paper/runs/toy/bounds.csv").unlink()
    said = clone.dry_run("--config", "tier=paper", check=False)
    assert "Not in the archive, results/paper/runs: mnist/rbf/seed0, toy. --config tier=paper runs=build" in said


def test_the_shipped_crate_describes_the_files_that_are_there():
    folder = ROOT / "results/paper"
    entities = json.loads((folder / "ro-crate-metadata.json").read_text())["@graph"]
    described = {folder / entity["@id"] for entity in entities if entity["@type"] == "File"}
    assert not [file for file in described if not file.exists()]
    drawn = {file for kind in ("tables/*", "figures/*", "claims.*", "index.html") for file in folder.glob(kind)}
    assert drawn <= described


def test_the_trained_models_of_figure_4_come_along(mnist_data):
    """The RBF draws nothing, so its error is the run's to the digit; the others are seen on a part of the images."""
    import orbitgp

    models = {path.stem: orbitgp.load(path) for path in (ROOT / "results/paper/models").iterdir()}
    assert set(models) == {"rbf", "rotation", "affine", "local"}
    for name, model in models.items():
        final = json.loads((ROOT / f"results/paper/runs/mnist/{name}/seed0/final.json").read_text())
        assert model.evidence_ == final["elbo"]
        test = mnist_data.test if name == "rbf" else mnist_data.test.take(range(9000, 9500))
        error = 100 * (1 - model.score(test.images, test.labels))
        assert error == pytest.approx(final["test_error"]) if name == "rbf" else error < 5


def test_git_keeps_what_figures_need_and_leaves_out_what_is_large():
    def ignored(path: str) -> bool:
        return subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT).returncode == 0

    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("not a git repository")
    kept = [f"runs/mnist/rbf/seed0/{name}" for name in ("final.json", "metrics.csv", "timing.csv", "config.yaml")]
    kept += ["runs/mnist/rbf/seed0/provenance.json", "runs/toy/surfaces.npz", "runs/samples/samples.npz"]
    kept += ["figures/fig1.pdf", "tables/mnist.csv", "claims.md", "index.html", "times.csv", "models/affine.orbitgp"]
    assert not [name for name in kept if ignored(f"results/paper/{name}")]
    left_out = [
        "data/mnist-0.npz",
        "runs/mnist/rbf/seed0/params.npz",
        "checkpoints/x/lock",
        "logs/toy.log",
        "report.html",
        "report.rst",
        "article.pdf",
    ]
    assert [name for name in left_out if ignored(f"results/paper/{name}")] == left_out
    assert all(ignored(f"results/{size}/claims.md") for size in ("smoke", "quick", "paper_build"))
