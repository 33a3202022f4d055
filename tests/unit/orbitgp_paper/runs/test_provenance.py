import json
import platform
import subprocess
from importlib.metadata import PackageNotFoundError
from unittest.mock import Mock

import numpy as np
import pytest
import tensorflow as tf

import orbitgp
from orbitgp_paper import sources
from orbitgp_paper.runs import provenance as module
from orbitgp_paper.runs.provenance import peak_memory, provenance


def test_it_says_what_ran_where():
    found = provenance()
    assert found["versions"]["python"] == platform.python_version()
    assert found["versions"]["tensorflow"] == tf.__version__
    assert found["versions"]["numpy"] == np.__version__
    assert found["source_digest"] == sources.training_digest()
    assert found["device"] == ("CPU" if not tf.config.list_physical_devices("GPU") else found["device"])
    assert 100 < peak_memory()["peak_memory_mb"] < 1e6
    json.dumps(found | peak_memory(), allow_nan=False)


def test_a_folder_that_was_never_installed_has_a_version_too(monkeypatch):
    def installed(name):
        if name == "orbitgp":
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(module, "version", installed)
    assert provenance()["versions"]["orbitgp"] == orbitgp.__version__


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Git in a folder around the packages' own, ``src``."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)

    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    for name in ("src/a.py", "results/final.json", "src/results/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(sources, "SOURCE", tmp_path / "src")
    monkeypatch.setattr(sources, "training_digest", lambda: "")
    return git


def test_the_commit_is_that_of_the_package_and_changes_are_told(repository, tmp_path):
    repository("init")
    repository("add", ".")
    repository("commit", "-m", "one")
    found = provenance()
    assert (found["commit"], found["dirty"]) == (repository("rev-parse", "HEAD"), False)
    (tmp_path / "results/final.json").unlink()  # as Snakemake does before it trains again
    (tmp_path / "new.txt").write_text("")  # nor are new results a change of the code
    assert provenance()["dirty"] is False
    (tmp_path / "src/results/b.py").write_text("2")
    assert provenance()["dirty"] is True


def test_without_a_repository_or_git_there_is_no_commit(repository, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance()["commit"] is provenance()["dirty"] is None
    for error in (FileNotFoundError("git"), subprocess.TimeoutExpired("git", 30)):
        monkeypatch.setattr(module.subprocess, "run", Mock(side_effect=error))
        assert provenance()["commit"] is provenance()["dirty"] is None
