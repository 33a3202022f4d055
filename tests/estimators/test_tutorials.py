"""The notebooks are run as they stand, cell by cell."""

import json
from pathlib import Path

import matplotlib
import pytest

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"


@pytest.mark.parametrize("name", [path.name for path in sorted(TUTORIALS.glob("*.ipynb"))])
def test_every_cell_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    names: dict = {"__name__": "__main__"}
    for cell in json.loads((TUTORIALS / name).read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    said = capsys.readouterr().out
    assert "chosen" in said and "test error" in said
