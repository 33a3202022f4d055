"""Prints where the report is, MNIST's table and the claims: ``python workflow/scripts/summary.py quick``."""

from __future__ import annotations

import sys

from orbitgp_paper.config import paths


def main() -> None:
    """Prints what `make run` ends with."""
    made = paths({"tier": sys.argv[1]})
    for stem in (made.table("mnist"), made.claims()):
        file = stem.with_suffix(".md")
        if file.exists():  # a configuration of one's own may do without MNIST
            print(f"{file}\n\n{file.read_text(encoding='utf-8')}")
    print(f"The report, with all figures: {made.report()}")


if __name__ == "__main__":
    main()
