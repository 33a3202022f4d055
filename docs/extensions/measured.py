"""Tables of measured numbers, read from the CSV files that the benchmarks write."""

from pathlib import Path
from typing import ClassVar

import pandas as pd
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Measured(SphinxDirective):
    """
    Some rows and columns of a CSV file: ``where`` is a query, each line of the content ``column: its heading``, with
    ``column, digits: its heading`` for numbers. A column must have a value in one of the rows at least.
    """

    required_arguments = 1
    option_spec: ClassVar = {"where": str}
    has_content = True

    def run(self) -> list[nodes.Node]:
        name, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(name)
        frame = pd.read_csv(Path(path))
        rows = frame.query(self.options["where"]) if "where" in self.options else frame
        columns = [self.parts(line) for line in self.content]
        for column, _, _ in columns:
            if column not in rows or rows[column].isna().all():
                raise self.error(f"{name} has no {column!r} where {self.options.get('where')}; it has {list(frame)}")
        lines = [[heading for _, heading, _ in columns], ["---:" if digits else "---" for _, _, digits in columns]]
        lines += [[self.text(row[column], digits) for column, _, digits in columns] for _, row in rows.iterrows()]
        return self.parse_text_to_nodes("\n".join(f"| {' | '.join(line)} |" for line in lines))

    @staticmethod
    def parts(line: str) -> tuple[str, str, str]:
        """(column, heading, digits)"""
        place, _, heading = line.partition(": ")
        column, _, digits = place.partition(", ")
        return column, heading, digits

    @staticmethod
    def text(value: object, digits: str) -> str:
        if pd.isna(value):
            return "–"
        return f"{value:,.{digits}f}" if digits else str(value).replace("_", " ")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True}
