"""All that a size has is on its page once, and what it lacks is not missed."""

import pytest

from orbitgp_paper.analysis.claims import VERDICTS
from orbitgp_paper.analysis.formats import read_table
from orbitgp_paper.config import load
from orbitgp_paper.figures.captions import CAPTIONS, caption_of
from orbitgp_paper.page.content import WORST_FIRST, duration, gather


def test_every_table_figure_and_claim_of_the_paper_is_there_once(paper, root):
    folder = root / "results" / "paper"
    assert [figure.name for figure in paper.figures] == sorted(path.stem for path in folder.glob("figures/*.svg"))
    tables = [table.name for figure in paper.figures for table in figure.tables]
    tables += [table.name for table in paper.tables]
    assert sorted(tables) == sorted(path.stem for path in folder.glob("tables/*.csv"))
    claims = read_table(folder / "claims.csv")
    assert paper.claims == len(claims)
    about = [len(verdict.claims) for figure in paper.figures for verdict in figure.verdicts]
    assert sum(about) == claims["figure"].count()
    assert set(claims["figure"].dropna()) <= set(CAPTIONS)


def test_the_headline_has_the_papers_errors_beside_ours(paper, root):
    assert paper.headline.head == ["model", "error, %", "paper's error, %", "bound, nats"]
    table = read_table(root / "results" / "paper" / "tables" / "mnist.csv")
    for row, found in zip(table.itertuples(), paper.headline.rows, strict=True):
        assert found[0] == row.label
        assert found[1] == f"{row.error_mean:.2f} ± {row.error_std:.2f}"
        assert found[2] == f"{row.paper_error:.2f} ± {row.paper_std:.2f}"
    assert paper.headline.numeric == [False, True, True, True]


def test_a_size_with_nothing_of_the_papers(own):
    assert own.title == "Results of size “own”"
    assert (own.figures, own.verdicts, own.claims, own.counts) == ([], [], 0, "")
    assert [table.name for table in own.tables] == ["shapes", "runs"]
    assert own.headline.head == ["model", "error, %", "bound, nats"] and len(own.headline.rows) == 3
    assert [(orbit.label, orbit.parameters) for orbit in own.orbits] == [("ROTATION", [("angle", "±30.0°")])]
    assert own.times[0][:4] == ("shapes", 6, "CPU", "90 s")
    assert own.elapsed == "2.0 hours on CPU" and own.commits == ["abc1234"]


def test_verdicts_are_shown_from_the_worst_to_the_best_and_none_is_forgotten(paper):
    assert sorted(WORST_FIRST) == sorted(VERDICTS)
    assert [verdict.name for verdict in paper.verdicts] == [
        name for name in WORST_FIRST if any(verdict.name == name for verdict in paper.verdicts)
    ]
    assert all(claim["verdict"] == verdict.name for verdict in paper.verdicts for claim in verdict.claims)


@pytest.mark.parametrize(("seconds", "said"), [(45.2, "45 s"), (960, "16 min"), (29520, "8.2 hours")])
def test_times_in_words(seconds: float, said: str):
    assert duration(seconds) == said


def test_a_figure_of_ones_own_is_described_by_its_module(monkeypatch):
    import orbitgp_paper.figures.limits as module

    monkeypatch.setattr(module, "__doc__", "Shapes: test error\nand bound during training.")
    assert caption_of("limits") == ("Shapes", "Test error and bound during training.", "", ("limits",))


def test_a_headline_says_how_many_images_there_were_if_models_differ_in_it(root):
    folder = root / "results" / "beyond" / "tables"
    headline = gather(load("beyond", root / "config"), [folder / "few_mnist.csv"]).headline
    assert headline.head == ["model", "error, %", "bound, nats", "training images"]
    assert {row[-1] for row in headline.rows if row[0] == "learned"} == {"312", "1,250", "5,000", "20,000", "60,000"}
