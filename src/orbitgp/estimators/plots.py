"""Pictures of a learned orbit and of a comparison. They need the extra ``plots``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from orbitgp import checks
from orbitgp.orbits import Orbit


def plot_orbit(orbit: Orbit, shape: tuple[int, ...], rows: npt.NDArray[np.float32], draws: int = 8) -> Any:
    """
    Shows each image beside draws from its learned orbit, as in the paper's Fig. 1.

    :param shape: (H, W, C) of the images.
    :param rows: [N, D] images.
    :param draws: number of draws for each image.
    :return: a matplotlib figure.
    """
    from matplotlib.figure import Figure

    checks.integer("draws", draws, least=1)
    drawn = orbit.sample(tf.constant(rows), 1, draws, [0, 1], "iid").numpy()[:, 0]
    pictures = np.clip(np.concatenate([rows[:, None], drawn], axis=1), 0, 1).reshape(len(rows), 1 + draws, *shape)
    figure = Figure(figsize=(0.9 * (1 + draws), 0.95 * len(rows) + 0.3), layout="constrained")
    axes = figure.subplots(len(rows), 1 + draws, squeeze=False)
    for line, images in zip(axes, pictures, strict=True):
        for place, image in zip(line, images, strict=True):
            grey = shape[2] not in (3, 4)
            place.imshow(image[..., 0] if grey else image, cmap="gray" if grey else None, vmin=0, vmax=1)
            place.set_xticks([])
            place.set_yticks([])
            place.spines[:].set_visible(False)
    axes[0, 0].set_title("image", fontsize=9)
    axes[0, 1 + (draws - 1) // 2].set_title("draws from its learned orbit", fontsize=9)
    return figure


def plot_evidence(names: list[str], evidence: npt.NDArray[np.float64], errors: npt.NDArray[np.float64]) -> Any:
    """
    :param names: names of the orbits, the best first.
    :param evidence: [n] bounds, in nats.
    :param errors: [n] their standard errors.
    :return: a matplotlib figure: by how much each bound is below the best.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 0.45 * len(names) + 0.9), layout="constrained")
    axes = figure.subplots()
    places, gaps = np.arange(len(names)), evidence - evidence[0]
    axes.errorbar(gaps, places, xerr=2 * errors, fmt="o", color="#2a6f97", capsize=3)
    axes.axvline(0, color="#a9a9a9", linewidth=1, zorder=0)
    axes.set_yticks(places, names)
    axes.margins(y=0.15)
    axes.invert_yaxis()
    axes.set_xlabel("evidence lower bound less the highest, nats (± 2 standard errors)")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
