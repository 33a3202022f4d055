"""Prints what `make run` ends with: MNIST's table, the claims, and where the report is."""

from __future__ import annotations

import argparse

from orbitgp_paper.config import load


def main() -> None:
    """Prints it all, or the report's path alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tier", help="the size, as `make run` builds it")
    parser.add_argument("--report", action="store_true", help="only the report's path")
    given = parser.parse_args()
    made = load(given.tier).paths(runs="build")
    if given.report:
        print(made.report())
        return
    for stem in (made.table("mnist"), made.claims()):
        file = stem.with_suffix(".md")
        if file.exists():  # a configuration of one's own may do without MNIST
            print(f"{file}\n\n{file.read_text(encoding='utf-8')}")
    print(f"The report, with all figures: {made.report()}")


if __name__ == "__main__":
    main()
