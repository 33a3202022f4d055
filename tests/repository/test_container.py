"""The container file: its image is built and runs the workflow, where there is a builder that can have its base."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMAGE = "localhost/orbitgp-test"

#: where registries are behind a proxy, say; with --build-arg BASE=… for another base image
OPTIONS = shlex.split(os.environ.get("ORBITGP_BUILD_OPTIONS", ""))


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def base_image():
    named = [option.removeprefix("BASE=") for option in OPTIONS if option.startswith("BASE=")]
    return named[0] if named else re.search(r"^ARG BASE=(\S+)$", (ROOT / "Dockerfile").read_text(), flags=re.M)[1]


def has_base(builder):
    if run(builder, "info").returncode:
        return False
    return (
        not run(builder, "inspect", "--type=image", base_image()).returncode
        or not run(builder, "pull", base_image()).returncode
    )


@pytest.fixture
def builder():
    installed = [name for name in ("docker", "podman", "buildah") if shutil.which(name)]
    found = next(filter(has_base, installed), None)
    if found is None:
        pytest.skip(
            f"no builder of containers that works and can have {base_image()}; installed: {installed or 'none'}"
        )
    return found


def test_the_image_runs_the_workflow(builder, tmp_path):
    context = tmp_path / "orbitgp"
    assert not run("git", "clone", "--quiet", str(ROOT), str(context)).returncode
    built = run(builder, "build", *OPTIONS, "--tag", IMAGE, str(context))
    assert not built.returncode, (built.stdout + built.stderr)[-4000:]
    command = ["make", "run", "TIER=smoke"]
    if builder == "buildah":
        container = run(builder, "from", IMAGE).stdout.strip()
        done = run(builder, "run", container, "--", *command)
        run(builder, "rm", container)
    else:
        done = run(builder, "run", "--rm", IMAGE, *command)
    assert not done.returncode, (done.stdout + done.stderr)[-4000:]
    assert "results/smoke/index.html" in done.stdout
