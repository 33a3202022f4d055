"""A factorisation that really fails, in the compiled step: recorded in final.json and in the report, or given up."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults.trainings import ROOT, Training

# to a kernel this wide all images are one, and its matrix has no Cholesky factor without jitter
WIDE = {"orbit": {"kind": "identity"}, "scheme": {"kind": "full"}, "kernel": {"variance": 1.0, "lengthscale": 1e9}}


def page_of(training: Training, folder: Path) -> str:
    """What the report shows of the runs."""
    names = ("final.json", "metrics.csv", "provenance.json", "config.yaml")
    table = [sys.executable, "workflow/scripts/table.py", "--output", str(folder / "runs.csv"), "--caption", "Runs."]
    table += ["--paper", "config/paper_values.yaml", *(str(training.folder / name) for name in names)]
    page = [sys.executable, "workflow/scripts/page.py", "--output", str(folder / "runs.html"), str(folder / "runs.md")]
    for command in (table, page):
        subprocess.run(command, cwd=ROOT, check=True)
    return (folder / "runs.html").read_text()


@pytest.mark.parametrize(
    ("jitter", "kinds", "diverged", "shown"),
    [
        (1e-17, {"not finite"}, False, "not finite"),
        (1e-30, {"not finite", "given up"}, True, "given up, not finite ×5"),
    ],
    ids=["mended", "given up"],
)
def test_it_is_recorded_and_reported(
    training: Training,
    small_spec: Callable[..., dict[str, Any]],
    tmp_path: Path,
    jitter: float,
    kinds: set[str],
    diverged: bool,
    shown: str,
) -> None:
    training.spec = small_spec(**WIDE, jitter=jitter, precision="float64", evaluation={"count": 1})
    assert training.run() == 0, training.told()
    final = json.loads((training.folder / "final.json").read_text())
    assert {event["kind"] for event in final["events"]} == kinds
    assert final["diverged"] is diverged
    assert 1 <= len(final["events"]) <= 6  # five returns, and giving up
    for event in final["events"]:
        assert f"step {event['step']}: {event['kind']}: {event['detail']}" in training.logged()
    assert shown in page_of(training, tmp_path)
