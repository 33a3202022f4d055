"""
How far below the logistic likelihood is the Pólya-Gamma bound, at the same q? And is it as far at every angle?

    python benchmarks/gap.py    # some ten minutes; writes benchmarks/gap.csv, gap.md and gap.png

Models of odd against even digits (Fig. 3, ±90°) are trained for a while, each with its angle held fixed. Then, at the q
that they have,

    bound = Σ_n E log p(y_n | f_n) − KL(q ‖ p),    f_n ~ N(μ_n, σ_n²),

is taken twice: with the Pólya-Gamma bound to each expectation, at its best c_n = √(μ_n² + σ_n²), and with the
expectation itself, by Gauss-Hermite quadrature. Were the difference another one at each angle, the bound would choose
another angle than the likelihood.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import pandas as pd
from network import trained

from orbitgp.files import write_text
from orbitgp.likelihoods import polya_gamma_bound
from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
POINTS = 60  # of the quadrature


def expected_log_likelihoods(Y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """
    E log σ(y f) under f ~ N(mean, variance), by quadrature.

    :param Y: [N, 1] of −1 and +1.
    :return: [N, 1]
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(POINTS)
    values = -np.logaddexp(0.0, -Y * (mean + np.sqrt(variance) * nodes))  # [N, POINTS]
    return values @ (weights / weights.sum())[:, None]


def measure(given: argparse.Namespace, angle: float) -> dict[str, float]:
    """The sums over all training images, in nats, and the KL divergence."""
    model, X, Y = trained(argparse.Namespace(**vars(given) | {"angle": angle}), trainable=False)
    mean, variance = (part.numpy() for part in model.predict_f(X, samples=given.samples))
    second = np.square(mean) + variance
    augmented = polya_gamma_bound(Y, mean, second, np.sqrt(second)).numpy().sum()
    exact = expected_log_likelihoods(Y, mean, variance).sum()
    return {"angle": angle, "augmented": augmented, "quadrature": exact, "kl": float(model.prior_kl())}


def report(frame: pd.DataFrame, command: str) -> str:
    """The bound both ways, by angle."""
    bounds = pd.DataFrame({name: frame[name] - frame["kl"] for name in ("augmented", "quadrature")})
    gap = bounds["quadrature"] - bounds["augmented"]
    best = {name: frame["angle"][bounds[name].idxmax()] for name in bounds}
    cells = [
        [f"{angle:g}", *(f"{value:,.0f}" for value in row), f"{missing:,.0f}", f"{100 * missing / -row[0]:.1f}"]
        for angle, row, missing in zip(frame["angle"], bounds.to_numpy(), gap, strict=True)
    ]
    head = ["angle, °", "Pólya-Gamma bound, nats", "by quadrature, nats", "gap, nats", "gap, % of the bound"]
    return (
        "# The gap of the Pólya-Gamma bound\n\n"
        f"At the same q the bound is {gap.min():,.0f} to {gap.max():,.0f} nats below that with the exact expectation.\n"
        f"Of these angles it is highest at {best['augmented']:g}°, with the exact expectation at "
        f"{best['quadrature']:g}°.\n\n"
        "![Both bounds by angle](gap.png)\n\n"
        f"    {command}\n\n{markdown_table(head, cells, [True] * len(head))}"
    )


def draw(frame: pd.DataFrame, file: Path) -> None:
    """Both bounds by angle, each less its best."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for name, label in (("augmented", "Pólya-Gamma"), ("quadrature", "quadrature")):
        bound = frame[name] - frame["kl"]
        left.plot(frame["angle"], bound, "o-", label=label)
    left.set(ylabel="bound, nats")
    left.legend(frameon=False)
    right.plot(frame["angle"], frame["quadrature"] - frame["augmented"], "o-", color="#555555")
    right.set(ylabel="gap, nats", ylim=(0, None))
    for axes in (left, right):
        axes.set(xlabel="angle of the orbit, °", xticks=frame["angle"])
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def main() -> None:
    """Reads the arguments and writes table, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--angles", type=float, nargs="+", default=[60.0, 90.0, 135.0, 180.0], help="degrees")
    parser.add_argument("--images", type=int, default=12000, help="the first so many")
    parser.add_argument("--inducing", type=int, default=250)
    parser.add_argument("--draws", type=int, default=6, help="in a group")
    parser.add_argument("--model-steps", type=int, default=700)
    parser.add_argument("--model-batch", type=int, default=300)
    parser.add_argument("--samples", type=int, default=32, help="draws for each mean and variance of f")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    frame = pd.DataFrame([measure(given, angle) for angle in given.angles])
    write_text(given.folder / "gap.csv", frame.to_csv(index=False, float_format="%.8g"))
    draw(frame, given.folder / "gap.png")
    write_text(given.folder / "gap.md", report(frame, " ".join(["python benchmarks/gap.py", *sys.argv[1:]])))
    sys.stdout.write((given.folder / "gap.md").read_text())


if __name__ == "__main__":
    main()
