"""
Which angle does the bound choose with many images and few inducing points, for real labels and for the model's own?

    python benchmarks/angle_bound.py    # many hours on two cores; writes benchmarks/angle_bound.csv, .md and .png

The exact evidence of benchmarks/angle.py and control.py ends at some thousand images. Titsias' bound does not, and here
it needs no training: labels have Gaussian noise, so that the best q, variance and noise have a closed form or are a
search; the lengthscale is from a grid; inducing variables are g at digits that were turned once more by up to ±90°;
and the kernel's average over rotations by up to α is a sum, as in benchmarks/angle.py, so that nothing is drawn.

The digits are those of Fig. 3, rotated by up to ±90°. Their targets are

    odd or even:                         −1 and +1, as in Fig. 3;
    values, labels drawn from the model: y = f + ε, and whether y is above its median, as −1 and +1. f is averaged over
                                         rotations by up to the true angle.

The statistics K_uf K_fu, K_uf y and tr K_ff are sums over images, and those of fewer inducing points are in a corner of
those of all. So every number of images, and of as many inducing points at most, comes from one pass for each
lengthscale and each choice of the inducing points.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from inducing import best_bound
from scipy.linalg import solve_triangular

from orbitgp.datasets import parity
from orbitgp.datasets.rotation import rotate
from orbitgp.files import write_text
from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
DATA_ANGLE = 90.0  # degrees
REAL, VALUES, LABELS = "odd or even", "values drawn from the model", "labels drawn from the model"
JITTER = 1e-6
KEYS = ["images", "inducing", "points", "targets", "true_angle", "draw"]


def turned_images(images: np.ndarray, step: float) -> np.ndarray:
    """
    :param images: [N, H, W, C]
    :param step: of the grid of angles, in degrees; divides 180.
    :return: [T, N, D] in single precision, turned by the T = 360/step midpoints of (−180, 180).
    """
    half = round(180 / step)
    angles = (np.arange(-half, half) + 0.5) * step
    N = len(images)
    return np.stack([rotate(images, np.full(N, angle)).reshape(N, -1) for angle in angles])


def rings(values: Any) -> Any:
    """
    Means over turns by up to ±step, ±2 step, …

    :param values: [T, …] of T = 360/step turns, a tensor.
    :return: [T/2, …]
    """
    import tensorflow as tf

    half = values.shape[0] // 2
    sums = tf.cumsum(values[half:] + tf.reverse(values[:half], [0]), axis=0)
    turns = np.reshape(2.0 * np.arange(1, half + 1), (-1, *[1] * (len(values.shape) - 1)))
    return sums / turns


def unit_kernel(products: Any, left: Any, right: Any, lengthscale: float) -> Any:
    """exp(−‖x − z‖²/2ℓ²) of products x·z and squared norms that broadcast to them."""
    import tensorflow as tf

    return tf.exp((2 * products - left - right) * (0.5 / lengthscale**2))


def statistics(
    turned: np.ndarray, targets: np.ndarray, Z: np.ndarray, lengthscale: float, counts: list[int], rows: int = 400
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """
    Of the first so many images, for kernels of unit variance averaged over rotations by up to A angles.

    :param turned: [T, N, D] as :func:`turned_images` makes them.
    :param targets: [N, P]
    :param Z: [M, D], inducing points.
    :param counts: numbers of images, ascending.
    :param rows: images at a time.
    :return: for each count: count, [A, M, M] K_uf K_fu, [A, M, P] K_uf Y, and [A] tr K_ff.
    """
    import tensorflow as tf

    half, M = len(turned) // 2, len(Z)
    outer = tf.zeros((half, M, M), tf.float64)
    cross, trace = tf.zeros((half, M, targets.shape[1]), tf.float64), tf.zeros(half, tf.float64)
    norms, points = np.sum(Z**2, axis=1), tf.constant(Z)
    ends = sorted({*range(0, counts[-1], rows), *counts})
    for first, last in itertools.pairwise(ends):
        part = turned[:, first:last].astype(np.float64)
        own = np.sum(part**2, axis=-1)  # [T, b]
        products = tf.reshape(tf.matmul(part.reshape(-1, Z.shape[1]), points, transpose_b=True), (*own.shape, M))
        K = rings(unit_kernel(products, own[..., None], norms, lengthscale))  # [A, b, M]
        outer += tf.matmul(K, K, transpose_a=True)
        cross += tf.matmul(
            K, np.broadcast_to(targets[first:last], (half, *targets[first:last].shape)), transpose_a=True
        )
        by_image = part.swapaxes(0, 1)  # [b, T, D]
        inner = tf.matmul(by_image, by_image, transpose_b=True)
        pairs = tf.transpose(unit_kernel(inner, own.T[:, :, None], own.T[:, None, :], lengthscale), (1, 2, 0))
        twice = rings(tf.transpose(rings(pairs), (1, 0, 2)))  # [A, A, b]
        trace += tf.reduce_sum(tf.linalg.diag_part(tf.transpose(twice, (2, 0, 1))), axis=0)
        if last in counts:
            yield last, outer.numpy(), cross.numpy(), trace.numpy()


def bounds_of(
    Kuu: np.ndarray, outer: np.ndarray, cross: np.ndarray, trace: float, targets: np.ndarray
) -> Iterator[tuple[float, float, float]]:
    """
    The best bound, variance and noise variance for each column of the targets.

    :param Kuu: [M, M]
    :param outer: [M, M] K_uf K_fu.
    :param cross: [M, P] K_uf Y.
    :param trace: tr K_ff.
    :param targets: [N, P] Y.
    """
    root = np.linalg.cholesky(Kuu + JITTER * np.eye(len(Kuu)))
    half = solve_triangular(root, solve_triangular(root, outer, lower=True).T, lower=True)
    lengths, vectors = np.linalg.eigh(half)
    lengths = np.maximum(lengths, 0.0)
    squares = np.square(vectors.T @ solve_triangular(root, cross, lower=True))
    rest = trace - lengths.sum()
    return (best_bound(lengths, own, rest, y) for own, y in zip(squares.T, targets.T, strict=True))


def averaged_draw(turned: np.ndarray, lengthscale: float, rng: np.random.Generator, features: int = 4096) -> np.ndarray:
    """
    A draw of f(x) = E_a g(x_a) for each largest angle, of one g from a process with a squared exponential kernel of
    variance one.

    g(x) = √(2/R) Σ_r w_r cos(ω_r·x + b_r), with w ~ N(0, 1), ω ~ N(0, 1/ℓ²) and b uniform, has that kernel on average.

    :param turned: [T, N, D] as :func:`turned_images` makes them.
    :param features: R
    :return: [A, N], over rotations by up to A = T/2 angles.
    """
    import tensorflow as tf

    turns, N, values = turned.shape
    frequencies = (rng.normal(size=(values, features)) / lengthscale).astype(np.float32)
    phases = rng.uniform(0, 2 * np.pi, features).astype(np.float32)
    weights = (rng.normal(size=(features, 1)) * np.sqrt(2 / features)).astype(np.float32)
    g = np.empty((turns, N))
    for turn, first in itertools.product(range(turns), range(0, N, 2000)):
        part = tf.constant(turned[turn, first : first + 2000])
        g[turn, first : first + 2000] = (tf.cos(part @ frequencies + phases) @ weights)[:, 0]
    found: np.ndarray = rings(tf.constant(g)).numpy()
    return found


def all_targets(turned: np.ndarray, labels: np.ndarray, given: argparse.Namespace) -> tuple[list[tuple], np.ndarray]:
    """
    Kind, true angle and number of each column of targets, and the columns [N, P]. The targets of one number are of one
    g, averaged over several true angles.
    """
    columns, Y = [(REAL, DATA_ANGLE, 0)], [labels.astype(np.float64)]
    for number in range(given.draws):
        rng = np.random.default_rng([given.seed, number])
        by_angle = averaged_draw(turned, given.lengthscale, rng)
        for true in given.true:
            y = by_angle[round(true / given.step) - 1] + np.sqrt(given.noise) * rng.normal(size=len(labels))
            columns += [(VALUES, true, number), (LABELS, true, number)]
            Y += [y, np.where(y > np.median(y), 1.0, -1.0)]
    return columns, np.stack(Y, axis=1)


def measured(given: argparse.Namespace) -> pd.DataFrame:
    """A row for each number of images and inducing points, choice of these, targets, draw and angle of the kernel."""
    train = parity(DATA_ANGLE, seed=0).train.take(max(given.images))
    turned, most, rows = turned_images(train.images, given.step), max(given.inducing), []
    columns, targets = all_targets(turned, train.labels, given)
    for points, lengthscale in itertools.product(range(given.points), given.lengthscales):
        rng = np.random.default_rng([given.seed, points])
        chosen = train.images[rng.permutation(len(train))[:most]]
        Z = rotate(chosen, rng.uniform(-DATA_ANGLE, DATA_ANGLE, most)).reshape(most, -1).astype(np.float64)
        norms = np.sum(Z**2, axis=1)
        Kuu = unit_kernel(Z @ Z.T, norms[:, None], norms, lengthscale).numpy()
        passes = statistics(turned, targets, Z, lengthscale, sorted(given.images))
        for count, outer, cross, trace in passes:
            fewer = [M for M in given.inducing if count >= M]
            for M, number in itertools.product(fewer, range(len(trace))):
                found = bounds_of(Kuu[:M, :M], outer[number, :M, :M], cross[number, :M], trace[number], targets[:count])
                for column, (bound, variance, noise) in zip(columns, found, strict=True):
                    angle = given.step * (number + 1)
                    rows.append((count, M, points, *column, angle, bound, lengthscale, variance, noise))
            print(f"points {points}, lengthscale {lengthscale:g}: {count:,} images", file=sys.stderr, flush=True)
    frame = pd.DataFrame(rows, columns=[*KEYS, "angle", "bound", "lengthscale", "variance", "noise"])
    return frame.loc[frame.groupby([*KEYS, "angle"])["bound"].idxmax()].reset_index(drop=True)


def best_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The row of the best angle for each number of images and inducing points, targets and draw."""
    return frame.loc[frame.groupby(KEYS)["bound"].idxmax()]


