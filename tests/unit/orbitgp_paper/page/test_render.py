"""The page stands alone, and shows texts as they are."""

import re
from html import unescape
from urllib.parse import unquote

import pytest

from orbitgp_paper.page.render import inlined, page, report


def test_it_needs_no_other_file(paper):
    text = page(paper)
    assert len(text) < 2_000_000
    assert not re.findall(r"<(?:link|script|iframe)|@import|url\(", re.sub(r"data:image[^\"]*", "", text))
    sources = re.findall(r'src="([^"]*)"', text)
    assert len(sources) == len(paper.figures)
    for source, figure in zip(sources, paper.figures, strict=True):
        assert unquote(unescape(source)) == "data:image/svg+xml," + figure.file.read_text(encoding="utf-8")
    targets = re.findall(r'href="#([^"]*)"', text)
    assert targets and not [name for name in targets if f'id="{name}"' not in text]


def test_letters_that_mean_something_are_escaped(own):
    text = page(own)
    assert "&lt;b&gt;a_1* &amp; `b` #x|" in text and "<b>a_1" not in text
    assert "make run TIER=own" in text and 'id="figures"' not in text and 'id="claims"' not in text


@pytest.mark.parametrize("size", ["paper", "own"])
def test_the_reports_first_page_is_good_restructuredtext(size, request):
    core = pytest.importorskip("docutils.core", reason="docutils comes with Snakemake, which needs Python 3.11")
    content = request.getfixturevalue(size)
    text = report(content) + "\n.. _index.html: there\n"
    shown = core.publish_parts(text, writer="html", settings_overrides={"halt_level": 2, "report_level": 5})
    body = unescape(re.sub(r"<[^>]*>", "", shown["html_body"]))
    assert content.title in body and content.counts in body
    for row in content.headline.rows:
        assert all(cell in body for cell in row)


def test_every_letter_survives_being_inlined(tmp_path):
    (tmp_path / "a.svg").write_text('<svg a="%41">#é\'&\n</svg>', encoding="utf-8")
    found = inlined(tmp_path / "a.svg")
    assert not set(found) & set('"<>#&') and unquote(found).endswith('<svg a="%41">#é\'&\n</svg>')
