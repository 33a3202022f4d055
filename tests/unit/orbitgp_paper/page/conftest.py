"""The content of two sizes: the paper's, as it is shipped, and one with nothing of the paper in it."""

from pathlib import Path

import pytest

from orbitgp_paper.analysis.formats import write_csv
from orbitgp_paper.analysis.tables import experiment_table, runs_table
from orbitgp_paper.config import load
from orbitgp_paper.page.content import Content, gather

ORIGIN = {"wall_s": 90.0, "device": "CPU", "peak_memory_mb": 1.0, "resumed": 0, "commit": "abc1234def", "dirty": False}
OUTCOME = {"elbo_std_error": 0.1, "events": 0, "event_kinds": ""}


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Where the page reads the settings that it shows."""
    monkeypatch.chdir(root)


@pytest.fixture(scope="session")
def paper(root: Path) -> Content:
    folder = root / "results" / "paper"
    sources = [file for kind in ("tables/*.csv", "claims.csv", "figures/*.svg") for file in sorted(folder.glob(kind))]
    config = load("paper", root / "config")
    return gather(config, sources)


@pytest.fixture
def own(root: Path, tmp_path: Path, finals) -> Content:
    """Three models, of which one has a name that HTML, reStructuredText and Typst would take for something else."""
    runs = finals("shapes", {"rbf": [9.0, 8.0], "rotation": [4.0, 5.0], "affine": [3.0, 2.5]}, **ORIGIN, **OUTCOME)
    runs["label"] = runs["label"].replace({"RBF": "<b>a_1* & `b` #x|"})
    runs["orbit.alpha"] = runs["variant"].map({"rotation": 30.0})
    write_csv(runs_table(runs), tmp_path / "runs.csv")
    write_csv(experiment_table(runs, "shapes"), tmp_path / "shapes.csv")
    (tmp_path / "times.csv").write_text("began,device,seconds\nthen,CPU,7000\nlater,CPU,200\n")
    config = load("own", root / "config")
    return gather(config, [tmp_path / "shapes.csv", tmp_path / "runs.csv"], tmp_path / "times.csv")
