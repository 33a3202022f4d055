"""Makes the page of a size, and the first page of Snakemake's report, from tables, verdicts and figures."""

from __future__ import annotations

from pathlib import Path

from arguments import parse

from orbitgp import files
from orbitgp_paper.config import load
from orbitgp_paper.page import render
from orbitgp_paper.page.content import gather


def main() -> None:
    """Writes both."""
    given = parse(__doc__, tier=str, times=Path, output=Path, report=Path, sources=[Path])
    content = gather(load(given.tier), given.sources, given.times)
    files.write_text(given.output, render.page(content))
    files.write_text(given.report, render.report(content))


if __name__ == "__main__":
    main()
