"""pyproject.toml, requirements.lock and environment.yml describe one environment, and hold no address."""

import copy
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

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
ADDRESS = ":" + "//"
# In pieces, so that this file does not match itself.
REGISTRIES = re.compile("|".join([r"py" r"pi\.org", r"python" r"hosted", r"npm" r"js\.", r"ana" r"conda\.org"]))


class Pin(NamedTuple):
    requirement: Requirement
    hashes: list[str]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))


def direct_requirements(project: dict[str, Any], python: str, platform: str) -> list[Requirement]:
    """What is needed to run, test, submit and build the package on such a machine (all use one environment)."""
    tables = project["project"]
    extras = [line for lines in tables["optional-dependencies"].values() for line in lines]
    requirements = [Requirement(line) for line in tables["dependencies"] + extras + project["build-system"]["requires"]]
    return [wanted for wanted in requirements if holds(wanted, python, platform)]


def holds(requirement: Requirement, python: str, platform: str) -> bool:
    """Whether a requirement is one on this Python and platform."""
    machine = {
        **default_environment(),
        "python_version": python,
        "python_full_version": f"{python}.7",
        "sys_platform": platform,
    }
    return requirement.marker is None or requirement.marker.evaluate(machine)


def pins_of_lock(lock: str) -> list[Pin]:
    logical_lines = lock.replace("\\\n", " ").splitlines()
    parts = [line.split(" --hash=") for line in logical_lines if line.strip() and line[0] not in "#-"]
    return [Pin(Requirement(first.strip()), [h.strip() for h in hashes]) for first, *hashes in parts]


def pip_requirements(environment: dict[str, Any]) -> list[Requirement]:
    """The packages that environment.yml leaves to pip, without the options (``-e .``) among them."""
    section = next(entry for entry in environment["dependencies"] if isinstance(entry, dict))
    return [Requirement(line) for line in section["pip"] if not line.startswith("-")]


def versions(requirements: list[Requirement], python: str, platform: str) -> dict[str, list[str]]:
    """Return the versions pinned for each package on one Python and platform."""
    found: dict[str, list[str]] = {}
    for requirement in requirements:
        if holds(requirement, python, platform):
            pin = str(requirement.specifier).removeprefix("==")
            found.setdefault(canonicalize_name(requirement.name), []).append(pin)
    return found


def disagreements_of_lock(project: dict[str, Any], lock: str) -> list[str]:
    """Say where the lock does not hold what pyproject.toml asks for."""
    pins = pins_of_lock(lock)
    found = [f"{pin.requirement.name}: no pin" for pin in pins if not _is_pin(pin.requirement)]
    found += [f"{pin.requirement}: no hash" for pin in pins if not pin.hashes]
    found += [f"{pin.requirement}: bad hash" for pin in pins if not all(map(_is_hash, pin.hashes))]
    if ADDRESS in lock:
        found.append("the lock holds an address")
    for python in PYTHONS:
        for platform in PLATFORMS:
            locked = versions([pin.requirement for pin in pins if _is_pin(pin.requirement)], python, platform)
            where = f"on Python {python}, {platform}"
            found += [f"{name}: pins {v} {where}" for name, v in locked.items() if len(v) != 1]
            for wanted in direct_requirements(project, python, platform):
                pinned = locked.get(canonicalize_name(wanted.name), [])
                if not pinned:
                    found.append(f"{wanted.name}: not in the lock {where}")
                found += [f"{wanted}: locked at {v} {where}" for v in pinned if v not in wanted.specifier]
    return found


def disagreements_of_environment(project: dict[str, Any], lock: str, environment: dict[str, Any]) -> list[str]:
    """Say where environment.yml would install something else than the lock."""
    requirements = pip_requirements(environment)
    found = [f"{requirement}: no pin" for requirement in requirements if not _is_pin(requirement)]
    built_with = {Requirement(line).name for line in project["build-system"]["requires"]}
    for python in PYTHONS:
        direct = direct_requirements(project, python, "linux")
        wanted = {canonicalize_name(r.name) for r in direct if r.name not in built_with}
        locked = versions([pin.requirement for pin in pins_of_lock(lock)], python, "linux")
        listed = versions(requirements, python, "linux")
        found += [f"{name}: not in environment.yml" for name in sorted(wanted - listed.keys())]
        found += [f"{name}: not asked for by pyproject.toml" for name in sorted(listed.keys() - wanted)]
        found += [
            f"{name}: {pinned} in environment.yml, {locked.get(name)} in the lock on Python {python}"
            for name, pinned in listed.items()
            if pinned != locked.get(name)
        ]
    return found


