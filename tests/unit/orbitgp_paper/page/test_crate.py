"""Each file that is described is there and has its type; the paper and the program are said."""

import importlib.util
from dataclasses import replace

import pytest

from orbitgp_paper.page.crate import PAPER, described

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("rocrate"), reason="rocrate is not installed")


def test_every_file_is_described_and_was_made_from_the_paper(paper, root):
    folder = root / "results" / "paper"
    files = [*folder.glob("tables/*"), *folder.glob("figures/*.svg"), *folder.glob("runs/mnist/*/*/final.json")]
    files += [folder / name for name in ("times.csv", "runs/costs/costs.csv", "runs/mnist/rbf/seed0/config.yaml")]
    entities = {entity["@id"]: entity for entity in described(paper, files, folder)["@graph"]}
    places = {file.relative_to(folder).as_posix() for file in files}
    assert {part["@id"] for part in entities["./"]["hasPart"]} == places
    assert {part["@id"] for part in entities["#made"]["result"]} == places
    assert entities["#made"]["object"] == [{"@id": PAPER}] and entities[PAPER]["@type"] == "ScholarlyArticle"
    assert entities["tables/mnist.csv"]["encodingFormat"] == "text/csv"
    assert entities["figures/fig3.svg"]["encodingFormat"] == "image/svg+xml"
    assert entities["figures/fig3.svg"]["name"].startswith("Figure 3")
    assert entities["runs/costs/costs.csv"]["name"] == "runs/costs/costs.csv"  # not as the table
    assert entities["runs/mnist/rbf/seed0/config.yaml"]["encodingFormat"] == "application/yaml"
    assert all(commit in entities["#made"]["name"] for commit in paper.commits)


def test_what_is_of_no_paper_is_not_said_to_be(own, tmp_path):
    (tmp_path / "tables").mkdir()
    table = tmp_path / "tables" / "shapes.csv"
    table.write_text("variant\n")
    entities = {entity["@id"]: entity for entity in described(replace(own, commits=[]), [table], tmp_path)["@graph"]}
    assert PAPER not in entities and "license" not in entities["./"] and "object" not in entities["#made"]
    assert "commit" not in entities["#made"]["name"]
