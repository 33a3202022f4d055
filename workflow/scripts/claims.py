"""Judges claims by the tables."""

from __future__ import annotations

from pathlib import Path

from arguments import parse

from orbitgp_paper.analysis.claims import judge, read_claims
from orbitgp_paper.analysis.formats import read_table
from orbitgp_paper.analysis.verdicts import write_claims


def main() -> None:
    """Writes the .csv, and beside it the .md."""
    given = parse(__doc__, output=Path, caption=str, claims=Path, tables=[Path])
    verdicts = judge(read_claims(given.claims), {file.stem: read_table(file) for file in given.tables})
    write_claims(verdicts, given.output.with_suffix(""), given.caption)


if __name__ == "__main__":
    main()
