"""Digests of source code, by which the workflow sees which results the present code did not make. No TensorFlow."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]  #: the folder of both packages
PACKAGES = ("orbitgp", "orbitgp_paper")

#: the module whose imports decide what a training ends with
TRAINING = "orbitgp_paper.runs.train"


def training_digest(*own: str) -> str:
    """
    :param own: the user's own modules that a training needs; what these import is not followed.
    :return: a digest of all code that decides what a training ends with.
    """
    if not own:
        return digest(TRAINING)
    parts = [digest(TRAINING), *(hashlib.sha256(_own_file(module).read_bytes()).hexdigest() for module in own)]
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def _own_file(module: str) -> Path:
    """Where Python would import a module from."""
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None or not found.has_location or found.origin is None:
        raise ModuleNotFoundError(f"Python finds no module {module}: install it, or put its folder into PYTHONPATH")
    return Path(found.origin)


@lru_cache(maxsize=64)
def digest(*modules: str) -> str:
    """
    :param modules: dotted names, such as ``"orbitgp_paper.figures.fig3"``.
    :return: a sha256 over the names and bytes of these modules and of all that they import from our packages.
    """
    total = hashlib.sha256()
    for file in closure(*modules):
        total.update(file.relative_to(SOURCE).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def closure(*modules: str) -> list[Path]:
    """
    :param modules: dotted names.
    :return: the files of these modules and of all that they import from our packages, directly or not.
    """
    new = []
    for module in modules:
        found = list(_files(module))
        if not found:
            raise ModuleNotFoundError(f"there is no module {module} below {SOURCE}")
        new += found
    seen: set[Path] = set()
    while new:
        file = new.pop()
        if file not in seen:
            seen.add(file)
            new += _imported(file)
    return sorted(seen)


@lru_cache(maxsize=1024)
def _imported(file: Path) -> list[Path]:
    """Modules of our packages that ``file`` names in its imports."""
    found: list[Path] = []
    for node in _statements(ast.parse(file.read_text(encoding="utf-8"), file)):
        if isinstance(node, ast.Import):
            found += (path for alias in node.names for path in _files(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += _files(node.module)
            found += (path for alias in node.names for path in _files(f"{node.module}.{alias.name}"))
    return found


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements below a node. Imports are statements; to look into expressions too takes ten times as long."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from _statements(child)


def _files(module: str) -> Iterator[Path]:
    """The file of a module and those of the packages around it, which Python loads too; none for a name in a module."""
    parts = module.split(".")
    if parts[0] not in PACKAGES:
        return
    path = SOURCE.joinpath(*parts)
    own = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    if own:
        yield from own
        for length in range(1, len(parts)):
            yield SOURCE.joinpath(*parts[:length]) / "__init__.py"
