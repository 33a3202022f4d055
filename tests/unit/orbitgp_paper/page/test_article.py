"""The article has four pages, and no number that is not of the tables."""

import importlib.util
import json
import re

import pytest

from orbitgp_paper.page.article import typeset, words
from orbitgp_paper.page.render import TEMPLATES

needs_typst = pytest.mark.skipif(
    not importlib.util.find_spec("typst"), reason="typst is not installed (the extra article)"
)


@needs_typst
def test_the_papers_size_takes_four_pages(paper):
    assert len(typeset(paper, format="png", ppi=20)) == 4
    once = typeset(paper)
    assert once.startswith(b"%PDF") and once == typeset(paper)


@needs_typst
def test_a_size_with_nothing_of_the_papers_is_typeset_too(own):
    assert typeset(own).startswith(b"%PDF")


def test_its_numbers_are_the_tables(paper):
    found = words(paper)
    assert found["tables"]["mnist"]["rows"][0][1] == paper.headline.rows[0][1]
    assert found["counts"] == paper.counts and found["claims"] == sum(
        sum(int(cell or 0) for cell in row[1:]) for row in found["sections"][1:]
    )
    json.dumps(found)


def test_no_result_is_typed_into_the_template():
    text = (TEMPLATES / "article.typ").read_text(encoding="utf-8")
    prose = [line for line in text.splitlines() if re.match(r"[A-Z*]", line)]
    assert len(prose) >= 5
    typed = re.findall(r"\d[\d.,]*", " ".join(prose))
    assert set(typed) == {"1", "0.05", "31,", "2018."}  # 1/S, the level of the test, and where the paper appeared
