"""
Dirichlet labels: how small should their concentration ε be? Chosen by training images that are held out.

    python benchmarks/concentration.py                                          # 3,000 digits, minutes on two cores
    python benchmarks/concentration.py --train 50000 --page concentration_gpu   # on a GPU

Trains on the first images of MNIST's training set, and judges on its last 10,000 and on the test images. It writes
benchmarks/concentration.csv, .md and .png, or the same by the name of the page; the same command goes on where it was
stopped.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cells import measure_all

from orbitgp.files import write_text
from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
HELD_OUT = 10_000
VALUES = (0.01, 0.003, 0.001, 3e-4, 1e-4, 3e-5, 1e-5)
MEASURES = {"error": "error, %", "nll": "NLL", "calibration": "calibration error, %"}
PARTS = {"held_out": "held-out images", "test": "test images"}


def measure(concentration: float, *, count: int, judged: int, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """One row: the scores of a model on held-out and on test images."""
    from orbitgp import InvariantClassifier, calibration, datasets
    from orbitgp.likelihoods import DirichletLabels

    class WithConcentration(InvariantClassifier):
        """As the estimator, but for ε."""

        def _likelihood(self, image_values: int, outputs: int) -> DirichletLabels:
            return DirichletLabels(outputs, concentration)

        def _mean(self, outputs: int) -> float:
            return DirichletLabels(outputs, concentration).mean_target()

    data = datasets.mnist()
    train = data.train.take(count)
    model = WithConcentration(likelihood="dirichlet", verbose=False, **settings).fit(train.images, train.labels)
    row: dict[str, Any] = {"concentration": concentration, "images": count, "fit_s": model.seconds_}
    parts = (data.train.take(range(len(data.train) - judged, len(data.train))), data.test.take(judged))
    for name, part in zip(PARTS, parts, strict=True):
        probabilities = model.predict_proba(part.images)
        row[f"{name}_error"] = 100 * np.mean(probabilities.argmax(1) != part.labels)
        row[f"{name}_nll"] = -np.mean(np.log(probabilities[np.arange(len(probabilities)), part.labels]))
        row[f"{name}_calibration"] = 100 * calibration.expected_calibration_error(probabilities, part.labels)
    print(f"ε = {concentration:g}: held-out NLL {row['held_out_nll']:.4f}", file=sys.stderr, flush=True)
    return [row]


def report(frame: pd.DataFrame, page: str) -> str:
    """The chosen ε, then all of them."""
    best = frame.loc[frame.held_out_nll.idxmin()]
    head = ["ε", *(f"{measure}, {part}" for part in PARTS.values() for measure in MEASURES.values()), "fit, s"]
    cells = [
        [
            f"{row.concentration:g}",
            *(f"{row[f'{part}_{name}']:.{4 if name == 'nll' else 2}f}" for part in PARTS for name in MEASURES),
            f"{row.fit_s:.0f}",
        ]
        for _, row in frame.sort_values("concentration", ascending=False).iterrows()
    ]
    return (
        f"# The concentration of Dirichlet labels, {best.images:,} digits\n\n"
        f"Held-out images choose ε = {best.concentration:g}: there their NLL is lowest. On the test images its\n"
        f"error is {best.test_error:.2f} %, its NLL {best.test_nll:.3f} and its calibration error "
        f"{best.test_calibration:.2f} %.\n\n"
        f"![NLL and calibration error over ε]({page}.png)\n\n"
        f"    {f'python benchmarks/concentration.py {best.command}'.rstrip()}\n\n"
        f"Affine maps, one seed, on {best.device}.\n\n"
        f"{markdown_table(head, cells, [True] * len(head))}"
    )


def draw(frame: pd.DataFrame, file: Path) -> None:
    """NLL and calibration error over ε."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
    ordered = frame.sort_values("concentration")
    for panel, name in zip(panels, ("nll", "calibration"), strict=True):
        for part, marker in zip(PARTS, "os", strict=True):
            panel.plot(ordered.concentration, ordered[f"{part}_{name}"], marker=marker, label=PARTS[part])
        panel.set(xscale="log", xlabel="concentration ε", ylabel=MEASURES[name])
        panel.set_ylim(bottom=0)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def main() -> None:
    """Reads the arguments and writes table, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=int, default=3000, help="images to train on, the first of MNIST")
    parser.add_argument("--values", type=float, nargs="+", default=VALUES)
    parser.add_argument("--judged", type=int, default=HELD_OUT, help="held-out images, and test images")
    parser.add_argument("--steps", type=int, help="instead of those that the estimator chooses")
    parser.add_argument("--page", default="concentration", help="what the written files are called")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    settings = {} if given.steps is None else {"steps": given.steps}
    how = partial(measure, count=given.train, judged=given.judged, settings=settings)
    file, command = given.folder / f"{given.page}.csv", shlex.join(sys.argv[1:])
    frame = measure_all(file, command, ["concentration"], [(value,) for value in given.values], how)
    draw(frame, given.folder / f"{given.page}.png")
    write_text(given.folder / f"{given.page}.md", report(frame, given.page))
    sys.stdout.write((given.folder / f"{given.page}.md").read_text())


if __name__ == "__main__":
    main()
