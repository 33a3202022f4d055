"""Numbers that are measured besides training, and the settings beside them, which know them by their sums."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from orbitgp import files
from orbitgp_paper.analysis.formats import read_table

LINE = re.compile(r"^# sha256 ([0-9a-f]{64})  (\S+)$", flags=re.MULTILINE)


def write_settings(path: Path, settings: Mapping[str, Any], *results: Path) -> None:
    """
    Writes settings as YAML, after a comment with the sum of each file that was made from them. It is no part of the
    settings, so that the workflow compares these alone.

    :param results: files beside ``path``.
    """
    sums = files.sums(path.parent, [result.name for result in results])
    lines = [f"# sha256 {digest}  {name}\n" for name, digest in sums.items()]
    files.write_text(path, "".join(lines) + yaml.safe_dump(dict(settings)))


def read(result: Path) -> Any:
    """The frame or the arrays of a file that :func:`check` has nothing against."""
    check(result)
    return files.read_npz(result) if result.suffix == ".npz" else read_table(result)


def check(*results: Path) -> None:
    """
    Raises :class:`orbitgp.files.DamagedFile` for the first file that is not what its settings were written with.

    :param results: each with its settings beside it, under its own name or as config.yaml.
    """
    for result in results:
        own = result.with_suffix(".yaml")
        settings = own if own.is_file() else result.with_name("config.yaml")
        if not settings.is_file():
            raise files.DamagedFile(f"{result} has no settings beside it, which would say what it should be")
        text = settings.read_text(encoding="utf-8", errors="replace")
        sums = {name: digest for digest, name in LINE.findall(text)}
        if result.name not in sums:
            raise files.DamagedFile(f"{settings} does not say which file {result.name} should be")
        files.check_sums(result.parent, sums, settings)
