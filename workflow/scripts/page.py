"""Makes an HTML page for the report, from a table or from settings."""

from __future__ import annotations

from html import escape
from pathlib import Path

import pandas as pd
from arguments import parse

from orbitgp import files
from orbitgp_paper.analysis.formats import read_table, shown
from orbitgp_paper.analysis.verdicts import claims_html

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px/1.5 sans-serif; margin: 1.5em; color: #222; background: white }}
table {{ border-collapse: collapse }}
th, td {{ padding: 0.3em 0.8em; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top }}
td {{ overflow-wrap: break-word; font-variant-numeric: tabular-nums }}
thead th {{ border-bottom: 2px solid #222 }}
pre {{ background: #f6f6f6; padding: 1em; overflow-x: auto }}
summary {{ cursor: pointer }}
</style></head><body>
<p>{caption}</p>
{body}
</body></html>
"""


def main() -> None:
    """Writes the page."""
    given = parse(__doc__, output=Path, caption=str, sources=[Path])
    body = "\n".join(map(as_html, given.sources))
    files.write_text(given.output, PAGE.format(title=given.output.stem, caption=escape(given.caption), body=body))


def as_html(source: Path) -> str:
    """A table or verdicts as they read; settings as they stand, folded away."""
    if source.name == "claims.csv":
        return claims_html(read_table(source))
    if source.suffix == ".csv":
        with pd.option_context("display.max_colwidth", None):
            return str(shown(read_table(source)).to_html(index=False, border=0))
    text = escape(source.read_text(encoding="utf-8"))
    return f"<details><summary>{escape(source.as_posix())}</summary><pre>{text}</pre></details>"


if __name__ == "__main__":
    main()
