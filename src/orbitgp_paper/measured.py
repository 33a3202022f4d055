"""Numbers that are measured besides training, and the settings beside them, which have their checksums."""

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
    Writes settings as YAML, after a comment with the checksum of each file that was made from them. The workflow
    compares the settings without the comment.

    :param results: files beside ``path``.
    """
    sums = files.sums(path.parent, [result.name for result in results])
    lines = [f"# sha256 {digest}  {name}\n" for name, digest in sums.items()]
    files.write_text(path, "".join(lines) + yaml.safe_dump(dict(settings)))


def read(result: Path) -> Any:
    """The frame or the arrays of a file, after :func:`check`."""
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
            raise files.DamagedFile(f"{result} has no settings beside it with its checksum")
        text = settings.read_text(encoding="utf-8", errors="replace")
        sums = {name: digest for digest, name in LINE.findall(text)}
        if result.name not in sums:
            raise files.DamagedFile(f"{settings} has no checksum of {result.name}")
        files.check_sums(result.parent, sums, settings)
