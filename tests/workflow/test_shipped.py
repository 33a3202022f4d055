"""The results that come with the repository are what the workflow makes of the run files beside them."""

import subprocess
from pathlib import Path

import pytest
from workspaces import ROOT, Workspace

#: sizes whose runs come with the repository, and some of what must be among what is made of them
SHIPPED = {
    "paper": {"tables/mnist.csv", "figures/fig4.svg"},
    "ablation": {"tables/parity.csv", "tables/rotated.csv", "tables/mnist.csv"},
}
MADE = ("tables", "figures", "claims.csv", "claims.md")
#: what takes more than seconds
WORK = {"train_run", "dataset", "toy", "samples", "insensitivity", "estimators"}


def tracked(size: str) -> dict[str, bytes]:
    """Path and content of each result file of a size that a clone has."""
    command = ["git", "ls-files", "-z", f"results/{size}"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name: (ROOT / name).read_bytes() for name in listed.stdout.split("\0") if name}


def is_made(name: str) -> bool:
    return Path(name).parts[2] in MADE


@pytest.fixture(params=SHIPPED)
def size(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def without(bare: Workspace, size: str) -> Workspace:
    """With the run files, without what is made of them."""
    for name, content in tracked(size).items():
        if not is_made(name):
            (bare.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (bare.folder / name).write_bytes(content)
    return bare


def test_tables_and_figures_are_made_from_the_runs_byte_by_byte_without_training(without, size):
    made = {name: content for name, content in tracked(size).items() if is_made(name)}
    assert {f"results/{size}/{name}" for name in SHIPPED[size]} <= set(made)
    planned = without.plan(*made, "--config", f"tier={size}")
    assert planned and not {job.rule for job in planned} & WORK
    without.snakemake(*made, "--cores", "2", "--config", f"tier={size}")
    assert [name for name, content in made.items() if (without.folder / name).read_bytes() != content] == []
