"""The wheel, where there is nothing but what it asks for: no Snakemake, no YAML, no pydantic, no matplotlib."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

USE = """
import importlib.util
import sys
import numpy as np
import orbitgp

for name in ("snakemake", "yaml", "pydantic", "matplotlib", "pandas", "pytest"):
    assert importlib.util.find_spec(name) is None, name
assert orbitgp.__file__.startswith(sys.prefix), orbitgp.__file__
rng = np.random.default_rng(0)
images, labels = rng.uniform(size=(40, 6, 5, 3)), np.array(["a", "b", "c", "d"] * 10)
model = orbitgp.InvariantClassifier("affine", inducing=5, steps=3, draws=4).fit(images, labels)
model.save(sys.argv[1])
assert np.array_equal(orbitgp.load(sys.argv[1]).predict_proba(images), model.predict_proba(images))
print(model.predict(images[:3]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, since setuptools leaves folders beside what it builds."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "src", folder / "copy" / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, folder / "copy")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    command = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, folder / "copy"]
    subprocess.run(command, check=True, capture_output=True)
    [made] = folder.glob("*.whl")
    return made


def required(wheel: Path) -> list[Requirement]:
    """What the wheel asks for besides its extras."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if re.fullmatch(r"orbitgp-[^/]*\.dist-info/METADATA", name)]
        metadata = Parser().parsestr(archive.read(name).decode())
    return [wanted for wanted in map(Requirement, metadata.get_all("Requires-Dist")) if _applies(wanted)]


def _applies(wanted: Requirement) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({"extra": ""})


def test_the_wheel_asks_for_the_librarys_dependencies_alone(wheel: Path) -> None:
    names = {wanted.name for wanted in required(wheel)}
    assert names == {Requirement(line).name for line in DECLARED["dependencies"]}
    assert not names & {"snakemake", "pyyaml", "pydantic", "matplotlib", "pandas"}
    with zipfile.ZipFile(wheel) as archive:
        assert {name.split("/")[0] for name in archive.namelist() if ".dist-info/" not in name} == {
            "orbitgp",
            "orbitgp_paper",
        }


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    That of an environment with the wheel, and with links to what the wheel asks for, and to what this asks for in turn.
    Nothing is downloaded, and a dependency that is not declared is not there.
    """
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    wanted, seen = required(wheel), set()
    while wanted:
        name = canonicalize_name(wanted.pop().name)
        if name in seen:
            continue
        seen.add(name)
        found = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(found.locate_file(top))
        wanted += [inner for inner in map(Requirement, found.requires or ()) if _applies(inner)]
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return folder / "bin" / "python"


def test_an_estimator_works_where_nothing_else_is_installed(python: Path, tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
    settings = {"capture_output": True, "text": True, "cwd": tmp_path, "env": clean}
    done = subprocess.run([python, "-c", USE, tmp_path / "a.orbitgp"], **settings)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "5 inducing points, 3 steps" in done.stdout
    done = subprocess.run([python, "-m", "orbitgp", "info", tmp_path / "a.orbitgp"], **settings)
    assert (done.returncode, done.stderr) == (0, "") and "estimator: InvariantClassifier" in done.stdout
