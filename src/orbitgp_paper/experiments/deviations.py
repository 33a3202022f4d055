"""Appendix A: how often a trained model's function deviates under its own orbit, class by class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from orbitgp import checks
from orbitgp.datasets import ImageData
from orbitgp.insensitivity import VIEWS, insensitivity
from orbitgp.models import InvariantSVGP


def measure(model: InvariantSVGP, data: ImageData, settings: Mapping[str, Any]) -> pd.DataFrame:
    """
    P([f(x) − f(x_a)]² > L) and the lemma's bound to it, each the mean over the test images of a class. Under the
    posterior it is also the mean over the model's outputs: every output counts alike, whatever the image's class, so
    a number is the probability for an output picked at random. Under the prior all outputs are the same, and f is
    scaled to a variance of one, so that L means another thing in the two views.

    The bound is the mean of the bounds of single images and outputs, min(1, E[f(x) − f(x_a)]²/L). That mean is valid
    for the mean probability, and is no larger than min(1, ``expected_square``/L), the bound of the mean.

    :param settings: ``images``: how many test images, taken from each class in turn, in the order of the data;
        ``draws``: how many x_a for each; ``samples``: draws from the orbit behind each value of f; ``thresholds``: the
        values of L; ``seed``: decides the draws. Other keys are ignored.
    :return: columns view, label, threshold, probability, bound, expected_square, images.
    """
    labels = data.test.labels
    images = checks.integer("images", settings["images"], least=len(np.unique(labels)), most=len(labels))
    chosen = data.test.take(_each_class_in_turn(labels)[:images])
    options = {name: settings[name] for name in ("thresholds", "draws", "samples", "seed")}
    rows = []
    for view in VIEWS:
        found = insensitivity(model, chosen.inputs(), view=view, **options)
        for label in np.unique(chosen.labels):
            own = chosen.labels == label
            probability, bound = (part[own].mean(axis=(0, 1)) for part in (found.probability, found.bound))
            for k, threshold in enumerate(found.thresholds):
                rows.append(
                    {
                        "view": view,
                        "label": int(label),
                        "threshold": float(threshold),
                        "probability": float(probability[k]),
                        "bound": float(bound[k]),
                        "expected_square": float(found.expected_square[own].mean()),
                        "images": int(own.sum()),
                    }
                )
    return pd.DataFrame(rows)


def _each_class_in_turn(labels: np.ndarray) -> np.ndarray:
    """
    :param labels: [N]
    :return: [N], indices: the first image of every class, the second of every class, and so on while there are any.
    """
    rank = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        rank[own] = np.arange(len(own))
    return np.lexsort((labels, rank))
