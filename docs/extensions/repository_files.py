"""Links from a page to what is in the repository and no page of the site: a file goes along, a folder is named."""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([\w./-]+)(?:#[\w-]*)?\)")


def attach(app: Sphinx, page: str, source: list[str]) -> None:
    folder = Path(app.env.doc2path(page)).parent

    def written(link: re.Match[str]) -> str:
        text, target = " ".join(link[1].replace("`", "").split()), folder / link[2]
        if not target.exists() or app.project.path2doc(os.path.abspath(target)) in app.project.docnames:
            return link[0]
        if target.is_dir():
            return f"{text} (`{target.resolve().relative_to(Path(app.srcdir).parent)}`)"
        return f"{{download}}`{text} <{link[2]}>`"

    if Path(app.env.doc2path(page)).suffix == ".md":
        source[0] = LINK.sub(written, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", attach)
    return {"parallel_read_safe": True}
