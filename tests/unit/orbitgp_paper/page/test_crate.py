"""Each file that is described is there and has its type; the paper and the program are said."""

import importlib.util

import pytest

from orbitgp_paper.page.crate import PAPER, described

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("rocrate"), reason="rocrate is not installed")


def test_every_file_is_described_and_was_made_from_the_paper(paper, root):
    folder = root / "results" / "paper"
    files = [*folder.glob("tables/*"), *folder.glob("figures/*.svg"), *folder.glob("runs/mnist/*/*/final.json")]
    entities = {entity["@id"]: entity for entity in described(paper, files, folder)["@graph"]}
    places = {file.relative_to(folder).as_posix() for file in files}
    assert {part["@id"] for part in entities["./"]["hasPart"]} == places
    assert {part["@id"] for part in entities["#made"]["result"]} == places
    assert entities["#made"]["object"] == [{"@id": PAPER}] and entities[PAPER]["@type"] == "ScholarlyArticle"
    assert entities["tables/mnist.csv"]["encodingFormat"] == "text/csv"
    assert entities["figures/fig3.svg"]["encodingFormat"] == "image/svg+xml"
    assert entities["figures/fig3.svg"]["name"].startswith("Figure 3")
    assert all(commit in entities["#made"]["name"] for commit in paper.commits)
