"""Verdicts as they are read."""

import pandas as pd
import pytest

from orbitgp_paper.analysis import verdicts
from orbitgp_paper.analysis.claims import COLUMNS, VERDICTS


@pytest.fixture()
def judged():
    rows = [
        [
            "a",
            "1 Start",
            "section 1",
            "It | is so.",
            "holds",
            "2 < 3",
            "",
            "As it stands | or not.",
            "fig2",
            "x 2 < y 3",
        ],
        ["b", "2 End", "Fig. 9", "It is < so.", "fails", "4 against 3", "See docs/findings.md#why, too.", "", "", "x"],
        ["c", "1 Start", "section 1", "It is so again.", "not measured", "no table", "", "", "appendix_a", "x"],
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def test_markdown_is_grouped_by_section_with_marks_links_and_causes(judged, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stem = tmp_path / "results" / "paper" / "claims"
    stem.parent.mkdir(parents=True)
    files = verdicts.write_claims(judged, stem.relative_to(tmp_path), "What is claimed.")
    assert [file.name for file in files] == ["claims.csv", "claims.md"]
    assert list(pd.read_csv(files[0])["verdict"]) == ["holds", "fails", "not measured"]
    text = files[1].read_text()
    assert text.startswith("What is claimed. Of 3 claims: 1 hold, 1 fail, 1 not measured.\n\n- 🟢 **holds**: ")
    first, second = text.split("\n## ")[1:]
    assert first == (
        "1 Start\n\n- 🟢 **holds**: It \\| is so. (section 1; [Fig. 2](figures/fig2.png))\n  <br>2 &lt; 3\n"
        "  <br>Reading: As it stands \\| or not.\n"
        "- ⚪ **not measured**: It is so again. (section 1; [appendix A](figures/appendix_a.png))\n  <br>no table\n"
    )
    assert second == (
        "2 End\n\n- 🔴 **fails**: It is &lt; so. (Fig. 9)\n  <br>4 against 3\n"
        "  <br>Cause: See [docs/findings.md#why](../../docs/findings.md#why), too.\n"
    )


def test_every_verdict_has_a_look_of_its_own():
    assert list(verdicts.LOOKS) == list(VERDICTS)
    assert len({look.mark for look in verdicts.LOOKS.values()}) == len(VERDICTS)
