"""README's code is run as it stands there."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, flags=re.S)


def test_own_images_in_twenty_lines_at_most(mnist_data, tmp_path):
    code = SNIPPETS[0]
    assert len(code.splitlines()) <= 20
    small = mnist_data.train.take(800)
    thumbnails = small.images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    np.savez(tmp_path / "my_images.npz", images=thumbnails, labels=small.labels)
    for text, smaller in (("steps=300", "steps=40"), ("count=150", "count=50"), ("batch=200", "batch=100")):
        assert text in code
        code = code.replace(text, smaller)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    error = float(re.search(r"test error ([0-9.]+) %", done.stdout)[1])
    assert error < 45  # half of guessing's: it learns, and no more is asked of it


def test_an_orbit_of_ones_own():
    import gpflow
    import tensorflow as tf

    from orbitgp.inducing import BasePoints
    from orbitgp.kernels import Invariant
    from orbitgp.likelihoods import PolyaGammaBernoulli, RecognitionNetwork
    from orbitgp.models import InvariantSVGP

    names: dict = {}
    exec(SNIPPETS[1], names)
    orbit = names["Brightness"]()
    X = np.random.default_rng(0).uniform(size=(4, 6))
    drawn = orbit.sample(X, 2, 8, [0, 0]).numpy()
    ratios = drawn / X[:, None, None]
    assert np.all((ratios > 0.8) & (ratios < 1.2))
    kernel = Invariant(gpflow.kernels.SquaredExponential(), orbit)
    model = InvariantSVGP(kernel, PolyaGammaBernoulli(RecognitionNetwork(6)), BasePoints(X), precision="mixed")
    with tf.GradientTape() as tape:
        bound = model.elbo((X, np.ones((4, 1))))
    assert np.isfinite(tape.gradient(bound, orbit.trainable_variables)[0])


def test_links_lead_somewhere():
    assert [link for link in re.findall(r"\]\(([^)#]+)\)", README) if not (ROOT / link).exists()] == []


def test_the_speeds_and_the_quick_numbers_are_those_of_the_files_beside_them():
    table = re.findall(r"^\| (?!\W*---).*\| ([0-9.]+) \| ([0-9.]+) \|$", README.split("## Speed")[1], flags=re.M)
    measured = pd.read_csv(ROOT / "benchmarks" / "step.csv").query("comparison == 'reference'")
    kept = measured[(measured.estimator == "grouped") & (measured.covariance == "shared") | (measured.index == 0)]
    assert table == [(f"{row.time_ratio:.2f}", f"{row.memory_ratio:.2f}") for row in kept.itertuples()]
    assert len(table) == 5
    table = re.findall(r"^\| (.+?) \| ([0-9.]+ ± [0-9.]+) \| ([0-9,]+ ± [0-9,]+) \|$", README, flags=re.M)
    assert table == [
        (row.label, f"{row.error_mean:.2f} ± {row.error_std:.2f}", f"{row.elbo_mean:,.0f} ± {row.elbo_std:,.0f}")
        for row in pd.read_csv(ROOT / "docs" / "quick" / "mnist.csv").itertuples()
    ]
    assert len(table) == 4


def test_the_numbers_in_the_papers_size_are_those_of_the_results(monkeypatch):
    monkeypatch.chdir(ROOT)
    spec = importlib.util.spec_from_file_location("readme", ROOT / "workflow" / "scripts" / "readme.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.filled(README) == README
    with pytest.raises(SystemExit, match="must have the lines"):
        script.filled(README.replace("<!-- to here -->", ""))
