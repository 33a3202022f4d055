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
KINDS = {".yaml": "application/yaml"}  #: media types that Python does not know


def described(content: Content, files: Sequence[Path], folder: Path) -> dict[str, Any]:
    """
    :param files: what is described, all under ``folder``.
    :return: what ``ro-crate-metadata.json`` holds.
    """
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate  # the extra `crate`

    crate = ROCrate()
    crate.name, crate.description = content.title, content.config.about or content.title
    captions = {figure.name: figure.caption.title for figure in content.figures}
    captions |= {table.name: table.caption for figure in content.figures for table in figure.tables}
    captions |= {table.name: table.caption for table in content.tables}
    parts = []
    for file in sorted(files):
        place = file.relative_to(folder).as_posix()
        drawn = place.startswith(("figures/", "tables/"))
        kind = KINDS.get(file.suffix) or mimetypes.guess_type(place)[0] or "application/octet-stream"
        properties = {"name": captions.get(file.stem, place) if drawn else place, "encodingFormat": kind}
        parts.append(crate.add_file(dest_path=place, properties=properties))
    papers = []
    if any(figure.caption.paper for figure in content.figures):  # else it is of the user's own images
        crate.license = LICENSE
        about = {"@type": "ScholarlyArticle", "name": "Learning Invariances using the Marginal Likelihood"}
        papers.append(crate.add(ContextEntity(crate, PAPER, about)))
    made_by = {"@type": "SoftwareApplication", "name": "orbitgp", "softwareVersion": __version__}
    software = crate.add(ContextEntity(crate, "#orbitgp", made_by))
    trainings = f"trainings of commit {', '.join(content.commits)}" if content.commits else "trainings"
    action = {"name": f"{trainings}; tables and figures from them"}
    crate.add_action(software, "#made", object=papers, result=parts, properties={"@type": "CreateAction", **action})
    generated: dict[str, Any] = crate.metadata.generate()
    return generated
