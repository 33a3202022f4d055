"""The benchmark runs and says what it should; how fast it is, is no matter of tests."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SOURCE = Path(__file__).parents[1] / "benchmarks" / "step.py"


@pytest.fixture(scope="module")
def step():
    spec = importlib.util.spec_from_file_location("benchmark_step", SOURCE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_every_orbit_and_estimator_is_measured(step):
    tiny = step.Setting(batch=4, samples=4, inducing=6)
    settings = [replace(row, batch=4, samples=4, inducing=6, block=row.block and 2)
                for row in (*step.COMPARISONS["reference"], *step.COMPARISONS["orbit"])]  # fmt: skip
    assert tiny in settings
    for setting in settings:
        found = step.measure(setting, repeats=1, parts=setting == tiny)
        assert found["step_ms"] > 0
        assert np.isfinite(found["peak_mb"])
    assert {"draw_ms", "forward_ms"} <= set(step.measure(tiny, repeats=1, parts=True))


def test_the_table_has_ratios_to_its_first_row(step, monkeypatch, tmp_path):
    stages = dict.fromkeys(("draw_ms", "draw_and_kernel_ms", "forward_ms", "forward_and_backward_ms"), 1.0)
    times = iter([8.0, 2.0, 8.0, 2.0])
    monkeypatch.setattr(step, "in_own_process", lambda *_, **__: {"step_ms": next(times), "peak_mb": 10.0, **stages})
    monkeypatch.setattr(step, "COMPARISONS", {"pair": [step.PAPER, step.Setting()]})
    frame = step.run(["pair"], turns=2, repeats=1)
    assert list(frame.time_ratio) == [1.0, 0.25]
    step.write(frame, tmp_path, "the command")
    assert pd.read_csv(tmp_path / "step.csv").shape[0] == 2
    assert "the command" in (tmp_path / "step.md").read_text()
