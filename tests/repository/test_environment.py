"""pyproject.toml, requirements.lock and environment.yml describe one environment, and hold no address."""

import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import orbitgp

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.10", "3.11", "3.12")
PLATFORMS = ("linux", "darwin")
# In pieces, so that this file does not match itself.
REGISTRIES = re.compile("|".join([r"py" r"pi\.org", r"python" r"hosted", r"npm" r"js\.", r"ana" r"conda\.org"]))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
GPU_LOCK = (ROOT / "requirements-gpu.lock").read_text(encoding="utf-8")


def lines_of(lock: str) -> list[list[str]]:
    """Each with its hashes."""
    whole = lock.replace("\\\n", " ").splitlines()
    return [line.split(" --hash=") for line in whole if line.strip() and line[0] != "#"]


def pins_of(lock: str) -> list[Requirement]:
    return [Requirement(line.strip()) for line, *_ in lines_of(lock)]


PINS = pins_of(LOCK)
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))


def direct_requirements(python: str, platform: str, build: bool = True) -> list[Requirement]:
    """What is needed to run, test, submit and build the package on such a machine (all use one environment)."""
    tables = PROJECT["project"]
    lines = tables["dependencies"] + [line for extra in tables["optional-dependencies"].values() for line in extra]
    lines += PROJECT["build-system"]["requires"] if build else []
    return [wanted for wanted in map(Requirement, lines) if holds(wanted, python, platform)]


def holds(requirement: Requirement, python: str, platform: str) -> bool:
    """Whether a requirement is one on this Python and platform."""
    machine = {"python_version": python, "python_full_version": f"{python}.7", "sys_platform": platform}
    return requirement.marker is None or requirement.marker.evaluate({**default_environment(), **machine})


def versions(requirements: list[Requirement], python: str, platform: str) -> dict[str, str]:
    """The one version that is pinned for each package on one Python and platform."""
    found: dict[str, str] = {}
    for requirement in requirements:
        if holds(requirement, python, platform):
            name, pin = canonicalize_name(requirement.name), str(requirement.specifier)
            assert name not in found, f"{name} is pinned twice on Python {python}, {platform}"
            assert re.fullmatch(r"==[^*,]+", pin), f"{requirement} is no pin"
            found[name] = pin.removeprefix("==")
    return found


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_lock_holds_what_pyproject_asks_for(python: str, platform: str) -> None:
    locked = versions(PINS, python, platform)
    for wanted in direct_requirements(python, platform):
        pin = locked.get(canonicalize_name(wanted.name))
        assert pin is not None and pin in wanted.specifier, f"{wanted}: locked at {pin}"


def test_every_line_of_the_lock_has_its_hashes_and_none_an_address() -> None:
    assert ":" + "//" not in LOCK + GPU_LOCK
    for line, *hashes in lines_of(LOCK) + lines_of(GPU_LOCK):
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", text.strip()) for text in hashes), line


def test_cudas_libraries_are_those_that_tensorflow_asks_for() -> None:
    asked = [Requirement(line) for line in requires("tensorflow") or [] if "and-cuda" in line]
    locked = {pin.name: str(pin.specifier).removeprefix("==") for pin in pins_of(GPU_LOCK)}
    assert locked.keys() == {wanted.name for wanted in asked}
    assert all(locked[wanted.name] in wanted.specifier for wanted in asked)


@pytest.mark.parametrize("python", PYTHONS)
def test_environment_installs_what_the_lock_holds_and_pyproject_asks_for(python: str) -> None:
    (lines,) = (entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict))
    listed = versions([Requirement(line) for line in lines if not line.startswith("-")], python, "linux")
    assert listed.keys() == {canonicalize_name(wanted.name) for wanted in direct_requirements(python, "linux", False)}
    assert listed.items() <= versions(PINS, python, "linux").items()


def test_one_range_of_python() -> None:
    declared = PROJECT["project"]["requires-python"]
    assert [f"3.{minor}" for minor in range(20) if f"3.{minor}" in SpecifierSet(declared)] == list(PYTHONS)
    assert f"python {declared}" in ENVIRONMENT["dependencies"]
    assert (PROJECT["tool"]["ruff"]["target-version"], PROJECT["tool"]["mypy"]["python_version"]) == ("py310", "3.10")


def test_no_file_names_a_package_registry() -> None:
    """None that git tracks, or would if asked to add everything."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a checkout, so that the repository's files cannot be told from others")
    assert REGISTRIES.search("see py" + "pi.org/simple")
    texts = {name: (ROOT / name).read_bytes() for name in listed.stdout.split("\0") if (ROOT / name).is_file()}
    named = {
        name: REGISTRIES.findall(text.decode(errors="replace")) for name, text in texts.items() if b"\0" not in text
    }
    assert {name: hosts for name, hosts in named.items() if hosts} == {}


def test_citation_is_of_this_version_and_of_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    project = PROJECT["project"]
    assert citation["version"] == project["version"] == orbitgp.__version__
    assert citation["license"] == project["license"]
    [paper] = citation["references"]
    assert paper["title"] == "Learning Invariances using the Marginal Likelihood"
    assert [author["family-names"] for author in paper["authors"]] == ["Wilk", "Bauer", "John", "Hensman"]
