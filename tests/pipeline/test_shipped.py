"""The results that come with the repository are what the workflow makes of the run files beside them."""

import subprocess
from pathlib import Path

import pytest
from workspaces import ROOT, Workspace

SHIPPED = "results/paper"
MADE = ("tables", "figures", "claims.csv", "claims.md")
#: what takes more than seconds
WORK = {"train_run", "dataset", "toy", "samples", "insensitivity", "estimators"}


def tracked() -> dict[str, bytes]:
    """Path and content of each file of the paper's size that a clone has."""
    listed = subprocess.run(["git", "ls-files", "-z", SHIPPED], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name: (ROOT / name).read_bytes() for name in listed.stdout.split("\0") if name}


def is_made(name: str) -> bool:
    return Path(name).relative_to(SHIPPED).parts[0] in MADE


@pytest.fixture
def without(bare: Workspace) -> Workspace:
    """With the run files, without what is made of them."""
    for name, content in tracked().items():
        if not is_made(name):
            (bare.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (bare.folder / name).write_bytes(content)
    return bare


def test_tables_and_figures_are_made_from_the_runs_byte_by_byte_without_training(without):
    made = {name: content for name, content in tracked().items() if is_made(name)}
    assert {f"{SHIPPED}/tables/mnist.csv", f"{SHIPPED}/figures/fig4.svg"} <= set(made)
    planned = without.plan(*made, "--config", "tier=paper")
    assert planned and not {job.rule for job in planned} & WORK
    without.snakemake(*made, "--cores", "2", "--config", "tier=paper")
    assert [name for name, content in made.items() if (without.folder / name).read_bytes() != content] == []
