"""
Inducing variables in g, as in the paper, or in f? Bound and time of both, where everything is exact.

    python benchmarks/inducing.py    # minutes; writes benchmarks/inducing.csv, inducing.md and inducing.png

Odd against even digits, rotated by any angle; an orbit of P rotations, so that K_uu, K_uf and k_ff are finite sums;
labels −1 and +1 with Gaussian noise, for which Titsias' bound has its best q in closed form and the exact log marginal
likelihood is known. Each is taken at its own best lengthscale (a grid), variance and noise. Inducing points are images
of the training set; for g each is turned by one of the P angles, since g is looked at there.

u = f(Z) has K_uu of (M P)² and K_uf of N M P² values of k_g, u = g(Z) of M² and of N M P. Seconds are of these, of k_ff
and of the factorisations, once, by the clocks of the processors; the least of several turns.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import pandas as pd
from angle import best_evidences
from gpflow import covariances
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import SquaredExponential
from scipy.optimize import minimize

from orbitgp import orbits
from orbitgp.datasets import parity
from orbitgp.files import write_text
from orbitgp.inducing import BasePoints, augmented
from orbitgp.kernels import Invariant
from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
KINDS = {"g": BasePoints, "f": InducingPoints}


def statistics(kernel: Invariant, X: np.ndarray, y: np.ndarray, points: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """
    What the bound depends on besides variance and noise, at unit variance. With Q = K_fu K_uu⁻¹ K_uf = Σ_i w_i w_iᵀ,
    the w_i orthogonal:

    :param X: [N, D]
    :param y: [N]
    :param points: M inducing variables.
    :return: [M] ‖w_i‖², [M] (w_iᵀ y)², and tr(K_ff − Q).
    """
    Kuu, Kuf = covariances.Kuu(points, kernel, jitter=1e-6).numpy(), covariances.Kuf(points, kernel, X).numpy()
    half = np.linalg.solve(np.linalg.cholesky(Kuu), Kuf)  # [M, N]
    norms, vectors = np.linalg.eigh(half @ half.T)
    norms = np.maximum(norms, 0.0)
    return norms, np.square(vectors.T @ (half @ y)), float(np.sum(kernel.K_diag(X)) - norms.sum())


def best_bound(norms: np.ndarray, squares: np.ndarray, rest: float, y: np.ndarray) -> tuple[float, float, float]:
    """
    max log N(y | 0, v Q + s² I) − v tr(K_ff − Q)/2s² over the variance v and the noise s².

    :param norms: [M] ‖w_i‖² of :func:`statistics`.
    :param squares: [M] (w_iᵀ y)².
    :param rest: tr(K_ff − Q).
    :return: the bound in nats, v and s².
    """
    N, M = len(y), len(norms)

    def loss(logs: np.ndarray) -> float:
        v, noise = np.exp(logs)
        spread = v * norms + noise
        determinant = np.sum(np.log(spread)) + (N - M) * np.log(noise)
        quadratic = (y @ y - np.sum(v * squares / spread)) / noise
        return float(0.5 * (N * np.log(2 * np.pi) + determinant + quadratic + v * rest / noise))

    starts = itertools.product((0.0, 3.0), (-4.0, -1.0))
    found = [minimize(loss, start, method="Nelder-Mead", options={"maxiter": 2000}) for start in starts]
    best = min(found, key=lambda one: one.fun)
    v, noise = np.exp(best.x)
    return -float(best.fun), float(v), float(noise)


def measured(given: argparse.Namespace) -> pd.DataFrame:
    """A row for each number of inducing points and kind of inducing variables: bound, exact evidence, seconds."""
    train = parity(180.0, seed=0).train.take(given.images)
    X, y = train.inputs(), train.labels.astype(np.float64)
    orbit = orbits.QuantisedRotation((28, 28), given.order)
    kernels = [Invariant(SquaredExponential(lengthscales=scale), orbit) for scale in given.lengthscales]
    evidence = max(best_evidences(kernel(X).numpy(), y[:, None])[0, 0] for kernel in kernels)
    chosen = X[np.random.default_rng(given.seed).permutation(len(X))]
    places = {"g": augmented(chosen, orbit, given.seed), "f": chosen}
    cases = list(itertools.product(given.inducing, KINDS))
    fastest, bounds = dict.fromkeys(cases, np.inf), dict.fromkeys(cases, -np.inf)
    for kernel in [kernels[0], *kernels]:  # the first turn warms up
        for M, name in cases:
            start = time.process_time()
            found = statistics(kernel, X, y, KINDS[name](places[name][:M].copy()))
            fastest[M, name] = min(fastest[M, name], time.process_time() - start)
            bounds[M, name] = max(bounds[M, name], best_bound(*found, y)[0])
    rows = [(M, name, bounds[M, name], evidence, fastest[M, name]) for M, name in cases]
    return pd.DataFrame(rows, columns=["inducing", "variables", "bound", "evidence", "seconds"])


def report(frame: pd.DataFrame, given: argparse.Namespace, command: str) -> str:
    """Both side by side, by number of inducing points."""
    table = frame.pivot(index="inducing", columns="variables", values=["bound", "seconds"])
    cells = [
        [
            f"{M:,}",
            *(f"{row['bound'][name]:,.1f}" for name in KINDS),
            *(f"{row['seconds'][name]:.3f}" for name in KINDS),
        ]
        for M, row in table.iterrows()
    ]
    head = ["inducing points", *(f"u = {name}(Z): bound, nats" for name in KINDS)]
    head += [f"u = {name}(Z): seconds" for name in KINDS]
    most = table.iloc[-1]
    return (
        "# Inducing variables in g or in f\n\n"
        f"With {table.index[-1]:,} inducing points u = f(Z) takes {most['seconds']['f'] / most['seconds']['g']:.0f} "
        f"times as long as u = g(Z),\nand its bound is {most['bound']['f'] - most['bound']['g']:,.1f} nats higher.\n\n"
        "![Bound against time](inducing.png)\n\n"
        f"    {command}\n\n"
        f"{given.images:,} images, {given.order} rotations; the exact log marginal likelihood is "
        f"{frame['evidence'].iloc[0]:,.1f} nats.\n\n"
        f"{markdown_table(head, cells, [True] * len(head))}"
    )


def draw(frame: pd.DataFrame, file: Path) -> None:
    """The bound against inducing points, and against time."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
    for axes, column, text in (
        (left, "inducing", "inducing points"),
        (right, "seconds", "seconds of processors a bound"),
    ):
        for name, own in frame.groupby("variables"):
            axes.semilogx(own[column], own["bound"], "o-", label=f"u = {name}(Z)")
        axes.axhline(frame["evidence"].iloc[0], color="#a9a9a9", linestyle="--", label="exact")
        axes.set_xlabel(text)
        axes.xaxis.set_minor_formatter(plt.NullFormatter())
        axes.xaxis.set_major_formatter("{x:g}")
        axes.spines[["top", "right"]].set_visible(False)
    left.set_xticks(sorted(frame["inducing"].unique()))
    left.set_ylabel("bound, nats")
    left.legend(frameon=False)
    figure.savefig(file, dpi=150)


def main() -> None:
    """Reads the arguments and writes table, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=300, help="the first so many")
    parser.add_argument("--order", type=int, default=8, help="rotations in the orbit")
    parser.add_argument("--inducing", type=int, nargs="+", default=[25, 50, 100, 200, 300])
    parser.add_argument("--lengthscales", type=float, nargs="+", default=[3.0, 4.0, 5.0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    if max(given.inducing) > given.images:
        parser.error(f"--inducing must be at most --images = {given.images}, got {max(given.inducing)}")
    frame = measured(given)
    write_text(given.folder / "inducing.csv", frame.to_csv(index=False, float_format="%.6g"))
    draw(frame, given.folder / "inducing.png")
    text = report(frame, given, " ".join(["python benchmarks/inducing.py", *sys.argv[1:]]))
    write_text(given.folder / "inducing.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
