"""How sure a classifier is, beside how often it is right."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from orbitgp import checks

BINS = 15  #: bins of confidence, as in Guo and others (2017)


class Reliability(NamedTuple):
    """A reliability diagram: arrays with an entry for each bin that has images."""

    bin: npt.NDArray[np.int64]  #: number of the bin; bins divide [0, 1] evenly
    confidence: npt.NDArray[np.float64]  #: mean probability of the predicted class
    accuracy: npt.NDArray[np.float64]  #: share of predictions that are right
    images: npt.NDArray[np.int64]  #: how many there are


def reliability(probabilities: npt.NDArray[Any], labels: npt.NDArray[Any], bins: int = BINS) -> Reliability:
    """
    :param probabilities: [N, K], as ``predict_proba`` returns them.
    :param labels: [N], the columns that are right, 0 … K − 1; ``np.searchsorted(model.classes_, labels)`` of an
        estimator's own labels.
    :param bins: how many.
    """
    probabilities, labels, bins = np.asarray(probabilities), np.asarray(labels), checks.integer("bins", bins, least=1)
    if probabilities.ndim != 2 or not len(probabilities):
        raise ValueError(f"probabilities must be [N, K], a row for each image, got {list(probabilities.shape)}")
    if not np.all((probabilities >= 0) & (probabilities <= 1 + 1e-6)):
        raise ValueError("probabilities must be between 0 and 1")
    N, K = probabilities.shape
    if labels.shape != (N,) or labels.dtype.kind not in "biu" or labels.min() < 0 or labels.max() >= K:
        raise ValueError(
            f"labels must be integers from 0 to {K - 1}, the columns of probabilities, one for each of {N} rows, got "
            f"{labels.dtype} of shape {list(labels.shape)}; np.searchsorted(model.classes_, labels) makes such"
        )
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    numbers, place = np.unique(np.minimum((confidence * bins).astype(int), bins - 1), return_inverse=True)
    images = np.bincount(place)
    return Reliability(numbers, np.bincount(place, confidence) / images, np.bincount(place, right) / images, images)


def expected_calibration_error(probabilities: npt.NDArray[Any], labels: npt.NDArray[Any], bins: int = BINS) -> float:
    """
    :return: the mean over images of how far confidence and accuracy of their bin are apart, between 0 and 1; parameters
        as for :func:`reliability`.
    """
    found = reliability(probabilities, labels, bins)
    return float(np.average(np.abs(found.confidence - found.accuracy), weights=found.images))
