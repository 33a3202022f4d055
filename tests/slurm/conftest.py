"""A Slurm of our own for these tests, where one can be started; they say so where it cannot."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm.cluster import Cluster, why_there_is_none

pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")

GPUS = 8  # more than there are trainings at a time in any test


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
