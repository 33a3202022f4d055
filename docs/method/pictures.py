"""
The pictures of "How it works", computed with the library: ``python docs/method/pictures.py``, a minute on two cores.

Each function computes what one picture shows; ``draw_…`` draws it.
"""

from __future__ import annotations

from pathlib import Path

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from orbitgp import orbits
from orbitgp.datasets import mnist, one_hot
from orbitgp.kernels import Invariant
from orbitgp.schemes import Groups, Scheme, all_pairs, paper_scheme, variance_of_average
from orbitgp_paper.figures.style import paper_style

FOLDER = Path(__file__).parent
SHAPE = (28, 28)
ANGLES = (0, 10, 20, 30, 45, 60, 90, 120, 150, 180)
BLUE, RED, GREY = "#0072b2", "#d55e00", "0.6"


def draws(X: np.ndarray, angles: tuple[int, ...], count: int) -> np.ndarray:
    """:return: [A, count, D] draws from the rotations of one image, for each largest angle."""
    return np.stack([orbits.Rotation(SHAPE, alpha=angle).sample(X, 1, count, [0, 0])[0, 0] for angle in angles])


def double_sum(X: np.ndarray, order: int, lengthscale: float) -> tuple[np.ndarray, np.ndarray, float]:
    """
    :param X: [2, D] two images.
    :return: their orbits, [2, P, D]; k_g between them, [P, P]; and k_f of the two images.
    """
    orbit = orbits.QuantisedRotation(SHAPE, order=order)
    base = gpflow.kernels.SquaredExponential(lengthscales=lengthscale)
    points = orbit.full(X).numpy()
    return points, base(points[0], points[1]).numpy(), float(Invariant(base, orbit)(X[:1], X[1:])[0, 0])


def estimates(x: np.ndarray, repeats: int, lengthscale: float = 6.0) -> tuple[float, dict[str, np.ndarray]]:
    """
    :param x: [1, D] one image, rotated by up to ±60°.
    :return: its k_f(x, x) by a fine midpoint rule, and estimates from 16 draws by three estimators, [repeats] each.
    """
    orbit, base = orbits.Rotation(SHAPE, alpha=60), gpflow.kernels.SquaredExponential(lengthscales=lengthscale)

    def between_draws(scheme: Scheme) -> np.ndarray:
        """[repeats, 16, 16]"""
        drawn = scheme.draw(orbit, np.repeat(x, repeats, axis=0), [0, 1]).numpy().reshape(repeats, 16, -1)
        squares = np.sum(drawn**2, axis=2)
        distances = squares[:, :, None] + squares[:, None] - 2 * drawn @ drawn.transpose(0, 2, 1)
        return base.K_r2(np.maximum(distances, 0) / lengthscale**2).numpy()

    paper, sobol = paper_scheme(16), Groups(groups=2, size=8)
    Kaa = between_draws(paper)
    return float(averaged_kernel(x, x, 60, lengthscale, count=256)[0, 0]), {
        "all pairs": variance_of_average(Kaa, 16, all_pairs(16)).numpy(),
        "pairs of different draws (the paper)": variance_of_average(Kaa, 16, paper.weights(orbit)).numpy(),
        "pairs across two Sobol groups": variance_of_average(between_draws(sobol), 2, sobol.weights(orbit)).numpy(),
    }


def averaged_kernel(X: np.ndarray, X2: np.ndarray, angle: float, lengthscale: float, count: int = 8) -> np.ndarray:
    """:return: [N, N2] k_f for rotations by up to ±angle, each integral by the midpoint rule with ``count`` angles."""
    grid = (np.arange(count) + 0.5) / count
    orbit, base = orbits.Rotation(SHAPE, alpha=angle), gpflow.kernels.SquaredExponential(lengthscales=lengthscale)
    turned, turned2 = (
        orbit.transform(part, np.tile(grid[None, :, None], (len(part), 1, 1))).numpy().reshape(-1, part.shape[1])
        for part in (X, X2)
    )
    return base(turned, turned2).numpy().reshape(len(X), count, len(X2), count).mean(axis=(1, 3))


def evidence(images: int, tests: int, lengthscale: float, noise: float) -> dict[str, np.ndarray]:
    """
    The exact marginal likelihood of Gaussian processes on MNIST's ten one-hot outputs, by the largest angle.

    :param noise: noise variance as a part of that of f; the variance itself is the best one, in closed form.
    :return: for each angle the log evidence in nats, its two parts, and the test error in per cent.
    """
    data = mnist()
    train, test = data.train.take(images), data.test.take(tests)
    X, X2 = (part.inputs().astype(np.float64) for part in (train, test))
    Y = one_hot(train.labels, 10) - 0.1
    found: dict[str, list[float]] = {"evidence": [], "fit": [], "simplicity": [], "error": []}
    for angle in ANGLES:
        K = averaged_kernel(X, X, angle, lengthscale)
        K += noise * np.trace(K) / images * np.eye(images)
        solved = np.linalg.solve(K, Y)
        variance = np.sum(Y * solved) / Y.size
        logdet = np.linalg.slogdet(K)[1]
        simplicity, fit = -0.5 * Y.shape[1] * logdet, -0.5 * Y.size * np.log(variance)
        found["simplicity"].append(simplicity)
        found["fit"].append(fit)
        found["evidence"].append(fit + simplicity - 0.5 * Y.size * (1 + np.log(2 * np.pi)))
        predicted = averaged_kernel(X2, X, angle, lengthscale) @ solved
        found["error"].append(100 * np.mean(predicted.argmax(1) != test.labels))
    return {name: np.array(numbers) for name, numbers in found.items()}


