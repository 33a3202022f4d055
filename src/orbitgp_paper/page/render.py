"""The content of a size as files for readers: HTML for a browser, and the first page of Snakemake's report."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from orbitgp_paper.page.content import Content

TEMPLATES = Path(__file__).with_name("templates")


def page(content: Content) -> str:
    """One HTML file that needs no other: figures and style are inside."""
    return _render("index.html", content)


def report(content: Content) -> str:
    """The headline in reStructuredText."""
    return _render("report.rst", content)


def inlined(figure: Path) -> str:
    """An SVG as a data URL; not in base64, so that it is shorter and its versions differ in few bytes."""
    return "data:image/svg+xml," + quote(figure.read_text(encoding="utf-8"), safe=" /:=,;'()!*@$+?~-._\n")


def _render(template: str, content: Content) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["inlined"] = inlined
    environment.filters["rst"] = lambda text: re.sub(r"([\\*`|_])", r"\\\1", text)
    return environment.get_template(template).render(content=content)
