"""Figure 1: test images, and draws from the orbit that a model has learned."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from orbitgp import checks
from orbitgp.datasets import ImageData
from orbitgp.models import InvariantSVGP
from orbitgp.orbits.sampling import split


def draw_samples(model: InvariantSVGP, data: ImageData, digits: int, draws: int, seed: int) -> dict[str, np.ndarray]:
    """
    The first test image of each of ``digits`` classes, which lie evenly between the smallest and the largest label
    (of ten digits, four are 0, 3, 6 and 9), and independent draws from p(x_a | x) for each. Pixels are cut to [0, 1]
    for display, since a thickened stroke can exceed it.

    :param model: whose orbit is drawn from.
    :param data: whose test images are drawn for.
    :param digits: how many classes; all, if there are fewer.
    :param draws: how many draws for each.
    :param seed: decides the draws.
    :return: ``originals`` [digits, H, W, C] uint8, ``draws`` [digits, draws, H, W, C] uint8, ``labels`` [digits] int64.
    """
    classes, first = np.unique(data.test.labels, return_index=True)
    digits = min(checks.integer("digits", digits, least=1), len(classes))
    chosen = first[np.linspace(0, len(classes) - 1, digits).round().astype(int)]
    originals = data.test.take(chosen)
    X = tf.constant(originals.inputs(), model.compute_dtype)
    drawn = model.kernel.orbit.sample(X, 1, draws, split(tf.constant([seed, 0], tf.int64), 0), "iid").numpy()
    return {
        "originals": _bytes(originals.images),
        "draws": _bytes(drawn.reshape(digits, draws, *originals.shape)),
        "labels": originals.labels,
    }


def _bytes(images: np.ndarray) -> np.ndarray:
    if not np.all(np.isfinite(images)):
        raise ValueError("the model's orbit draws images that are not finite: look at its parameters")
    return np.rint(255 * np.clip(images, 0, 1)).astype(np.uint8)
