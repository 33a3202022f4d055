"""The content of a size as an article of four pages, typeset by Typst. Every number in it comes from the tables."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orbitgp_paper.analysis.claims import VERDICTS
from orbitgp_paper.page.content import Content
from orbitgp_paper.page.render import TEMPLATES

#: the tables that an article has room for, and their columns
COLUMNS = {
    "mnist": ("model", "error, %", "paper's error, %", "bound, nats", "test NLL"),
    "parity": ("model", "true angle, °", "angle, °", "error, %", "bound, nats"),
    "rotated": ("model", "error, %", "bound, nats", "angle, °"),
}


def typeset(content: Content, **options: Any) -> Any:
    """
    :param options: of ``typst.compile``, such as ``format="png"``, which makes one picture of each page.
    :return: the PDF as bytes.
    """
    import typst  # the extra `article`

    with tempfile.TemporaryDirectory() as folder:
        source = Path(shutil.copy(TEMPLATES / "article.typ", folder))
        for figure in content.figures:
            shutil.copy(figure.file, folder)
        source.with_name("content.json").write_text(json.dumps(words(content), ensure_ascii=False), encoding="utf-8")
        return typst.compile(str(source), root=folder, ignore_system_fonts=True, **options)


def words(content: Content) -> dict[str, Any]:
    """What the template reads: plain values, all numbers as the tables show them."""
    every = {table.name: table for figure in content.figures for table in figure.tables}
    every |= {table.name: table for table in content.tables}
    tables = {name: every[name].only(*columns) for name, columns in COLUMNS.items() if name in every}
    return {
        "title": content.title,
        "tier": content.config.tier,
        "about": content.config.about,
        "claims": content.claims,
        "counts": content.counts,
        "verdicts": [
            {"name": verdict.name, "colour": verdict.look.colour, "claims": verdict.claims}
            for verdict in content.verdicts
        ],
        "sections": list(_sections(content)),
        "figures": {figure.name: figure.caption._asdict() for figure in content.figures},
        "tables": {name: table._asdict() for name, table in tables.items()},
        "trainings": sum(row.trainings for row in content.times),
        "times": [row._asdict() for row in content.times],
        "elapsed": content.elapsed,
        "commits": content.commits,
    }


def _sections(content: Content) -> Iterator[list[str]]:
    """A row for each section of the paper: how many of its claims have each verdict; blank for none."""
    claims = [claim for verdict in content.verdicts for claim in verdict.claims]
    there = [name for name in VERDICTS if any(claim["verdict"] == name for claim in claims)]
    if claims:
        yield ["section", *there]
    for section in sorted({claim["section"] for claim in claims}):
        own = [claim["verdict"] for claim in claims if claim["section"] == section]
        yield [section, *(str(own.count(name) or "") for name in there)]
