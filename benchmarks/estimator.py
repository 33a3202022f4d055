"""
The estimator as a user would call it: how good, how sure and how fast, with all sizes left to it.

    python benchmarks/estimator.py          # 3,000 digits, minutes on two cores
    python benchmarks/estimator.py --train 60000 --page estimator_gpu    # on a GPU

It writes benchmarks/estimator.csv, estimator_bins.csv, estimator.md and estimator.png, or the same by the name of the
page; what the page has of other models than those asked for stays. Error and probabilities are those of MNIST's 10,000
test images. The picture is the reliability diagram: how often the model is right where it says that it is so sure.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from cells import typed

HERE = Path(__file__).resolve().parent
MODEL = ["likelihood", "orbit"]
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
    page = given.folder / f"{given.page}.csv"
    if page.exists() and (sizes := {*pd.read_csv(page).images} - {given.train}):
        parser.error(f"{page} has rows of {sizes.pop():,} images, not of {given.train:,}; name another by --page")
    found = [measure(model, given.train, settings, given.keep) for model in given.models]
    new = pd.DataFrame([row for row, _ in found]).assign(command=typed("estimator", sys.argv[1:]), device=describe())
    rows = with_others(new, page)
    bins = with_others(pd.concat([bins for _, bins in found]), given.folder / f"{given.page}_bins.csv")
    draw(bins, given.folder / f"{given.page}.png")
    (given.folder / f"{given.page}.md").write_text(report(rows, given.page))


def with_others(new: pd.DataFrame, file: Path) -> pd.DataFrame:
    """Adds the rows that a file has of other models, and writes it."""
    if file.exists():
        old = pd.read_csv(file)
        measured = pd.MultiIndex.from_frame(old[MODEL]).isin(pd.MultiIndex.from_frame(new[MODEL]))
        new = pd.concat([old[~measured], new]) if not measured.all() else new
    new.to_csv(file, index=False, float_format="%.6g")
    return new


def report(rows: pd.DataFrame, page: str) -> str:
    """The page: a row for each model, and the commands that made them."""
    lines = [
        f"# InvariantClassifier on the first {rows.images.iloc[0]:,} images of MNIST",
        "",
        f"{rows.sizes.iloc[0]}. One seed. Evidence compares orbits under one likelihood, not likelihoods. Times are "
        "those of the run, with whatever else ran beside it.",
        "",
        "| likelihood | orbit | test error, % | NLL | calibration error, % | evidence, nats | fit, s | predict, ms |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows.itertuples():
        numbers = (f"{row.error:.2f}", f"{row.nll:.3f}", f"{row.calibration_error:.1f}", f"{row.evidence:,.0f}")
        times = (f"{row.fit_s:.0f}", f"{row.predict_ms:.1f}")
        lines.append(f"| {' | '.join([*map(str, (row.likelihood, row.orbit)), *numbers, *times])} |")
    lines += ["", f"![Share of test images that are right, over the model's confidence]({page}.png)", ""]
    lines += [f"- `{command}` on {device}" for command, device in rows[["command", "device"]].drop_duplicates().values]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
