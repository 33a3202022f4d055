"""
Which angle does the exact evidence want? Odd against even digits, with nothing approximated but the integral's grid.

    python benchmarks/angle.py    # ten minutes; writes benchmarks/angle.csv, angle.md and angle.png

What other commands measured stays in the table, unless it is measured anew: 2,000 images take five times as long.

Fig. 3 learns the angle by a bound: inducing points, Pólya-Gamma variables, draws from the orbit. Here are none of them.
Some thousand digits, rotated by up to the true angle as in Fig. 3, labels −1 and +1 with Gaussian noise, and the kernel

    k_f(x, x') = (1/S²) Σ_a Σ_b k_g(x_a, x'_b),    a, b the S = 2α/step midpoints of (−α, α),

have a marginal likelihood in closed form. Its maximum over lengthscale (a grid), variance (closed form) and noise (a
search in one dimension) is what each angle can claim. Where the search ends at its least noise, the labels are fitted
exactly. With ``--without 6 9`` all is measured once more on the other digits: a 6 that is turned by 180° looks like a
9, of the other parity.

An explanation to test: where g is uncorrelated between angles, f of one image at two angles Δ apart has the prior
correlation :func:`common_share`. Data rotated by up to ±t have such pairs up to Δ = 2t apart, and their labels agree.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from orbitgp.datasets import ImageData, Images, mnist, parity
from orbitgp.datasets.rotation import rotate
from orbitgp.files import write_text
from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
KEYS = ["true_angle", "digits", "images"]
LOG_RATIOS = (-16.0, 4.0)  # of noise to variance, searched


def averaged_kernels(images: np.ndarray, step: float, lengthscales: list[float], rows: int = 50) -> np.ndarray:
    """
    Unit-variance RBF kernels, averaged over rotations by up to α = step, 2 step, …, 180°.

    :param images: [N, H, W, C], in [0, 1].
    :param step: of the grid of angles, in degrees; divides 180.
    :param lengthscales: of k_g, L of them.
    :param rows: how many images at a time.
    :return: [L, 180/step, N, N]
    """
    half = round(180 / step)
    angles = (np.arange(-half, half) + 0.5) * step
    N = len(images)
    turned = np.stack([rotate(images, np.full(N, angle)).reshape(N, -1) for angle in angles])  # [2 half, N, D]
    norms = np.sum(turned**2, axis=-1)
    found = np.zeros((len(lengthscales), half, N, N), np.float32)
    pairs_within = (2 * np.arange(1, half + 1)) ** 2
    for first in range(0, N, rows):  # the upper triangle, in bands
        last = min(first + rows, N)
        # rings[k]: the sum over pairs (a, b) of which the wider one is in the ring (k step, (k + 1) step) of |angle|
        rings = np.zeros((len(lengthscales), half, last - first, N - first))
        for i, a in enumerate(angles):
            for j, b in enumerate(angles):
                products = turned[i, first:last] @ turned[j, first:].T
                squares = norms[i, first:last, None] + norms[j, None, first:] - 2 * products
                ring = int(max(abs(a), abs(b)) / step)
                for number, lengthscale in enumerate(lengthscales):
                    rings[number, ring] += np.exp(squares * np.float32(-0.5 / lengthscale**2))
        band = np.cumsum(rings, axis=1) / pairs_within[:, None, None]
        found[:, :, first:last, first:] = band
        found[:, :, first:, first:last] = band.swapaxes(-1, -2)
    return found


def best_evidences(kernel: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """
    max log N(y | 0, v (K + r I)) over the variance v, which is (1/N) yᵀ (K + r I)⁻¹ y, and r by search.

    :param kernel: [N, N]
    :param Y: [N, T], columns y.
    :return: [3, T], log evidence in nats, v, and the noise variance r v of each.
    """
    values, vectors = np.linalg.eigh(kernel.astype(np.float64))
    values = np.maximum(values, 0.0)
    return np.array([_best_evidence(values, squares) for squares in np.square(vectors.T @ Y).T]).T


def _best_evidence(values: np.ndarray, squares: np.ndarray) -> tuple[float, float, float]:
    """
    :param values: [N], the kernel's eigenvalues.
    :param squares: [N], of y along its eigenvectors.
    """

    def variance(log_ratio: float) -> float:
        return float(np.mean(squares / (values + np.exp(log_ratio))))

    def loss(log_ratio: float) -> float:
        log_determinant = np.sum(np.log(values + np.exp(log_ratio)))
        return 0.5 * (len(values) * (np.log(2 * np.pi * variance(log_ratio)) + 1) + log_determinant)

    found = minimize_scalar(loss, bounds=LOG_RATIOS, method="bounded", options={"xatol": 1e-4})
    v = variance(found.x)
    return -float(found.fun), v, v * float(np.exp(found.x))


def digits_without(left_out: list[int]) -> ImageData:
    """MNIST, less the images of some digits."""

    def kept(part: Images) -> Images:
        chosen = ~np.isin(part.labels, left_out)
        return Images(part.images[chosen], part.labels[chosen])

    data = mnist()
    return ImageData(data.name, kept(data.train), kept(data.test))


def measured(given: argparse.Namespace) -> pd.DataFrame:
    """One row for each true angle, digits, number of images and angle of the kernel: the best lengthscale's."""
    rows = []
    for true, left_out in itertools.product(given.true, [[], given.without] if given.without else [[]]):
        train = parity(true, seed=0, data=digits_without(left_out)).train
        digits = f"without {' '.join(map(str, left_out))}" if left_out else "all"
        largest = max(given.images)
        kernels = averaged_kernels(train.images[:largest], given.step, given.lengthscales)
        for N in sorted(given.images):
            y = train.labels[:N].astype(np.float64)
            for number in range(kernels.shape[1]):
                found = [best_evidences(kernel[number, :N, :N], y[:, None])[:, 0] for kernel in kernels]
                best = int(np.argmax([evidence for evidence, _, _ in found]))
                evidence, variance, noise = found[best]
                angle = given.step * (number + 1)
                rows.append((true, digits, N, angle, evidence, given.lengthscales[best], variance, noise))
    columns = ["true_angle", "digits", "images", "angle", "evidence", "lengthscale", "variance", "noise"]
    return pd.DataFrame(rows, columns=columns)


