"""The files of a size as a research object, an RO-Crate: what each of them is, and what made it from which paper."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orbitgp import __version__
from orbitgp_paper.page.content import Content

PAPER = "https://arxiv.org/abs/1808.05563"
LICENSE = "https://spdx.org/licenses/Apache-2.0"


def described(content: Content, files: Sequence[Path], folder: Path) -> dict[str, Any]:
    """
    :param files: what is described, all under ``folder``.
    :return: what ``ro-crate-metadata.json`` holds.
    """
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate  # the extra `crate`

    crate = ROCrate()
    crate.name, crate.description, crate.license = content.title, content.config.about or content.title, LICENSE
    captions = {figure.name: figure.caption.title for figure in content.figures}
    captions |= {table.name: table.caption for figure in content.figures for table in figure.tables}
    captions |= {table.name: table.caption for table in content.tables}
    parts = []
    for file in sorted(files):
        place = file.relative_to(folder).as_posix()
        kind = mimetypes.guess_type(place)[0] or "application/octet-stream"
        properties = {"name": captions.get(file.stem, place), "encodingFormat": kind}
        parts.append(crate.add_file(dest_path=place, properties=properties))
    about = {"@type": "ScholarlyArticle", "name": "Learning Invariances using the Marginal Likelihood"}
    paper = crate.add(ContextEntity(crate, PAPER, about))
    made_by = {"@type": "SoftwareApplication", "name": "orbitgp", "softwareVersion": __version__}
    software = crate.add(ContextEntity(crate, "#orbitgp", made_by))
    action = {"name": f"trainings of commit {', '.join(content.commits)}; tables and figures from them"}
    crate.add_action(software, "#made", object=[paper], result=parts, properties={"@type": "CreateAction", **action})
    generated: dict[str, Any] = crate.metadata.generate()
    return generated