def _is_pin(requirement: Requirement) -> bool:
    return re.fullmatch(r"==[^*,]+", str(requirement.specifier)) is not None


def _is_hash(text: str) -> bool:
    return re.fullmatch(r"sha256:[0-9a-f]{64}", text) is not None


def files_of_repository() -> list[Path]:
    """Every file that git tracks, or would if asked to add everything."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a checkout, so that the repository's files cannot be told from others")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def registry_addresses(content: bytes) -> list[str]:
    """Return the hosts of package registries named in a file; none if it is not text."""
    return [] if b"\0" in content else REGISTRIES.findall(content.decode("utf-8", errors="replace"))


def test_lock_and_environment_hold_what_pyproject_asks_for() -> None:
    assert disagreements_of_lock(PROJECT, LOCK) == []
    assert disagreements_of_environment(PROJECT, LOCK, ENVIRONMENT) == []


def test_one_range_of_python() -> None:
    declared = PROJECT["project"]["requires-python"]
    assert [f"3.{minor}" for minor in range(20) if f"3.{minor}" in SpecifierSet(declared)] == list(PYTHONS)
    assert f"python {declared}" in ENVIRONMENT["dependencies"]
    assert (PROJECT["tool"]["ruff"]["target-version"], PROJECT["tool"]["mypy"]["python_version"]) == ("py310", "3.10")


LOCK_DAMAGE = {
    "other version": ("gpflow==2.11.2", "gpflow==2.9.2", "locked at 2.9.2"),
    "missing": ("numpy==1.26.4", "numpie==1.26.4", "numpy: not in the lock"),
    "too new": ("numpy==1.26.4", "numpy==2.1.0", "locked at 2.1.0"),
    "not pinned": ("ruff==", "ruff>=", "ruff: no pin"),
    "wrong marker": ("python_full_version < '3.11'", "python_full_version < '3.12'", "pins"),
    "no hash": (r" \\\n +--hash=\S+", "", "no hash"),
    "bad hash": ("--hash=sha256:", "--hash=md5:", "bad hash"),
    "address": ("absl-py==", f"--index-url https{ADDRESS}somewhere\nabsl-py==", "address"),
}


@pytest.mark.parametrize("damage", LOCK_DAMAGE)
def test_a_damaged_lock_is_noticed(damage: str) -> None:
    before, after, complaint = LOCK_DAMAGE[damage]
    assert re.search(before, LOCK)
    found = disagreements_of_lock(PROJECT, re.sub(before, after, LOCK))
    assert any(complaint in line for line in found), found


def test_a_dependency_that_was_not_locked_is_noticed() -> None:
    project = copy.deepcopy(PROJECT)
    project["project"]["dependencies"].append("a-new-dependency>=1")
    assert any("not in the lock" in line for line in disagreements_of_lock(project, LOCK))
    assert any("not in env" in line for line in disagreements_of_environment(project, LOCK, ENVIRONMENT))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("numpy==1.26.3", "'1.26.3'] in environment.yml"),
        ("numpy>=1.26", "no pin"),
        ("something-else==1.0", "not asked for"),
    ],
)
def test_another_line_in_the_environment_is_noticed(line: str, complaint: str) -> None:
    environment = copy.deepcopy(ENVIRONMENT)
    next(entry for entry in environment["dependencies"] if isinstance(entry, dict))["pip"].append(line)
    found = disagreements_of_environment(PROJECT, LOCK, environment)
    assert any(complaint in text for text in found), found


def test_no_file_names_a_package_registry() -> None:
    host = "py" + "pi.org"
    assert registry_addresses(f"see https{ADDRESS}{host}/simple".encode()) == [host]
    named = {str(path.relative_to(ROOT)): registry_addresses(path.read_bytes()) for path in files_of_repository()}
    assert {path: hosts for path, hosts in named.items() if hosts} == {}


def test_citation_is_of_this_version_and_of_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    project = PROJECT["project"]
    assert citation["version"] == project["version"] == orbitgp.__version__
    assert citation["license"] == project["license"]
    [paper] = citation["references"]
    assert paper["title"] == "Learning Invariances using the Marginal Likelihood"
    assert [author["family-names"] for author in paper["authors"]] == ["Wilk", "Bauer", "John", "Hensman"]