def common_share(angle: float, apart: float) -> float:
    """
    The part of two orbits of rotations by up to ±``angle`` that is common, if their centres are ``apart``; both in
    degrees. Beyond 180° they meet once more on the other side.
    """
    return (max(0.0, 2 * angle - apart) + max(0.0, 2 * angle + apart - 360)) / (2 * angle)


def best_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The row of the best angle for each true angle, digits and number of images."""
    return frame.loc[frame.groupby(KEYS)["evidence"].idxmax()]


def of_most_images(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with the largest number of images of their true angle and digits."""
    return frame[frame["images"] == frame.groupby(["true_angle", "digits"])["images"].transform("max")]


def together(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Both, less the old rows of a true angle, digits and number of images that are among the new ones."""
    again = pd.MultiIndex.from_frame(old[KEYS]).isin(pd.MultiIndex.from_frame(new[KEYS]))
    return pd.concat([old[~again], new]).sort_values([*KEYS, "angle"], kind="stable", ignore_index=True)


def report(frame: pd.DataFrame) -> str:
    """The best of each column first; then evidences less the best one, by angle."""
    commands = "\n".join(f"    {command}" for command in dict.fromkeys(frame["command"]))
    best = best_of(frame.drop(columns="command"))
    most = best[best["digits"] == "all"].drop_duplicates("true_angle", keep="last")  # of the most images
    found = zip(most["angle"], most["true_angle"], most["images"], strict=True)
    said = ", ".join(f"{angle:g}° for ±{true:g}° ({images:,} images)" for angle, true, images in found)
    shown = of_most_images(frame)
    below = shown.assign(below=shown["evidence"] - shown.groupby(KEYS)["evidence"].transform("max"))
    table = below.pivot(index="angle", columns=KEYS, values="below")
    head = [f"±{true:g}°, {images:,}{'' if digits == 'all' else ', ' + digits}" for true, digits, images in [*table]]
    cells = [[f"{row[0]:g}", *(f"{value:.1f}" for value in row[1:])] for row in _rows(table.reset_index())]
    columns = {"true angle, °": "g", "digits": "", "images": ",", "best angle, °": "g", "log evidence": ".1f"}
    columns |= {"lengthscale": "g", "variance": ".3g", "noise variance": "", "common, %": ".0f"}
    best = best.assign(noise=[_said_noise(*pair) for pair in zip(best["noise"], best["variance"], strict=True)])
    pairs = zip(best["angle"], best["true_angle"], strict=True)
    best["common"] = [100 * common_share(angle, 2 * true) for angle, true in pairs]
    rows = [[format(value, kind) for value, kind in zip(row, columns.values(), strict=True)] for row in _rows(best)]
    return (
        "# Which angle does the exact evidence want?\n\n"
        f"The log marginal likelihood is highest at {said}.\n\n"
        "![Evidence by angle, for each true angle](angle.png)\n\n"
        f"{commands}\n\n"
        "Odd against even digits, Gaussian noise. `common` is the share of two orbits of the best angle that is\n"
        "common, if one image stands at either end of the data's angles.\n\n"
        f"{markdown_table([*columns], rows, [name != 'digits' for name in columns])}\n"
        "Log marginal likelihood less that of the best angle, in nats, of the most images. Each column has its data's\n"
        "true angle, its number of images and the digits left out. angle.csv has the others.\n\n"
        f"{markdown_table(['angle, °', *head], cells, [True] * (1 + len(head)))}"
    )


def draw(frame: pd.DataFrame, file: Path) -> None:
    """Evidence less the best one against the angle, of the most images; a panel for each choice of digits."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    shown = of_most_images(frame)
    kinds = [*dict.fromkeys(shown["digits"])]
    figure, panels = plt.subplots(
        1, len(kinds), figsize=(4.2 * len(kinds), 3.2), layout="constrained", sharey=True, squeeze=False
    )
    for axes, digits in zip(panels[0], kinds, strict=True):
        rows = shown[shown["digits"] == digits]
        for number, (true, own) in enumerate(rows.groupby("true_angle")):
            colour = plt.get_cmap("cividis")(0.8 * number / max(1, rows["true_angle"].nunique() - 1))
            below = (own["evidence"] - own["evidence"].max()) / own["images"]
            axes.plot(own["angle"], below, color=colour, marker="osD^vX"[number % 6], markersize=3, label=f"±{true:g}°")
            axes.axvline(true, color=colour, linestyle=":", linewidth=0.8)
            axes.plot(own["angle"].to_numpy()[below.argmax()], 0, "osD^vX"[number % 6], color=colour, markersize=7)
        axes.set_title(f"{digits} digits" if digits == "all" else digits, fontsize=10)
        axes.set_xlabel("angle of the orbit, °; dotted: true")
        axes.set_xticks(range(0, 181, 45))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_ylabel("nats an image below the best")
    panels[0, 0].legend(frameon=False, title="true angle", fontsize=8)
    figure.savefig(file, dpi=150)


def _rows(frame: pd.DataFrame) -> list[list[Any]]:
    """With numbers as they are, not all of one type."""
    return [list(row) for row in frame.itertuples(index=False, name=None)]


def _said_noise(noise: float, variance: float) -> str:
    return f"{noise:.3g}" if np.log(noise / variance) > LOG_RATIOS[0] + 0.01 else "none (at the search's limit)"


def _command(given: argparse.Namespace) -> str:
    """A command that measures the same, with every setting in it."""
    settings = {"true": given.true, "images": given.images, "step": [given.step], "lengthscales": given.lengthscales}
    settings |= {"without": given.without} if given.without else {}
    words = (f"--{name} {' '.join(f'{value:g}' for value in values)}" for name, values in settings.items())
    return " ".join(["python benchmarks/angle.py", *words])


def main() -> None:
    """Reads the arguments and writes table, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--true", type=float, nargs="+", default=[30.0, 60.0, 90.0, 120.0, 150.0], help="°")
    parser.add_argument("--images", type=int, nargs="+", default=[500, 1000], help="the first so many")
    parser.add_argument("--step", type=float, default=10.0, help="of the grid of angles, in degrees")
    parser.add_argument("--lengthscales", type=float, nargs="+", default=[3.0, 3.5])
    parser.add_argument("--without", type=int, nargs="+", choices=range(10), default=[], help="digits, besides all")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    if not 0 < given.step <= 180 or (180 / given.step) % 1:
        parser.error(f"--step must divide 180, got {given.step:g}")
    table = given.folder / "angle.csv"
    frame = measured(given).assign(command=_command(given))
    if table.exists():
        frame = together(pd.read_csv(table), frame)
    write_text(table, frame.to_csv(index=False, float_format="%.6g"))
    draw(pd.read_csv(table), given.folder / "angle.png")
    write_text(given.folder / "angle.md", report(pd.read_csv(table)))
    sys.stdout.write((given.folder / "angle.md").read_text())


if __name__ == "__main__":
    main()
