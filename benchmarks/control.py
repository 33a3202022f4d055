"""
Is the angle recovered where the model is right? A positive control for Fig. 3.

    python benchmarks/control.py    # some ten minutes; writes benchmarks/control.csv, control.md and control.png

The digits are those of Fig. 3, rotated by up to 90°. Their targets are draws from the model itself,

    y ~ N(0, v (K_α + r I)),    K_α averaged over rotations by up to α, as in benchmarks/angle.py,

for several true α: the values y, and the labels sign(y). The exact evidence of each, at its best lengthscale, variance
and noise, then chooses an angle, as it does for the real labels in benchmarks/angle.py. If it is the true one, what
Fig. 3 learns of real labels is what these say, and not what the method does.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from angle import averaged_kernels, best_evidences

from orbitgp.datasets import parity
from orbitgp.files import write_text
from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
DRAWN_FROM = 90.0  # degrees, of the digits
KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"values": np.asarray, "labels": np.sign}


def measured(given: argparse.Namespace) -> pd.DataFrame:
    """A row for each number of images, true angle, draw and kind of targets: the angle that its evidence chooses."""
    images = parity(DRAWN_FROM, seed=0).train.images[: max(given.images)]
    kernels = averaged_kernels(images, given.step, given.lengthscales)
    truth = given.lengthscales.index(given.lengthscale)
    rng, rows = np.random.default_rng(given.seed), []
    columns = list(itertools.product(given.true, range(given.draws), KINDS))
    for N in sorted(given.images):
        Y = np.empty((N, len(columns)))
        for number, true in enumerate(given.true):
            covariance = kernels[truth, round(true / given.step) - 1, :N, :N] + given.noise * np.eye(N)
            drawn = np.linalg.cholesky(covariance) @ rng.normal(size=(N, given.draws))
            own = Y.reshape(N, len(given.true), given.draws, len(KINDS))[:, number]
            own[...] = np.stack([make(drawn) for make in KINDS.values()], axis=-1)
        found = np.array([[best_evidences(K[:N, :N], Y)[0] for K in of_scale] for of_scale in kernels])
        evidence = found.max(axis=0)  # of the best lengthscale, [angles of the grid, columns]
        for (true, draw, kind), own in zip(columns, evidence.T, strict=True):
            best = int(own.argmax())
            gain = own[best] - own[round(true / given.step) - 1]
            rows.append((N, kind, true, draw, given.step * (best + 1), gain))
    return pd.DataFrame(rows, columns=["images", "targets", "true_angle", "draw", "angle", "gain"])


def report(frame: pd.DataFrame, command: str) -> str:
    """Mean and spread of the chosen angle for each true one."""
    cells = []
    for (images, true), rows in frame.groupby(["images", "true_angle"]):
        cells.append([f"{images:,}", f"{true:g}"])
        for kind in KINDS:
            own = rows[rows.targets == kind]
            said = f"{own.angle.mean():.0f} ± {own.angle.std(ddof=1):.0f}"
            cells[-1] += [said, f"{_error(own):.0f}", f"{own.gain.mean():.1f}"]
    head = ["images", "true angle, °"]
    for kind in KINDS:
        head += [f"{kind}: chosen, °", "root mean square error, °", "nats above the true angle"]
    most = frame[frame.images == frame.images.max()]
    errors = {kind: f"{_error(most[most.targets == kind]):.0f}° for {kind}" for kind in KINDS}
    grid = ", ".join(f"{angle:g}" for angle in sorted(frame.true_angle.unique()))
    return (
        "# Targets drawn from the model: is their angle recovered?\n\n"
        f"With {most.images.iloc[0]:,} images the angle that the exact evidence chooses has a root mean square error\n"
        f"of {' and '.join(errors.values())}; true angles are {grid}°.\n\n"
        "![The angle that the exact evidence chooses, against the true one](control.png)\n\n"
        f"    {command}\n\nMeans and standard deviations over draws of the targets.\n\n"
        f"{markdown_table(head, cells, [True] * len(head))}"
    )


def _error(rows: pd.DataFrame) -> float:
    """Root mean square error of the chosen angles, in degrees."""
    return float(np.sqrt(np.mean(np.square(rows.angle - rows.true_angle))))


def draw(frame: pd.DataFrame, file: Path) -> None:
    """The chosen angle against the true one."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(KINDS), figsize=(8.4, 3.6), layout="constrained", sharey=True)
    for axes, kind in zip(panels, KINDS, strict=True):
        for number, (images, rows) in enumerate(frame[frame.targets == kind].groupby("images")):
            of_angle = rows.groupby("true_angle").angle
            places = of_angle.mean().index + 2.0 * (number - 1)
            axes.errorbar(places, of_angle.mean(), of_angle.std(ddof=1), fmt="o", capsize=2, label=f"{images:,} images")
        axes.plot([0, 180], [0, 180], color="#a9a9a9", zorder=0)
        axes.set_xticks(range(0, 181, 30))
        axes.set_yticks(range(0, 181, 30))
        axes.set_title(f"{kind} drawn from the model", fontsize=10)
        axes.set_xlabel("true angle, °")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("chosen by the evidence, °")
    panels[0].legend(frameon=False)
    figure.savefig(file, dpi=150)


def parse_grid(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Adds the arguments that a grid of angles and lengthscales, and draws of labels, need; reads and checks them."""
    parser.add_argument("--true", type=float, nargs="+", default=[30.0, 60.0, 90.0, 120.0, 150.0], help="degrees")
    parser.add_argument("--step", type=float, default=10.0, help="of the grid of angles, in degrees")
    parser.add_argument("--lengthscales", type=float, nargs="+", default=[2.5, 3.5, 5.0])
    parser.add_argument("--lengthscale", type=float, default=3.5, help="of the model that targets are drawn from")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    if given.lengthscale not in given.lengthscales:
        parser.error(f"--lengthscale must be one of --lengthscales, got {given.lengthscale:g}")
    if any(true % given.step or not 0 < true <= 180 for true in given.true):
        parser.error(f"--true must be multiples of --step = {given.step:g} up to 180, got {given.true}")
    return given


def main() -> None:
    """Reads the arguments and writes table, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=[500, 1000, 2000], help="the first so many")
    parser.add_argument("--noise", type=float, default=0.01, help="of the model's targets, by the variance of g")
    given = parse_grid(parser)
    frame = measured(given)
    write_text(given.folder / "control.csv", frame.to_csv(index=False, float_format="%.6g"))
    draw(frame, given.folder / "control.png")
    write_text(given.folder / "control.md", report(frame, " ".join(["python benchmarks/control.py", *sys.argv[1:]])))
    sys.stdout.write((given.folder / "control.md").read_text())


if __name__ == "__main__":
    main()
