import json
import subprocess
import sys
from pathlib import Path

import pytest

from orbitgp_paper import sources

PLANTED = {
    "__init__.py": "",
    "checks.py": "import numpy\n",
    "models.py": "from orbitgp.orbits.base import Orbit\nfrom orbitgp import checks\n",
    "sources.py": "",
    "configuration/__init__.py": "",
    "configuration/checks.py": "",
    "orbits/__init__.py": "from orbitgp.orbits.base import Orbit\n",
    "orbits/base.py": "import orbitgp.models\n",  # a circle
    "orbits/unused.py": "",
    "training/__init__.py": "",
    "training/run.py": "def later():\n    from orbitgp import models\n",
    "figures/__init__.py": "",
    "figures/style.py": "import orbitgp_other.checks\nfrom other.orbitgp import checks\n",
    "figures/fig3.py": "from orbitgp_paper.figures import style\n",
    "analysis/__init__.py": "",
    "analysis/tables.py": "",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "orbitgp"
    for name, text in PLANTED.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "py.typed").write_text("")
    (root / "orbits" / "__pycache__").mkdir()
    (root / "orbits" / "__pycache__" / "base.cpython-311.pyc").write_bytes(b"1")
    monkeypatch.setattr(sources, "PACKAGE", root)
    return root


def test_every_byte_counts_and_order_does_not(package: Path) -> None:
    parts = ["models.py", "orbits"]
    before = sources.digest(*parts)
    assert len(before) == 64
    assert sources.digest("orbits", "models.py", "orbits/base.py", "models.py") == before
    assert sources.digest("models.py") != before
    (package / "checks.py").write_text("# not asked for")
    (package / "orbits" / "__pycache__" / "base.cpython-311.pyc").write_bytes(b"2")
    assert sources.digest(*parts) == before
    (package / "orbits" / "unused.py").write_text(" ")
    assert sources.digest(*parts) != before


def test_a_module_that_moves_or_comes_or_goes_counts(package: Path) -> None:
    seen = {sources.digest("orbits")}
    (package / "orbits" / "unused.py").rename(package / "orbits" / "used.py")
    seen.add(sources.digest("orbits"))
    (package / "orbits" / "used.py").unlink()
    seen.add(sources.digest("orbits"))
    (package / "orbits" / "deep").mkdir()
    (package / "orbits" / "deep" / "new.py").write_text("")
    seen.add(sources.digest("orbits"))
    assert len(seen) == 4


def test_text_does_not_run_from_one_module_into_the_next(package: Path) -> None:
    first, second = package / "models.py", package / "checks.py"
    first.write_text("ab")
    second.write_text("c")
    before = sources.digest("models.py", "checks.py")
    first.write_text("a")
    second.write_text("bc")
    assert sources.digest("models.py", "checks.py") != before


def test_only_what_a_training_depends_on_is_in_its_digest(package: Path) -> None:
    before = sources.training_digest()
    for name in ("figures/fig3.py", "analysis/tables.py", "configuration/checks.py", "sources.py", "py.typed"):
        (package / name).write_text("# changed\n")
        assert sources.training_digest() == before
    seen = {before}
    for name in ("models.py", "orbits/base.py", "training/run.py", "__init__.py"):
        (package / name).write_text("# changed\n")
        seen.add(sources.training_digest())
    assert len(seen) == 5


def test_imports_are_followed_to_their_end(package: Path) -> None:
    assert sources.with_imports("figures/fig3.py") == [
        "__init__.py",
        "figures/__init__.py",
        "figures/fig3.py",
        "figures/style.py",
    ]
    assert sources.with_imports("training/run.py") == [
        "__init__.py",
        "checks.py",
        "models.py",
        "orbits/__init__.py",
        "orbits/base.py",
        "training/run.py",
    ]
    both = set(sources.with_imports("figures/fig3.py")) | set(sources.with_imports("training/run.py"))
    assert sources.with_imports("training/run.py", "figures/fig3.py") == sorted(both)


@pytest.mark.parametrize("of", [sources.digest, sources.with_imports])
def test_a_part_that_is_not_there_is_named(of: object) -> None:
    with pytest.raises(FileNotFoundError, match=r"orbitgp has no module or package 'figures/fig99\.py'"):
        of("files.py", "figures/fig99.py")  # type: ignore[operator]


@pytest.mark.parametrize("module", ["figures/fig3.py", "experiments/datasets.py"])
def test_what_python_loads_is_what_is_found(module: str) -> None:
    name = "orbitgp." + module.removesuffix(".py").replace("/", ".")
    code = (
        f"import json, sys; import {name}; "
        "print(json.dumps([m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'orbitgp']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {Path(file).relative_to(sources.PACKAGE).as_posix() for file in json.loads(done.stdout)}
    # a package's own __init__ is loaded on the way to a module that names no other of it
    around = {"__init__.py", f"{Path(module).parent.as_posix()}/__init__.py"}
    assert loaded - around <= set(sources.with_imports(module))


def test_the_real_training_depends_on_the_model_and_not_on_figures() -> None:
    found = sources.with_imports("training/run.py")
    assert {"models.py", "likelihoods.py", "orbits/image.py", "training/optimiser.py", "files.py"} <= set(found)
    assert not [name for name in found if name.startswith(("figures/", "analysis/"))]
