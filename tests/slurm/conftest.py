"""A Slurm of our own for these tests, where one can be started; they say so where it cannot."""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm.cluster import Cluster, why_there_is_none
from workspaces import Workspace

pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")

PROFILE = "profiles/slurm/config.yaml"
GPUS = 8  # more than there are trainings at a time in any test

# what says when, where and how long, and what is made of that
DIFFERENT = {"times.csv", "logs", "benchmarks", "checkpoints", "provenance.json", "timing.csv", "report.html"}
DIFFERENT |= {"index.html"} | {f"runs.{ending}" for ending in ("csv", "md", "tex", "html")}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One for all tests of a process."""
    if reason := why_there_is_none():
        pytest.skip(reason)
    root = Path(tempfile.mkdtemp(prefix="slurm-"))  # pytest's own folders are closed to others, which munge refuses
    root.chmod(0o755)
    try:
        with Cluster(root, GPUS) as started:
            yield started
    finally:
        shutil.rmtree(root, ignore_errors=True)


def digests(results: Path) -> dict[str, str]:
    """Sums of the result files that two runs must have in common."""
    files = [path.relative_to(results) for path in results.rglob("*") if path.is_file()]
    same = [path for path in files if not DIFFERENT & set(path.parts)]
    return {str(path): hashlib.sha256((results / path).read_bytes()).hexdigest() for path in same}


def fill_in(workspace: Workspace) -> Workspace:
    """A checkout's Slurm profile, as docs/slurm.md says: a partition; the cluster of the tests has no accounts."""
    workspace.replace(PROFILE, 'slurm_partition: ""', "slurm_partition: main")
    return workspace


def snakemake(cluster: Cluster, site: Workspace, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Snakemake as on a login node; but the cluster is asked more often how jobs are, as they are short."""
    profile = ("--workflow-profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "3")
    variables = {name: cluster.environment[name] for name in ("SLURM_CONF", "PATH")}
    return site.snakemake(*profile, *arguments, **variables)
