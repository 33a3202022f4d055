"""
The code of README and of docs/library.md is run as it stands there, with fewer steps; that of the quickstart is
README's. README's numbers and the docs' tables are those of files.
"""

import json
import re
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/quickstart.md", "docs/library.md")
README, QUICKSTART, LIBRARY = ((ROOT / name).read_text(encoding="utf-8") for name in PAGES)


def snippets(page):
    return re.findall(r"```python\n(.*?)```", page, flags=re.S)


@pytest.fixture
def printed_by(tmp_path, monkeypatch, capsys):
    """What a snippet says of thumbnails of digits, in a training that is cut short."""
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")

    def run(code, images, *smaller):
        assert len(code.splitlines()) <= 20
        thumbnails = images.images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
        np.savez("my_images.npz", images=thumbnails, labels=images.labels)
        for text, shorter in smaller:
            assert text in code
            code = code.replace(text, shorter)
        exec(code, {"__name__": "__main__"})
        said = capsys.readouterr().out
        error = float(re.search(r"test error ([0-9.]+) %", said)[1])
        assert error < 45  # half of guessing's: it learns, and no more is asked of it
        return said

    return run


def test_digits_in_a_few_lines(mnist_data, printed_by):
    smaller = (('"affine"', '"affine", steps=40, inducing=50'), ("digits.test", "digits.test.take(500)"))
    said = printed_by(snippets(README)[0], mnist_data.train.take(1), *smaller)
    assert re.search(r"log evidence at least -?[\d,]+ nats", said)
    measured = pd.read_csv(ROOT / "benchmarks" / "estimator.csv").set_index(["likelihood", "orbit"]).loc["gaussian"]
    none, affine = measured.loc["none"], measured.loc["affine"]
    assert f"test error {affine.error:.2f} %, log evidence at least {affine.evidence:,.0f} nats" in README
    text = " ".join(README.split())
    assert f"The fit took {affine.fit_s:.0f} s on two cores." in text
    lower = f"the error is {none.error:.2f} %, and the evidence is {affine.evidence - none.evidence:,.0f} nats lower"
    assert lower in text


def test_own_images_in_twenty_lines_at_most(mnist_data, printed_by, tmp_path):
    smaller = (
        ('(orbit="affine")', '(orbit="affine", steps=40, inducing=50)'),
        ('"rotation", "affine"]', '"affine"], steps=10, inducing=20'),
    )
    said = printed_by(snippets(README)[1], mnist_data.train.take(800), *smaller)
    assert re.search(r"^(affine|none) .* chosen ", said, flags=re.M)
    assert {"mine.orbitgp", "orbit.png", "served"} <= {path.name for path in tmp_path.iterdir()}


def test_the_quickstart_has_the_code_that_readme_has():
    readme, quickstart = (sorted("".join(code).split("\n")) for code in (snippets(README)[1:2], snippets(QUICKSTART)))
    assert [line for line in quickstart if line] == [line for line in readme if line]


def test_a_model_of_ones_own_in_twenty_lines_at_most(mnist_data, printed_by):
    smaller = (("steps=300", "steps=40"), ("count=150", "count=50"), ("batch=200", "batch=100"))
    printed_by(snippets(LIBRARY)[0], mnist_data.train.take(800), *smaller)


def test_an_orbit_of_ones_own():
    import gpflow
    import tensorflow as tf

    from orbitgp.inducing import BasePoints
    from orbitgp.kernels import Invariant
    from orbitgp.likelihoods import PolyaGammaBernoulli, RecognitionNetwork
    from orbitgp.models import InvariantSVGP

    names: dict = {}
    exec(snippets(LIBRARY)[1], names)
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
    for folder, page in ((ROOT, README), (ROOT / "docs", LIBRARY)):
        links = re.findall(r"\]\((?!https:)([^)#]+)\)", page)
        assert [link for link in links if not (folder / link).exists()] == []


def test_the_numbers_are_those_of_the_files_beside_them():
    speed, beside = README.split("## Speed")[1].split("## ")[0].split("Beside the authors")
    table = re.findall(r"^\| (?!\W*---).*\| ([0-9.]+) \| ([0-9.]+) \|$", speed, flags=re.M)
    measured = pd.read_csv(ROOT / "benchmarks" / "step.csv").query("comparison == 'reference'")
    kept = measured[(measured.estimator == "grouped") & (measured.covariance == "shared") | (measured.index == 0)]
    assert table == [(f"{row.time_ratio:.2f}", f"{row.memory_ratio:.2f}") for row in kept.itertuples()]
    assert len(table) == 5
    peer = pd.read_csv(ROOT / "benchmarks" / "peer.csv")
    cells = re.findall(r"\| ([0-9.]+) \| ([0-9.]+) \| ([0-9.]+) \|$", beside, flags=re.M)
    assert cells == [(f"{row.step_s:.2f}", f"{row.predict_s:.1f}", f"{row.variance:.0f}") for row in peer.itertuples()]
    columns = [("paper_error", "paper_std"), ("error_mean", "error_std"), ("elbo_mean", "elbo_std")]
    for _, row in pd.read_csv(ROOT / "results/paper/tables/mnist.csv").iterrows():
        pairs = [tuple(f"{row[name]:{',.0f' if 'elbo' in name else '.2f'}}" for name in pair) for pair in columns]
        assert f"| {row.label} | {' | '.join(' ± '.join(pair) for pair in pairs)} |\n" in README
    verdicts = pd.read_csv(ROOT / "results/paper/claims.csv").verdict.value_counts()
    counts = "Of {n} [claims](results/paper/claims.md), {holds} hold, {exceeds} exceed, {tie} tie and {fails} fail"
    assert counts.format(n=verdicts.sum(), **verdicts) in " ".join(README.split())


def test_tables_of_the_docs_are_those_of_the_files_beside_them():
    measured = pd.read_csv(ROOT / "benchmarks" / "estimator_gpu.csv").query("orbit == 'affine'")
    gaussian, dirichlet = (measured.set_index("likelihood").loc[name] for name in ("gaussian", "dirichlet"))
    said = f'is at {gaussian.error:.2f} % after {gaussian.fit_s:.0f} s. With `likelihood="dirichlet"`, beside other '
    said += f"trainings, it is at {dirichlet.error:.2f} % after {dirichlet.fit_s:.0f} s, with a test NLL of "
    said += f"{dirichlet.nll:.3f} and a calibration error of {dirichlet.calibration_error:.1f} %"
    assert said in " ".join(README.split())
    for row in measured.itertuples():
        said = re.search(rf"^\| `\"{row.likelihood}\"` \|.*$", LIBRARY, flags=re.M)[0]
        assert said.endswith(f"| {row.error:.2f} | {row.nll:.3f} | {row.calibration_error:.1f} |")
    page = (ROOT / "docs" / "sums.md").read_text(encoding="utf-8")
    errors = []
    for folder in sorted((ROOT / "results" / "sums" / "runs" / "sums" / "patches").iterdir()):
        final = json.loads((folder / "final.json").read_text(encoding="utf-8"))
        numbers = [final[name] for name in ("test_error", "test_class_nll", "test_calibration_error", "elbo")]
        assert "| {} | {:.2f} | {:.3f} | {:.2f} | {:,.0f} |".format(final["seed"], *numbers) in page
        errors.append(final["test_error"])
    assert f"{np.mean(errors):.2f} ± {np.std(errors, ddof=1):.2f} % on MNIST" in " ".join(page.split())
    assert len(errors) == 3
