"""Provenance of a result: commit, versions and device, and the memory that it took."""

from __future__ import annotations

import platform
import resource
import subprocess
from importlib.metadata import version
from typing import Any

from orbitgp import __version__
from orbitgp.fitting import devices
from orbitgp_paper import sources

#: where changes make a commit dirty: anywhere but in the repository's results, which a training writes anew
CODE = (":/", ":(top,exclude)results")

#: whose versions can decide a result
PACKAGES = ("gpflow", "tensorflow", "tensorflow-probability", "numpy")


def provenance() -> dict[str, Any]:
    """Commit, versions and device of this process; to be asked before a training, as the code may change beside it."""
    commit = _git("rev-parse", "HEAD")
    return {
        "commit": commit,
        "dirty": None if commit is None else bool(_git("status", "--porcelain", "--untracked-files=no", "--", *CODE)),
        "source_digest": sources.training_digest(),
        "versions": {"python": platform.python_version(), "orbitgp": __version__} | {p: version(p) for p in PACKAGES},
        "device": devices.describe(),
    }


def peak_memory() -> dict[str, Any]:
    """The most memory that this process has had so far, in MB."""
    return {
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "peak_gpu_memory_mb": devices.peak_gpu_memory_mb(),
    }


def _git(*arguments: str) -> str | None:
    """None where there is no git, or no repository around this package."""
    try:
        done = subprocess.run(["git", *arguments], cwd=sources.SOURCE, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
