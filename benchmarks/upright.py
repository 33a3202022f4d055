"""
Why does the evidence want a wider orbit than the true one? Labels that rotation does not change at all, on real digits.

    python benchmarks/upright.py    # some ten minutes; writes benchmarks/upright.csv, upright.md and upright.png

The digits of Fig. 3 are odd or even however they are turned: within the data's angles ±t, labels do not change. A
model averaged over ±α cannot say so at α = t. Orbits of one digit at −t and at t have nothing in common there, so f is
as good as independent at both. This is a cause if labels of that sort, and nothing else about digits, are enough for a
wider orbit. So the labels here are not those of digits:

    y = sign f₀(x₀),    f₀ ~ GP(0, RBF kernel),    x₀ the image before it was rotated.

f₀ is smooth, so that images of one shape mostly have one label, as digits do. No class looks like another one upside
down, as 6 and 9 do; classes have nothing to do with digits. Beside it: the same rotated images with y drawn from the
model at α = t, whose labels do change under rotation. The exact evidence of both is taken as in benchmarks/angle.py,
with the same lengthscales for both.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from angle import averaged_kernels, best_evidences
from control import parse_grid

from orbitgp.datasets import mnist, parity
from orbitgp.files import write_text
from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
UPRIGHT, FROM_MODEL, DIGITS = "a function of the upright image", "drawn from the model", "odd or even"


def squared_distances(rows: np.ndarray) -> np.ndarray:
    """[N, N] between all pairs of ``rows`` [N, D]."""
    norms = np.sum(rows**2, axis=1)
    return np.maximum(norms[:, None] + norms - 2 * rows @ rows.T, 0.0)


def draws(covariance: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """[N, count] signs of draws from N(0, covariance [N, N])."""
    N = len(covariance)
    root = np.linalg.cholesky(covariance.astype(np.float64) + 1e-6 * np.eye(N))
    return np.sign(root @ rng.normal(size=(N, count)))


def measured(given: argparse.Namespace) -> pd.DataFrame:
    """A row for each true angle, kind of labels and draw: the angle that its evidence chooses."""
    N, rng, rows = given.images, np.random.default_rng(given.seed), []
    upright = mnist().train.images[:N].reshape(N, -1).astype(np.float64)
    plain = np.exp(squared_distances(upright) * (-0.5 / given.upright_lengthscale**2))
    truth = given.lengthscales.index(given.lengthscale)
    for true in given.true:
        train = parity(true, seed=0).train
        kernels = averaged_kernels(train.images[:N], given.step, given.lengthscales)
        own = kernels[truth, round(true / given.step) - 1]
        targets = {
            DIGITS: train.labels[:N, None].astype(np.float64),
            UPRIGHT: draws(plain, given.draws, rng),
            FROM_MODEL: draws(own, given.draws, rng),
        }
        Y = np.concatenate([*targets.values()], axis=1)
        evidence = np.array([[best_evidences(K, Y)[0] for K in of_scale] for of_scale in kernels]).max(axis=0)
        kinds = [(kind, draw) for kind, values in targets.items() for draw in range(values.shape[1])]
        for (kind, draw), curve in zip(kinds, evidence.T, strict=True):
            best = int(curve.argmax())
            gain = curve[best] - curve[round(true / given.step) - 1]
            rows.append((true, kind, draw, given.step * (best + 1), gain))
        print(pd.DataFrame(rows[-len(kinds) :]).groupby(1)[3].agg(["mean", "std"]), flush=True)
    return pd.DataFrame(rows, columns=["true_angle", "labels", "draw", "angle", "gain"])


def report(frame: pd.DataFrame, command: str, given: argparse.Namespace) -> str:
    """Mean and spread of the chosen angle for each true one."""
    cells = []
    for true, of_angle in frame.groupby("true_angle"):
        cells.append([f"{true:g}"])
        for kind in (DIGITS, UPRIGHT, FROM_MODEL):
            rows = of_angle[of_angle.labels == kind]
            spread = f" ± {rows.angle.std(ddof=1):.0f}" if len(rows) > 1 else ""
            cells[-1] += [f"{rows.angle.mean():.0f}{spread}", f"{rows.gain.mean():.1f}"]
    head = ["true angle, °"]
    for kind in (DIGITS, UPRIGHT, FROM_MODEL):
        head += [f"{kind}: chosen, °", "nats above the true angle"]
    return (
        "# Labels that rotation does not change: which angle does the evidence want?\n\n"
        "![The angle that the exact evidence chooses, against the true one](upright.png)\n\n"
        f"    {command}\n\n{given.images:,} digits, rotated by up to the true angle. Means and standard deviations "
        f"over\n{given.draws} draws of the labels; those of the digits are what they are.\n\n"
        f"{markdown_table(head, cells, [True] * len(head))}"
    )


def draw(frame: pd.DataFrame, file: Path) -> None:
    """The chosen angle against the true one, for each kind of labels."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    styles = {DIGITS: ("#555555", "D", -2), UPRIGHT: ("#b5654a", "o", 0), FROM_MODEL: ("#2a6f97", "s", 2)}
    for kind, (colour, marker, aside) in styles.items():
        of_angle = frame[frame.labels == kind].groupby("true_angle").angle
        error = of_angle.std(ddof=1).fillna(0.0)
        axes.errorbar(
            of_angle.mean().index + aside, of_angle.mean(), error, fmt=marker, color=colour, capsize=2, label=kind
        )
    axes.plot([0, 180], [0, 180], color="#a9a9a9", zorder=0)
    axes.set(xlabel="true angle, °", ylabel="chosen by the evidence, °", xticks=range(0, 181, 30))
    axes.set_yticks(range(0, 181, 30))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, title="labels", loc="outside right center")
    figure.savefig(file, dpi=150)


def main() -> None:
    """Reads the arguments and writes table, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000, help="the first so many")
    parser.add_argument("--upright-lengthscale", type=float, default=7.0, help="of f₀; images are some 10 apart")
    given = parse_grid(parser)
    frame = measured(given)
    write_text(given.folder / "upright.csv", frame.to_csv(index=False, float_format="%.6g"))
    draw(frame, given.folder / "upright.png")
    command = " ".join(["python benchmarks/upright.py", *sys.argv[1:]])
    write_text(given.folder / "upright.md", report(frame, command, given))


if __name__ == "__main__":
    main()
