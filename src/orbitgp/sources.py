"""Digests of this package's own source, by which the workflow sees that code has changed."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent

#: parts that no training result depends on
DOWNSTREAM = ("figures", "analysis", "configuration", "sources.py")


def digest(*parts: str) -> str:
    """
    :param parts: modules ("figures/fig3.py") or packages ("orbits") of orbitgp.
    :return: a sha256 over the names and bytes of all modules in them.
    """
    total = hashlib.sha256()
    for file in sorted({file for part in parts for file in _modules(part)}):
        total.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def training_digest() -> str:
    """
    :return: :func:`digest` of everything that decides what a training ends with.
    """
    return digest(*(part.name for part in PACKAGE.iterdir() if part.name not in DOWNSTREAM and _is_source(part)))


def with_imports(*modules: str) -> list[str]:
    """
    :param modules: of orbitgp, as files ("figures/fig3.py").
    :return: these and all that they import from orbitgp, directly or not: what their results depend on.
    """
    found: set[Path] = set()
    new = [file for module in modules for file in _modules(module)]
    while new:
        file = new.pop()
        if file not in found:
            found.add(file)
            new += _imported(file)
    return sorted(file.relative_to(PACKAGE).as_posix() for file in found)


def _imported(file: Path) -> Iterator[Path]:
    """Modules of orbitgp that ``file`` names in its imports, and the packages around them, which Python loads too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), file)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for package, *parts in (name.split(".") for name in names):
            if package == PACKAGE.name:
                for length in range(len(parts) + 1):
                    path = PACKAGE.joinpath(*parts[:length])
                    yield from (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())


def _modules(part: str) -> list[Path]:
    path = PACKAGE / part
    if not path.exists():
        raise FileNotFoundError(f"orbitgp has no module or package {part!r}")
    return [path] if path.is_file() else [file for file in path.rglob("*.py") if _is_source(file)]


def _is_source(path: Path) -> bool:
    return path.suffix == ".py" or (path.is_dir() and path.name != "__pycache__")