def report(frame: pd.DataFrame, command: str) -> str:
    """The chosen angle of the real labels first, then of those drawn from the model, then the bound by angle."""
    best = best_of(frame)
    most = best[(best.images == best.images.max()) & (best.inducing == best.inducing.max())]
    drawn, real = best[best.targets != REAL], best[best.targets == REAL]
    errors = {kind: _error(most[most.targets == kind]) for kind in (VALUES, LABELS)}
    sizes, inducing = sorted(best.images.unique()), sorted(best.inducing.unique())
    counts = [f"{count:,} images" for count in sizes]
    chosen = [
        [f"{M:,}", *(_range(real[(real.inducing == M) & (real.images == count)].angle) for count in sizes)]
        for M in inducing
    ]
    controls = [
        [str(kind), f"{M:,}", *(_rounded(_error(rows[rows.images == count])) for count in sizes)]
        for (kind, M), rows in drawn.groupby(["targets", "inducing"], sort=False)
    ]
    last = frame[(frame.images == sizes[-1]) & (frame.targets == REAL)]
    by_points = last.groupby(["points", "inducing"]).bound
    below = last.assign(below=last.bound - by_points.transform("max"))
    table = below.pivot_table(index="angle", columns="inducing", values="below")
    cells = [[f"{angle:,.0f}", *(f"{value:,.0f}" for value in row)] for angle, row in table.iterrows()]
    highest = by_points.max().groupby("inducing").mean()
    ends = best.lengthscale.isin([frame.lengthscale.min(), frame.lengthscale.max()])
    tried = ", ".join(f"{value:g}" for value in sorted(frame.lengthscale.unique()))
    chosen_most = _range(most[most.targets == REAL].angle)
    return (
        "# Which angle does the bound choose?\n\n"
        f"With {sizes[-1]:,} images and {inducing[-1]:,} inducing points it is {chosen_most}° for odd or even; digits\n"
        f"are rotated by up to {DATA_ANGLE:g}°. Its root mean square error is {errors[VALUES]:.0f}° for values that\n"
        f"are drawn from the model, and {errors[LABELS]:.0f}° for labels that are.\n\n"
        "![Bound by angle, and the angle it chooses](angle_bound.png)\n\n"
        f"    {command}\n\n"
        f"{frame.points.nunique()} choices of the inducing points. Best lengthscales are among {tried}; "
        f"{ends.sum()} of {len(ends)} are the least or the largest.\n\n"
        "Odd against even: the best angle of the grid, °, from the least to the largest over choices of the points.\n\n"
        f"{markdown_table(['inducing points', *counts], chosen, [True] * (1 + len(counts)))}\n"
        "Drawn from the model: root mean square error of the best angle, °, over choices of the points, draws of the\n"
        f"targets, and true angles of {', '.join(f'{true:g}' for true in sorted(drawn.true_angle.unique()))}°.\n\n"
        f"{markdown_table(['targets', 'inducing points', *counts], controls, [False] + [True] * (1 + len(counts)))}\n"
        f"Odd against even, {sizes[-1]:,} images: the bound less that of the best angle, in nats, by inducing points;\n"
        "means over choices of these. The last row is the best one itself.\n\n"
        + markdown_table(
            ["angle, °", *(f"{M:,}" for M in table.columns)],
            [*cells, ["best", *(f"{value:,.0f}" for value in highest)]],
            [True] * (1 + table.shape[1]),
        )
    )