def draw_orbit(X: np.ndarray) -> Figure:
    angles, count = (0, 20, 60, 180), 10
    found = draws(X, angles, count)
    figure, axes = plt.subplots(len(angles), count, figsize=(4.6, 2.0))
    for row, images, angle in zip(axes, found, angles, strict=True):
        for axis, image in zip(row, images, strict=True):
            axis.imshow(image.reshape(SHAPE), cmap="gray_r", vmin=0, vmax=1)
            axis.axis("off")
        row[0].text(-4, 14, f"±{angle}°", ha="right", va="center")
    return figure


def draw_double_sum(X: np.ndarray) -> Figure:
    order = 8
    points, Kaa, mean = double_sum(X, order, lengthscale=6.0)
    figure, axes = plt.subplots(order + 1, order + 1, figsize=(3.4, 3.4), gridspec_kw={"wspace": 0.06, "hspace": 0.06})
    for (row, column), axis in np.ndenumerate(axes):
        axis.axis("off")
        if row > 0 and column > 0:
            value = Kaa[row - 1, column - 1]
            axis.imshow([[value]], vmin=0, vmax=Kaa.max(), cmap="viridis", aspect="auto")
            colour = "white" if value < 0.6 * Kaa.max() else "black"
            axis.text(0, 0, f"{value:.2f}"[1:], color=colour, ha="center", va="center", fontsize=7)
        elif row != column:
            image = points[0, row - 1] if column == 0 else points[1, column - 1]
            axis.imshow(image.reshape(SHAPE), cmap="gray_r", vmin=0, vmax=1)
    figure.suptitle(f"mean of the {order * order} values: $k_f$ = {mean:.3f}", y=0.06, fontsize=8)
    return figure


def draw_estimates(x: np.ndarray) -> Figure:
    exact, found = estimates(x, repeats=2000)
    figure, axes = plt.subplots(3, 1, figsize=(4.6, 3.0), sharex=True, layout="constrained")
    bins = np.linspace(*np.quantile(np.concatenate(list(found.values())), [0.001, 0.999]), 60)
    for axis, (name, values), colour in zip(axes, found.items(), (RED, GREY, BLUE), strict=True):
        axis.hist(values, bins=bins, color=colour)
        axis.axvline(exact, color="black", linewidth=1)
        axis.axvline(values.mean(), color="black", linewidth=1, linestyle=":")
        axis.set_title(name, loc="left")
        axis.set(yticks=[])
    axes[-1].set_xlabel("estimate of $k_f(x, x)$ from 16 draws; solid: exact, dotted: mean")
    return figure


def draw_evidence() -> Figure:
    found = evidence(images=400, tests=1000, lengthscale=5.0, noise=0.02)
    best = int(found["evidence"].argmax())
    figure, (left, right) = plt.subplots(1, 2, figsize=(4.6, 2.0), layout="constrained")
    for name, colour, label in (("fit", BLUE, "data fit"), ("simplicity", RED, "simplicity"), ("evidence", "0", "sum")):
        values = found[name] - found[name][best]
        left.plot(ANGLES, values, color=colour, marker=".")
        left.text(186, values[-1], label, color=colour, va="center")
    right.plot(ANGLES, found["error"], color="0", marker=".")
    for axis in (left, right):
        axis.axvline(ANGLES[best], color=GREY, linewidth=0.8, linestyle=":", zorder=0)
        axis.set(xlabel="largest angle, °", xticks=(0, 45, 90, 135, 180))
    left.set(ylabel=f"nats, against ±{ANGLES[best]}°")
    right.set(ylabel="test error, %", ylim=(0, None))
    return figure


def main() -> None:
    data = mnist().train
    X = data.inputs().astype(np.float64)
    three, seven = (X[np.flatnonzero(data.labels == digit)[0]][None] for digit in (3, 7))
    with paper_style():
        for name, figure in (
            ("orbit", draw_orbit(three)),
            ("double_sum", draw_double_sum(np.concatenate([three, seven]))),
            ("unbiased", draw_estimates(three)),
            ("evidence", draw_evidence()),
        ):
            figure.savefig(FOLDER / f"{name}.png", bbox_inches="tight", metadata={"Software": None})
            plt.close(figure)


if __name__ == "__main__":
    main()
