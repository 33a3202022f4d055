"""
Is the angle recovered where the model is right? A positive control for Fig. 3.

    python benchmarks/control.py    # some ten minutes; writes benchmarks/control.csv, control.md and control.png

The digits are those of Fig. 3, rotated by up to 90°. Their targets are no labels but draws from the model itself,

    y ~ N(0, v (K_α + r I)),    K_α averaged over rotations by up to α, as in benchmarks/angle.py,

for several true α. The exact evidence of each y, at its best lengthscale, variance and noise, then chooses an angle. If
it is the true one, what Fig. 3 learns of real labels is what these say, and not what the method does.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from angle import averaged_kernels, best_evidences

from orbitgp.datasets import parity
from orbitgp.files import write_text
from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
DRAWN_FROM = 90.0  # degrees, of the digits


def measured(given: argparse.Namespace) -> pd.DataFrame:
    """One row for each number of images, true angle and draw of targets: the angle that its evidence chooses."""
    images = parity(DRAWN_FROM, seed=0).train.images[: max(given.images)]
    kernels = averaged_kernels(images, given.step, given.lengthscales)
    truth = given.lengthscales.index(given.lengthscale)
    rng, rows = np.random.default_rng(given.seed), []
    for N in sorted(given.images):
        drawn = []
        for true in given.true:
            covariance = kernels[truth, round(true / given.step) - 1, :N, :N] + given.noise * np.eye(N)
            drawn.append(np.linalg.cholesky(covariance) @ rng.normal(size=(N, given.draws)))
        Y = np.concatenate(drawn, axis=1)  # [N, angles · draws]
        found = np.array([[best_evidences(K[:N, :N], Y)[0] for K in of_scale] for of_scale in kernels])
        evidence = found.max(axis=0)  # of the best lengthscale, [angles of the grid, angles · draws]
        for column in range(Y.shape[1]):
            true, draw = given.true[column // given.draws], column % given.draws
            at_truth = evidence[round(true / given.step) - 1, column]
            best = int(evidence[:, column].argmax())
            rows.append((N, true, draw, given.step * (best + 1), evidence[best, column] - at_truth))
    return pd.DataFrame(rows, columns=["images", "true_angle", "draw", "angle", "gain"])


def report(frame: pd.DataFrame, command: str) -> str:
    """Mean and spread of the chosen angle for each true one."""
    groups = frame.groupby(["images", "true_angle"])
    cells = []
    for (images, true), rows in groups:
        error = np.sqrt(np.mean(np.square(rows.angle - rows.true_angle)))
        said = f"{rows.angle.mean():.0f} ± {rows.angle.std(ddof=1):.0f}"
        cells.append([f"{images:,}", f"{true:g}", said, f"{error:.0f}", f"{rows.gain.mean():.1f}"])
    head = ["images", "true angle, °", "chosen, °", "root mean square error, °", "nats above the true angle"]
    return (
        "# Targets drawn from the model: is their angle recovered?\n\n"
        "![The angle that the exact evidence chooses, against the true one](control.png)\n\n"
        "Means and standard deviations over draws of the targets.\n\n"
        f"    {command}\n\n{markdown_table(head, cells, [True] * len(head))}"
    )


def draw(frame: pd.DataFrame, file: Path) -> None:
    """The chosen angle against the true one."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.2, 3.4), layout="constrained")
    for number, (images, rows) in enumerate(frame.groupby("images")):
        of_angle = rows.groupby("true_angle").angle
        places = of_angle.mean().index + 2.0 * (number - 1)
        axes.errorbar(places, of_angle.mean(), of_angle.std(ddof=1), fmt="o", capsize=2, label=f"{images:,} images")
    axes.plot([0, 180], [0, 180], color="#a9a9a9", zorder=0)
    axes.set_xlabel("true angle, °")
    axes.set_ylabel("chosen by the evidence, °")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def main() -> None:
    """Reads the arguments and writes table, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--true", type=float, nargs="+", default=[30.0, 60.0, 90.0, 120.0, 150.0], help="degrees")
    parser.add_argument("--images", type=int, nargs="+", default=[250, 500, 1000], help="the first so many")
    parser.add_argument("--step", type=float, default=10.0, help="of the grid of angles, in degrees")
    parser.add_argument("--lengthscales", type=float, nargs="+", default=[2.5, 3.5, 5.0])
    parser.add_argument("--lengthscale", type=float, default=3.5, help="of the model that targets are drawn from")
    parser.add_argument("--noise", type=float, default=0.01, help="its noise variance by that of g")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    if given.lengthscale not in given.lengthscales:
        parser.error(f"--lengthscale must be one of --lengthscales, got {given.lengthscale:g}")
    if any(true % given.step or not 0 < true <= 180 for true in given.true):
        parser.error(f"--true must be multiples of --step = {given.step:g} up to 180, got {given.true}")
    frame = measured(given)
    write_text(given.folder / "control.csv", frame.to_csv(index=False, float_format="%.6g"))
    draw(frame, given.folder / "control.png")
    write_text(given.folder / "control.md", report(frame, " ".join(["python benchmarks/control.py", *sys.argv[1:]])))
    sys.stdout.write((given.folder / "control.md").read_text())


if __name__ == "__main__":
    main()
