import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orbitgp import files
from orbitgp.files import DamagedFile
from orbitgp_paper import config as configuration
from orbitgp_paper import measured

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = {"seed": 0, "inducing": [4, 8]}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """The toy's numbers as its rule leaves them."""
    rows = [
        ["invariant", 4, 1.5, 1.86],
        ["invariant", 8, 1.8, 1.86],
        ["plain", 4, -12.5, -11.5],
        ["plain", 8, -12.0, -11.5],
    ]
    files.write_csv(tmp_path / "bounds.csv", ["model", "inducing", "elbo", "log_marginal_likelihood"], rows)
    files.write_npz(tmp_path / "surfaces.npz", {"plain": np.zeros(3)})
    measured.write_settings(tmp_path / "config.yaml", SETTINGS, tmp_path / "bounds.csv", tmp_path / "surfaces.npz")
    return tmp_path


def test_settings_are_read_as_if_there_were_no_sums(toy: Path) -> None:
    assert configuration.read_yaml(toy / "config.yaml") == SETTINGS
    measured.check(toy / "bounds.csv", toy / "surfaces.npz")


def test_settings_may_have_the_name_of_the_file(tmp_path: Path) -> None:
    for name in ("rbf", "affine"):
        files.write_text(tmp_path / f"{name}.csv", name)
        measured.write_settings(tmp_path / f"{name}.yaml", SETTINGS, tmp_path / f"{name}.csv")
    measured.check(tmp_path / "rbf.csv", tmp_path / "affine.csv")
    (tmp_path / "rbf.csv").write_text("affine")
    with pytest.raises(DamagedFile, match=r"rbf\.csv is not the file that rbf\.yaml beside it was written with"):
        measured.check(tmp_path / "affine.csv", tmp_path / "rbf.csv")


def cut(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def edit(path: Path) -> None:
    path.write_text(path.read_text().replace("1.86", "1.87", 1))


def forget(path: Path) -> None:
    settings = path.with_name("config.yaml")
    settings.write_text(re.sub("^#.*\n", "", settings.read_text(), flags=re.M))


DAMAGE = {
    "cut at the end of a line": (cut, "is not the file that config.yaml beside it was written with"),
    "a digit": (edit, "is not the file that config.yaml beside it was written with"),
    "no sums": (forget, "does not say which file bounds.csv should be"),
    "no settings": (lambda path: path.with_name("config.yaml").unlink(), "has no settings beside it"),
}


def refusal(script: str, output: Path, result: Path) -> str:
    """The last line of a script that must not make anything of a result."""
    command = [sys.executable, f"workflow/scripts/{script}", "--output", str(output)]
    if script == "table.py":
        command += ["--caption", "", "--paper", "config/paper_values.yaml"]
    done = subprocess.run([*command, str(result)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert not output.exists()
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("script", ["table.py", "figure.py"])
def test_neither_tables_nor_figures_are_made_of_what_is_damaged(toy: Path, kind: str, script: str) -> None:
    """The table would come out, and be wrong."""
    damage, says = DAMAGE[kind]
    outputs = {"table.py": toy / "made" / "toy_bounds.csv", "figure.py": toy / "made" / "fig2_bound.svg"}
    damage(toy / "bounds.csv")
    line = refusal(script, outputs[script], toy / "bounds.csv")
    assert str(toy) in line and says in line


def test_no_figure_is_made_of_draws_that_are_not_those_of_the_settings(tmp_path: Path) -> None:
    def write(shade: int) -> None:
        draws = {"originals": np.zeros((2, 4, 4, 1), np.uint8), "draws": np.full((2, 3, 4, 4, 1), shade, np.uint8)}
        files.write_npz(tmp_path / "samples.npz", draws)

    write(100)
    measured.write_settings(tmp_path / "config.yaml", SETTINGS, tmp_path / "samples.npz")
    write(101)  # a whole file all the same
    line = refusal("figure.py", tmp_path / "made" / "fig1.svg", tmp_path / "samples.npz")
    assert f"{tmp_path / 'samples.npz'} is not the file that config.yaml beside it was written with" in line
