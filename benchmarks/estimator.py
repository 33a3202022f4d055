"""
The estimator as a user would call it: how good, how sure and how fast, with all sizes left to it.

    python benchmarks/estimator.py          # 3,000 digits, minutes on two cores
    python benchmarks/estimator.py --train 60000 --page estimator_gpu    # on a GPU

It writes benchmarks/estimator.csv, estimator_bins.csv, estimator.md and estimator.png, or the same by the name of the
page. Error and probabilities are those of MNIST's 10,000 test images. The picture is the reliability diagram: how often
the model is right where it says that it is so sure.
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


def measure(
    name: str, count: int, settings: dict[str, int], keep: Path | None
) -> tuple[dict[str, object], pd.DataFrame]:
    """
    :param name: likelihood and orbit.
    :param keep: a folder for the trained model.
    :return: what was measured, and the bins of the reliability diagram.
    """
    from orbitgp import InvariantClassifier, calibration, datasets

    data, (likelihood, orbit) = datasets.mnist(), name.split("/")
    train = data.train.take(count)
    start = time.perf_counter()
    model = InvariantClassifier(orbit, likelihood=likelihood, verbose=False, **settings).fit(train.images, train.labels)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    probabilities = model.predict_proba(data.test.images)
    predicting = time.perf_counter() - start
    if keep is not None:
        model.save(keep / f"{likelihood}-{orbit}.orbitgp")
    bins = pd.DataFrame(calibration.reliability(probabilities, data.test.labels)._asdict())
    row = {
        "likelihood": likelihood,
        "orbit": orbit,
        "images": count,
        "error": 100 * np.mean(probabilities.argmax(1) != data.test.labels),
        "nll": -np.mean(np.log(probabilities[np.arange(len(probabilities)), data.test.labels])),
        "calibration_error": 100 * calibration.expected_calibration_error(probabilities, data.test.labels),
        "evidence": model.evidence_,
        "fit_s": seconds,
        "predict_ms": 1e3 * predicting / len(probabilities),
        "sizes": str(model.sizes_),
    }
    return row, bins.assign(likelihood=likelihood, orbit=orbit)


def draw(bins: pd.DataFrame, file: Path) -> None:
    """Accuracy over confidence, a line for each model. Bins of fewer than ten images are left out."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4, 4))
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    for (name, rows), marker in zip(
        bins[bins.images >= 10].groupby(["likelihood", "orbit"], sort=False), "osDv^<>Px", strict=False
    ):
        rows = rows.sort_values("confidence")
        axes.plot(rows.confidence, rows.accuracy, marker=marker, markersize=4, label=", ".join(map(str, name)))
    axes.set(xlabel="confidence", ylabel="share that is right", xlim=(0.2, 1.01), ylim=(0.2, 1.01))
    if axes.get_legend_handles_labels()[0]:  # none where no bin has ten images
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.02, 1))
    figure.savefig(file, dpi=150, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=int, default=3000, help="images to train on, the first of MNIST")
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="LIKELIHOOD/ORBIT")
    parser.add_argument("--steps", type=int, help="instead of those that it chooses")
    parser.add_argument("--page", default="estimator", help="what the written files are called")
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("--keep", type=Path, help="a folder for the trained models")
    given = parser.parse_args()
    from orbitgp.fitting.devices import describe

    settings = {} if given.steps is None else {"steps": given.steps}
    found = [measure(model, given.train, settings, given.keep) for model in given.models]
    rows, bins = pd.DataFrame([row for row, _ in found]), pd.concat([bins for _, bins in found])
    rows.to_csv(given.folder / f"{given.page}.csv", index=False, float_format="%.6g")
    bins.to_csv(given.folder / f"{given.page}_bins.csv", index=False, float_format="%.6g")
    draw(bins, given.folder / f"{given.page}.png")
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
    lines += ["", f"![Share of test images that are right, over the model's confidence]({given.page}.png)"]
    (given.folder / f"{given.page}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
