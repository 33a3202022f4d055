"""Typesets the article of a size from tables, verdicts and figures."""

from __future__ import annotations

from pathlib import Path

from arguments import parse

from orbitgp import files
from orbitgp_paper.config import load
from orbitgp_paper.page.article import typeset
from orbitgp_paper.page.content import gather


def main() -> None:
    """Writes the PDF."""
    given = parse(__doc__, tier=str, times=Path, output=Path, sources=[Path])
    article = typeset(gather(load(given.tier), given.sources, given.times))
    files.write_whole(given.output, lambda file: file.write(article))


if __name__ == "__main__":
    main()
