"""Writes what each result file of a size is, as an RO-Crate."""

from __future__ import annotations

import json
from pathlib import Path

from arguments import parse

from orbitgp import files
from orbitgp_paper.config import load
from orbitgp_paper.page.content import gather
from orbitgp_paper.page.crate import described


def main() -> None:
    """Writes the file into the folder that it describes."""
    given = parse(__doc__, tier=str, output=Path, sources=[Path])
    drawn = {given.output.parent / name for name in ("figures", "tables")}
    read = [file for file in given.sources if file.suffix in (".csv", ".svg") and file.parent in drawn]
    found = described(gather(load(given.tier), read), given.sources, given.output.parent)
    files.write_text(given.output, json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
