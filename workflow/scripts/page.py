"""Makes an HTML page for the report, from our Markdown tables or from settings."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from arguments import parse

from orbitgp import files

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px/1.5 sans-serif; margin: 1.5em; color: #222; background: white }}
table {{ border-collapse: collapse }}
th, td {{ padding: 0.3em 0.8em; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top }}
td {{ overflow-wrap: break-word }}
td.right {{ white-space: nowrap }}
thead th {{ border-bottom: 2px solid #222 }}
.right {{ text-align: right }}
pre {{ background: #f6f6f6; padding: 1em; overflow-x: auto }}
summary {{ cursor: pointer }}
</style></head><body>
{body}
</body></html>
"""


def main() -> None:
    """Writes the page."""
    given = parse(__doc__, output=Path, sources=[Path])
    body = "\n".join(as_html(source) for source in given.sources)
    files.write_text(given.output, PAGE.format(title=given.output.stem, body=body))


def as_html(source: Path) -> str:
    """A caption and a table as they read; settings as they stand, folded away."""
    text = source.read_text(encoding="utf-8")
    if source.suffix != ".md":
        return f"<details><summary>{escape(source.as_posix())}</summary><pre>{escape(text)}</pre></details>"
    lines = text.splitlines()
    head, marks, *rows = [cells(line) for line in lines if line.startswith("|")]
    right = [mark.endswith(":") for mark in marks]
    caption = " ".join(plain(line) for line in lines if line and not line.startswith("|"))
    body = "".join(row("td", line, right) for line in rows)
    return f"<p>{caption}</p><table><thead>{row('th', head, right)}</thead><tbody>{body}</tbody></table>"


def cells(line: str) -> list[str]:
    """Of a line of a Markdown table."""
    return [plain(cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def plain(text: str) -> str:
    """Without Markdown's backslashes; its & and < are HTML's already."""
    return re.sub(r"\\(.)", r"\1", text)


def row(tag: str, texts: list[str], right: list[bool]) -> str:
    """A line of an HTML table."""
    aligned = zip(texts, right, strict=True)
    return "<tr>" + "".join(f"<{tag}{' class=right' * at_right}>{text}</{tag}>" for text, at_right in aligned) + "</tr>"


if __name__ == "__main__":
    main()
