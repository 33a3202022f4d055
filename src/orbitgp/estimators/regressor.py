"""Regression: numbers for each image."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from sklearn.base import RegressorMixin

from orbitgp.datasets.user_images import as_pixels
from orbitgp.estimators import sizes as settings
from orbitgp.estimators.base import InvariantEstimator
from orbitgp.estimators.sizes import Sizes
from orbitgp.optimizers.recipe import Recipe


class InvariantRegressor(RegressorMixin, InvariantEstimator):
    """
    A Gaussian process that learns how much its images may be transformed without a change of their numbers.

    Fitted attributes are those of :class:`orbitgp.InvariantClassifier`, without ``classes_``. ``evidence_`` is that of
    the targets as given, so it depends on their units.
    """

    def fit(self, images: Any, targets: Any) -> InvariantRegressor:
        """
        :param images: [N, H, W] or [N, H, W, C], uint8, or floating in [0, 1].
        :param targets: [N] or [N, P] finite numbers, not all the same.
        """
        pixels, targets = as_pixels(np.asarray(images), "images"), np.asarray(targets)
        if targets.ndim not in (1, 2) or len(targets) != len(pixels) or targets.dtype.kind not in "iuf":
            raise ValueError(
                f"targets must be numbers [N] or [N, P], for {len(pixels)} images, not {targets.dtype} "
                f"{list(targets.shape)}"
            )
        Y = np.asarray(targets, np.float64).reshape(len(targets), -1)
        if not np.all(np.isfinite(Y)) or not np.all(Y.std(0) > 0):
            raise ValueError("targets must be finite, and not all the same, which takes more than one sample")
        self._flat = targets.ndim == 1
        self.offset_, self.scale_ = Y.mean(0), Y.std(0)
        self._fit(pixels, (Y - self.offset_) / self.scale_)
        self.evidence_ -= len(Y) * float(np.log(self.scale_).sum())  # a log density, in the units of the targets
        return self

    def predict(self, images: Any, return_std: bool = False) -> Any:
        """
        :param return_std: whether to return the standard deviation of a new target too.
        :return: the mean, [N] or [N, P], as the targets were; with ``return_std`` the mean and the standard deviation.
        """
        answer = self._answer(*self._predict_f(images))
        mean, std = (part.numpy()[:, 0] if self._flat else part.numpy() for part in answer.values())
        return (mean, std) if return_std else mean

    def _answer(self, mean: tf.Tensor, variance: tf.Tensor) -> dict[str, tf.Tensor]:
        noise = tf.convert_to_tensor(self.model_.likelihood.variance)
        return {"mean": mean * self.scale_ + self.offset_, "std": tf.sqrt(variance + noise) * self.scale_}

    # -- targets -----------------------------------------------------------------------------------------------------

    def _likelihood(self, image_values: int, outputs: int) -> Likelihood:
        return gpflow.likelihoods.Gaussian(0.1)

    def _kernel_variance(self, outputs: int) -> float:
        return 1.0

    def _mean(self, outputs: int) -> float:
        return 0.0

    def _recipe(self, outputs: int, sizes: Sizes) -> Recipe:
        return settings.recipe("gaussian", sizes)

    def _about_targets(self) -> dict[str, Any]:
        return {"offset": self.offset_.tolist(), "scale": self.scale_.tolist(), "flat": self._flat}

    def _take_targets(self, about: dict[str, Any], outputs: int) -> None:
        self.offset_, self.scale_ = (np.array(about[name], np.float64) for name in ("offset", "scale"))
        self._flat = bool(about["flat"])
        shapes = {self.offset_.shape, self.scale_.shape}
        if shapes != {(outputs,)} or not np.all(np.isfinite([self.offset_, self.scale_])) or np.any(self.scale_ <= 0):
            raise ValueError(f"the offset and scale of its targets must be {outputs} numbers each, scales above 0")