def _range(angles: pd.Series) -> str:
    """From the least to the largest; blank where more inducing points than images were asked for."""
    if angles.empty:
        return ""
    least, largest = f"{angles.min():.0f}", f"{angles.max():.0f}"
    return least if least == largest else f"{least} to {largest}"


def _rounded(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.0f}"


def _error(rows: pd.DataFrame) -> float:
    """Root mean square error of the chosen angles, in degrees."""
    return float(np.sqrt(np.mean(np.square(rows.angle - rows.true_angle))))


def draw(frame: pd.DataFrame, file: Path) -> None:
    """The bound of the real labels by angle; the angle it chooses by inducing points; and where the truth is known."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplot_mosaic("AA;BC", figsize=(7.5, 6.5), layout="constrained")
    curves, chosen, control = panels.values()
    best, sizes, inducing = best_of(frame), sorted(frame.images.unique()), sorted(frame.inducing.unique())
    real = frame[(frame.targets == REAL) & (frame.images == sizes[-1])]
    for number, M in enumerate(inducing):
        colour, line = (
            plt.get_cmap("cividis")(0.8 * number / max(1, len(inducing) - 1)),
            ("-", "--", ":", "-.")[number % 4],
        )
        for points, own in real[real.inducing == M].groupby("points"):
            below = (own.bound - own.bound.max()).to_numpy()
            curves.plot(own.angle, below, line, color=colour, linewidth=1.2, label="" if points else f"{M:,}")
            curves.plot(own.angle.to_numpy()[below.argmax()], 0, "o", color=colour, markersize=4)
    curves.axvline(DATA_ANGLE, color="#a9a9a9", linestyle=":")
    curves.set(xlabel="angle of the orbit, °", ylabel="nats below the best", title=f"odd or even, {sizes[-1]:,} images")
    curves.legend(frameon=False, title="inducing points", fontsize=8)
    for number, count in enumerate(sizes):
        own = best[(best.targets == REAL) & (best.images == count)]
        means = own.groupby("inducing").angle.mean()
        chosen.plot(means.index, means, "-", color=f"C{number}")
        marker = "os^D"[number % 4]
        shifted = own.inducing * 1.03 ** (number - 1)
        chosen.plot(shifted, own.angle, marker, color=f"C{number}", alpha=0.7, label=f"{count:,} images")
    chosen.axhline(DATA_ANGLE, color="#a9a9a9", linestyle=":")
    chosen.set(xscale="log", xlabel="inducing points", ylabel="angle of the highest bound, °", title="odd or even")
    chosen.set_xticks(inducing, [f"{M:,}" for M in inducing])
    chosen.minorticks_off()
    chosen.set_ylim(0, 185)
    chosen.legend(frameon=False, fontsize=8)
    for number, (M, kind) in enumerate(itertools.product((inducing[0], inducing[-1]), (VALUES, LABELS))):
        own = best[(best.targets == kind) & (best.images == sizes[-1]) & (best.inducing == M)]
        means = own.groupby("true_angle").angle.mean()
        filled = "full" if inducing[-1] == M else "none"
        name = f"{kind.split()[0]}, {M:,} inducing points"
        control.plot(means.index + 2.0 * (number - 1.5), means, "os"[kind == LABELS], fillstyle=filled, label=name)
    control.plot([0, 180], [0, 180], color="#a9a9a9", zorder=0)
    control.set(xlabel="true angle, °", ylabel="angle of the highest bound, °", title="drawn from the model")
    control.set_xticks(range(0, 181, 30))
    control.legend(frameon=False, fontsize=8)
    for axes in (curves, chosen, control):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def main() -> None:
    """Reads the arguments and writes table, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=[2000, 10000, 60000], help="the first so many")
    parser.add_argument("--inducing", type=int, nargs="+", default=[375, 750, 1500, 3000], help="points")
    parser.add_argument("--true", type=float, nargs="+", default=[30.0, 60.0, 90.0, 120.0, 150.0], help="degrees")
    parser.add_argument("--step", type=float, default=15.0, help="of the grid of angles, in degrees")
    parser.add_argument("--lengthscales", type=float, nargs="+", default=[4.0, 5.0, 6.0, 7.0, 9.0, 12.0, 16.0])
    parser.add_argument("--lengthscale", type=float, default=5.0, help="of the model that targets are drawn from")
    parser.add_argument("--noise", type=float, default=0.01, help="of the model's targets, by the variance of g")
    parser.add_argument("--draws", type=int, default=2, help="of the targets, for each true angle")
    parser.add_argument("--points", type=int, default=3, help="choices of the inducing points")
    parser.add_argument("--seed", type=int, default=0, help="of inducing points and draws")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    if 180 % given.step:
        parser.error(f"--step must divide 180, got {given.step:g}")
    if max(given.inducing) > max(given.images):
        parser.error(f"--inducing must be at most {max(given.images)}, the images there are, got {max(given.inducing)}")
    if any(true % given.step or not 0 < true <= 180 for true in given.true):
        parser.error(f"--true must be multiples of --step = {given.step:g} up to 180, got {given.true}")
    frame = measured(given)
    write_text(given.folder / "angle_bound.csv", frame.to_csv(index=False, float_format="%.7g"))
    draw(frame, given.folder / "angle_bound.png")
    command = " ".join(["python benchmarks/angle_bound.py", *sys.argv[1:]])
    write_text(given.folder / "angle_bound.md", report(frame, command))
    sys.stdout.write((given.folder / "angle_bound.md").read_text())


if __name__ == "__main__":
    main()
