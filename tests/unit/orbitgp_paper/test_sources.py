import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orbitgp_paper import sources

PLANTED = {
    "orbitgp/__init__.py": "",
    "orbitgp/checks.py": "",
    "orbitgp/models.py": "from orbitgp import checks, orbits\nimport numpy\n",
    "orbitgp/unused.py": "",
    "orbitgp/orbits/__init__.py": "from orbitgp.orbits.base import Orbit\n",
    "orbitgp/orbits/base.py": "import orbitgp.models\n",  # a circle
    "orbitgp_paper/__init__.py": "",
    "orbitgp_paper/figures/__init__.py": "",
    "orbitgp_paper/figures/style.py": "import orbitgp_other.checks\nfrom other.orbitgp import checks\n",
    "orbitgp_paper/figures/fig3.py": "from orbitgp_paper.figures import style\n",
    "orbitgp_paper/runs/__init__.py": "",
    "orbitgp_paper/runs/train.py": "def later():\n    from orbitgp import models\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in PLANTED.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sources, "SOURCE", tmp_path)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    sources.digest.cache_clear()
    sources._imported.cache_clear()


def names(*modules: str) -> set[str]:
    return {file.relative_to(sources.SOURCE).as_posix() for file in sources.closure(*modules)}


def test_imports_are_followed_to_their_end(package: Path) -> None:
    fig3 = {f"orbitgp_paper/{name}" for name in ("__init__.py", "figures/__init__.py", "figures/style.py")}
    assert names("orbitgp_paper.figures.fig3") == fig3 | {"orbitgp_paper/figures/fig3.py"}
    train = {name for name in PLANTED if not name.startswith("orbitgp_paper/figures")} - {"orbitgp/unused.py"}
    assert names("orbitgp_paper.runs.train") == train
    assert names("orbitgp_paper.runs.train", "orbitgp_paper.figures.fig3") == set(PLANTED) - {"orbitgp/unused.py"}
    with pytest.raises(ModuleNotFoundError, match=r"no module orbitgp_paper\.figures\.fig99"):
        sources.closure("orbitgp.models", "orbitgp_paper.figures.fig99")


def test_a_training_depends_on_every_byte_of_what_it_imports_and_on_nothing_else(package: Path) -> None:
    def changed(name: str, text: str) -> str:
        (package / name).write_text(text)
        forget()
        return sources.training_digest()

    before = sources.training_digest()
    for name in ("orbitgp_paper/figures/fig3.py", "orbitgp/unused.py", "orbitgp/orbits/new.py"):
        assert changed(name, "# changed\n") == before
    seen = {before}
    for name in ("orbitgp/checks.py", "orbitgp/orbits/base.py", "orbitgp/__init__.py", "orbitgp_paper/runs/train.py"):
        seen.add(changed(name, PLANTED[name] + "# changed\n"))
    assert len(seen) == 5
    # text does not run from one module into the next, and a module that moves counts
    (package / "orbitgp" / "orbits" / "base.py").rename(package / "orbitgp" / "orbits" / "moved.py")
    assert changed("orbitgp/orbits/__init__.py", "from orbitgp.orbits.moved import Orbit\n") not in seen


@pytest.mark.parametrize("module", ["orbitgp_paper.figures.fig3", "orbitgp_paper.experiments.images"])
def test_what_python_loads_is_what_is_found(module: str) -> None:
    code = (
        f"import json, sys; import {module}; "
        "print(json.dumps([m.__file__ for n, m in sys.modules.items() if n.split('.')[0].startswith('orbitgp')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {Path(file).relative_to(sources.SOURCE).as_posix() for file in json.loads(done.stdout)}
    assert loaded <= names(module)


def test_the_real_training_depends_on_the_model_and_not_on_figures() -> None:
    found = names(sources.TRAINING)
    assert {"orbitgp/models.py", "orbitgp/files.py", "orbitgp_paper/runs/train.py"} <= found
    apart = ("orbitgp_paper/figures/", "orbitgp_paper/analysis/", "orbitgp_paper/experiments/toy")
    assert not [name for name in found if name.startswith((*apart, "orbitgp/insensitivity"))]


def test_code_of_the_users_own_decides_too(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "users_orbits.py").write_text("angle = 1")
    before = sources.training_digest("users_orbits")
    assert before not in (sources.training_digest(), sources.training_digest("orbitgp.orbits"))
    (tmp_path / "users_orbits.py").write_text("angle = 2")
    assert sources.training_digest("users_orbits") != before
    for module in ("nobodys", "nobodys.orbits", "sys"):
        with pytest.raises(ModuleNotFoundError, match=f"Python finds no module {module}: install it"):
            sources.training_digest(module)
