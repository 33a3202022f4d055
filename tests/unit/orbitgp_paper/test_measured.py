import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from orbitgp import files
from orbitgp.files import DamagedFile
from orbitgp_paper import measured
from orbitgp_paper.yaml_files import read_yaml

SCRIPTS = Path(__file__).resolve().parents[3] / "workflow" / "scripts"
SETTINGS = {"seed": 0, "inducing": [4, 8]}
OTHER = "is not the file that config.yaml beside it was written with"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Numbers and draws as their rules leave them."""
    rows = [["invariant", 4, 1.5, 1.86], ["invariant", 8, 1.8, 1.86], ["plain", 4, -12.5, -11.5]]
    files.write_csv(tmp_path / "bounds.csv", ["model", "inducing", "elbo", "log_marginal_likelihood"], rows)
    files.write_text(tmp_path / "samples.npz", "drawn 1.86 times")
    measured.write_settings(tmp_path / "config.yaml", SETTINGS, tmp_path / "bounds.csv", tmp_path / "samples.npz")
    measured.check(tmp_path / "bounds.csv", tmp_path / "samples.npz")
    return tmp_path


def test_settings_are_read_as_if_there_were_no_sums_and_may_have_the_name_of_the_file(tmp_path: Path) -> None:
    for name in ("rbf", "affine"):
        files.write_text(tmp_path / f"{name}.csv", name)
        measured.write_settings(tmp_path / f"{name}.yaml", SETTINGS, tmp_path / f"{name}.csv")
    assert read_yaml(tmp_path / "rbf.yaml") == SETTINGS
    measured.check(tmp_path / "rbf.csv", tmp_path / "affine.csv")
    (tmp_path / "rbf.csv").write_text("affine")
    with pytest.raises(DamagedFile, match=r"rbf\.csv is not the file that rbf\.yaml beside it was written with"):
        measured.check(tmp_path / "affine.csv", tmp_path / "rbf.csv")


def edited(path: Path, pattern: str, text: str = "") -> None:
    path.write_text(re.sub(pattern, text, path.read_text(), count=1, flags=re.M))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda toy: edited(toy / "bounds.csv", r"^plain.*\n"), OTHER),
        (lambda toy: edited(toy / "bounds.csv", "1.86", "1.87"), OTHER),
        (lambda toy: edited(toy / "config.yaml", "^#.*bounds.*\n"), "has no checksum of bounds.csv"),
        (lambda toy: (toy / "config.yaml").unlink(), "has no settings beside it"),
    ],
    ids=["cut at the end of a line", "a digit", "no sums", "no settings"],
)
def test_what_is_damaged_is_named(toy: Path, damage: Callable[[Path], None], says: str) -> None:
    damage(toy)
    with pytest.raises(DamagedFile, match=f"{toy}.*{says}"):
        measured.check(toy / "bounds.csv")


@pytest.mark.parametrize(
    "made",
    [
        "table.py toy_bounds.csv bounds.csv",
        "figure.py fig2_bound.svg bounds.csv",
        "figure.py appendix_a.svg bounds.csv",
        "figure.py fig1.svg samples.npz",
    ],
)
def test_neither_tables_nor_figures_are_made_of_whole_files_that_are_others(
    toy: Path, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, output, result = made.split()
    edited(toy / result, "1.86", "1.87")
    more = ["--caption", "", "--paper", "config/paper_values.yaml"] if script == "table.py" else []
    monkeypatch.setattr("sys.argv", [script, "--output", str(toy / "made" / output), *more, str(toy / result)])
    monkeypatch.syspath_prepend(str(SCRIPTS))
    with pytest.raises(DamagedFile, match=f"{toy / result} {OTHER}"):
        runpy.run_path(str(SCRIPTS / script), run_name="__main__")
    assert not (toy / "made").exists()
