"""
Links from a page to what is in the repository and no page of the site. A page of Markdown, such as a benchmark's or a
table, becomes a page of the site; another file goes along to be downloaded; a folder is named.
"""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([\w./-]+)(?:#[\w-]*)?\)")
TARGET = re.compile(r"(?<=\]\()(?!\w+:|#)([\w./-]+)")  # of links and pictures
PAGES = "generated/repository"


def adopt(app: Sphinx) -> None:
    """Makes a page of each Markdown file outside of the documentation that one of its pages links."""
    docs = Path(app.srcdir)
    waiting = [page for page in docs.rglob("*.md") if not _excluded(page.relative_to(docs))]
    while waiting:
        page = waiting.pop()
        for _, target in LINK.findall(page.read_text(encoding="utf-8")):
            file = (page.parent / target).resolve()
            place = page_of(docs, file)
            if place is None or place.exists():
                continue
            text = file.read_text(encoding="utf-8")
            title = "" if text.startswith("# ") else f"# {file.relative_to(docs.parent)}\n\n"
            place.parent.mkdir(parents=True, exist_ok=True)
            moved = TARGET.sub(lambda found, file=file: _from(docs / PAGES, file.parent / found[1]), text)
            place.write_text(f"---\norphan: true\n---\n\n{title}{moved}", encoding="utf-8")
            waiting.append(place)


def page_of(docs: Path, file: Path) -> Path | None:
    """Where the page of a Markdown file outside of the documentation is; None for other files."""
    root = docs.parent
    if file.suffix != ".md" or not file.is_file() or not file.is_relative_to(root) or file.is_relative_to(docs):
        return None
    return docs / PAGES / "-".join(file.relative_to(root).parts)


def attach(app: Sphinx, page: str, source: list[str]) -> None:
    docs, folder = Path(app.srcdir), Path(app.env.doc2path(page)).parent

    def written(link: re.Match[str]) -> str:
        text, target = " ".join(link[1].replace("`", "").split()), folder / link[2]
        if not target.exists() or app.project.path2doc(os.path.abspath(target)) in app.project.docnames:
            return link[0]
        if target.is_dir():
            return f"{text} (`{target.resolve().relative_to(docs.parent)}`)"
        if place := page_of(docs, target.resolve()):
            return f"[{text}]({_from(folder, place)})"
        return f"{{download}}`{text} <{link[2]}>`"

    if Path(app.env.doc2path(page)).suffix == ".md":
        source[0] = LINK.sub(written, source[0])


def _from(folder: Path, target: Path) -> str:
    return Path(os.path.relpath(target, folder)).as_posix()


def _excluded(page: Path) -> bool:
    return page.parts[0] in ("_build", "quick", "extensions", "templates", "generated")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", adopt)
    app.connect("source-read", attach)
    return {"parallel_read_safe": True}
