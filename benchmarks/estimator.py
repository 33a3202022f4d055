"""
The estimator as a user would call it: how good, how sure and how fast, with all sizes left to it.

    python benchmarks/estimator.py          # 3,000 digits, minutes on two cores; writes benchmarks/estimator.{csv,md}
    python benchmarks/estimator.py --train 60000    # on a GPU

Error and probabilities are those of MNIST's 10,000 test images.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
MODELS = (
    "gaussian/none",
    "gaussian/rotation",
    "gaussian/affine",
    "gaussian/local",
    "dirichlet/affine",
    "softmax/affine",
)
BINS = 15


def calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Expected calibration error: |mean confidence − accuracy| over bins of confidence, weighted by their images."""
    confidence, right = probabilities.max(1), probabilities.argmax(1) == labels
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    parts = [(confidence[bins == b].mean() - right[bins == b].mean()) * np.sum(bins == b) for b in np.unique(bins)]
    return float(np.sum(np.abs(parts)) / len(labels))


def measure(name: str, count: int, settings: dict[str, int]) -> dict[str, object]:
    from orbitgp import InvariantClassifier, datasets

    data, (likelihood, orbit) = datasets.mnist(), name.split("/")
    train = data.train.take(count)
    start = time.perf_counter()
    model = InvariantClassifier(orbit, likelihood=likelihood, verbose=False, **settings).fit(train.images, train.labels)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    probabilities = model.predict_proba(data.test.images)
    return {
        "likelihood": likelihood,
        "orbit": orbit,
        "images": count,
        "error": 100 * np.mean(probabilities.argmax(1) != data.test.labels),
        "nll": -np.mean(np.log(probabilities[np.arange(len(probabilities)), data.test.labels])),
        "calibration_error": 100 * calibration_error(probabilities, data.test.labels),
        "evidence": model.evidence_,
        "fit_s": seconds,
        "predict_ms": 1e3 * (time.perf_counter() - start) / len(probabilities),
        "sizes": str(model.sizes_),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=int, default=3000, help="images to train on, the first of MNIST")
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="LIKELIHOOD/ORBIT")
    parser.add_argument("--steps", type=int, help="instead of those that it chooses")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    from orbitgp.fitting.devices import describe

    settings = {} if given.steps is None else {"steps": given.steps}
    rows = pd.DataFrame([measure(model, given.train, settings) for model in given.models])
    rows.to_csv(given.folder / "estimator.csv", index=False, float_format="%.6g")
    lines = [
        f"# InvariantClassifier on the first {given.train:,} images of MNIST",
        "",
        f"`{' '.join(['python benchmarks/estimator.py', *sys.argv[1:]])}`. {rows.sizes[0]}. One seed, on {describe()}. "
        "Evidence compares orbits under one likelihood, not likelihoods.",
        "",
        "| likelihood | orbit | test error, % | NLL | calibration error, % | evidence, nats | fit, s | predict, ms |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows.itertuples():
        numbers = (f"{row.error:.2f}", f"{row.nll:.3f}", f"{row.calibration_error:.1f}", f"{row.evidence:,.0f}")
        times = (f"{row.fit_s:.0f}", f"{row.predict_ms:.1f}")
        lines.append(f"| {' | '.join([*map(str, (row.likelihood, row.orbit)), *numbers, *times])} |")
    (given.folder / "estimator.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
