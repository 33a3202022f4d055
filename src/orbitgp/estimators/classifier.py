"""Classification of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from sklearn.base import ClassifierMixin

from orbitgp import checks
from orbitgp.components import Component
from orbitgp.datasets.containers import one_hot
from orbitgp.datasets.user_images import as_pixels
from orbitgp.estimators import sizes as settings
from orbitgp.estimators.base import InvariantEstimator
from orbitgp.estimators.sizes import Sizes
from orbitgp.likelihoods import (
    DirichletLabels,
    IndependentGroups,
    LogisticSoftmax,
    OneHotGaussian,
    PolyaGammaBernoulli,
    RecognitionNetwork,
    Softmax,
)
from orbitgp.optimizers.recipe import Recipe

LIKELIHOODS = ("auto", "gaussian", "dirichlet", "softmax", "logistic_softmax", "logistic")

#: widths of the recognition network's layers
HIDDEN = (128, 128)


class InvariantClassifier(ClassifierMixin, InvariantEstimator):
    """
    A Gaussian process that learns how much its images may be transformed without a change of class::

        model = InvariantClassifier(orbit="affine").fit(images, labels)
        model.predict(new), model.predict_proba(new), model.evidence_

    Fitted attributes: ``classes_`` [K], ``evidence_`` (a lower bound to the log marginal likelihood, in nats; it
    compares orbits on the same data without a validation set) and ``evidence_std_error_``, ``orbit_`` with the learned
    parameters, ``model_`` (an :class:`orbitgp.InvariantSVGP`), ``sizes_``, ``image_shape_``, ``seconds_``.
    """

    def __init__(
        self,
        orbit: Any = "affine",
        *,
        likelihood: str = "auto",
        components: Sequence[Component | Mapping[str, Any]] | None = None,
        inducing: int | None = None,
        draws: int | None = None,
        batch: int | None = None,
        steps: int | None = None,
        time_budget: float | None = None,
        seed: int = 0,
        verbose: bool = True,
    ) -> None:
        """
        :param likelihood: ``"gaussian"``, regression on one-hot targets, as in the paper's experiments on ten digits;
            ``"dirichlet"``, regression on transformed labels; ``"softmax"``, under Bouchard's bound;
            ``"logistic_softmax"``, logistic functions over their sum; ``"logistic"``, for two classes, under the
            Pólya-Gamma bound; ``"auto"``, logistic for two classes, else gaussian. The evidence compares orbits under
            one likelihood, not likelihoods.

        The other parameters are those of :class:`orbitgp.estimators.base.InvariantEstimator`.
        """
        super().__init__(
            orbit,
            components=components,
            inducing=inducing,
            draws=draws,
            batch=batch,
            steps=steps,
            time_budget=time_budget,
            seed=seed,
            verbose=verbose,
        )
        self.likelihood = likelihood

    def fit(self, images: Any, labels: Any) -> InvariantClassifier:
        """
        :param images: [N, H, W] or [N, H, W, C], uint8, or floating in [0, 1].
        :param labels: [N] integers (as floats too) or strings, of two classes at least.
        """
        pixels, labels = as_pixels(np.asarray(images), "images"), _plain(np.asarray(labels))
        if labels.shape != (len(pixels),):
            raise ValueError(f"labels must be one for each of the {len(pixels)} images, not {list(labels.shape)}")
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"labels must be of two classes at least, not of one class, {self.classes_[0]!r}")
        checks.one_of("likelihood", self.likelihood, LIKELIHOODS)
        if self.likelihood == "logistic" and len(self.classes_) != 2:
            raise ValueError(f"likelihood = 'logistic' is for two classes, and labels have {len(self.classes_)}")
        self._fit(pixels, self._targets(numbers))
        return self

    def predict_proba(self, images: Any) -> npt.NDArray[np.float64]:
        """
        :return: [N, K], the probability of each class, in the order of ``classes_``.
        """
        return self._probabilities(*self._predict_f(images)).numpy()

    def predict(self, images: Any) -> npt.NDArray[Any]:
        """
        :return: [N], the most probable class of each image.
        """
        chosen = self.predict_proba(images).argmax(1)
        return self.classes_[chosen]

    def _answer(self, mean: tf.Tensor, variance: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"probabilities": self._probabilities(mean, variance)}

    def _probabilities(self, mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
        """The probability of each class, [N, K]."""
        found = self.model_.likelihood.predict_probability(mean, variance)
        return found if self.model_.num_latent_gps > 1 else tf.concat([1 - found, found], axis=1)

    # -- targets -----------------------------------------------------------------------------------------------------

    @property
    def _kind(self) -> str:
        if self.likelihood != "auto":
            return self.likelihood
        return "logistic" if len(self.classes_) == 2 else "gaussian"

    def _targets(self, numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
        if self._kind == "logistic":
            return np.where(numbers == 1, 1.0, -1.0)[:, None]
        return one_hot(numbers, len(self.classes_))

    def _likelihood(self, image_values: int, outputs: int) -> Likelihood:
        if self._kind == "logistic":
            return PolyaGammaBernoulli(RecognitionNetwork(image_values, HIDDEN, seed=self.seed))
        if self._kind == "softmax":
            return Softmax(outputs, IndependentGroups())
        if self._kind == "logistic_softmax":
            return LogisticSoftmax(outputs, IndependentGroups())
        if self._kind == "dirichlet":
            return DirichletLabels(outputs)
        return OneHotGaussian(self._kernel_variance(outputs))

    def _kernel_variance(self, outputs: int) -> float:
        if self._kind == "gaussian":
            return 0.25 * (1 / outputs) * (1 - 1 / outputs)  # a quarter of the targets' variance
        return 20.0  # of g: averaging over a wide orbit leaves f a small part of it

    def _mean(self, outputs: int) -> float:
        if self._kind == "dirichlet":
            return DirichletLabels(outputs).mean_target()
        return 1 / outputs if self._kind == "gaussian" else 0.0

    def _recipe(self, outputs: int, sizes: Sizes) -> Recipe:
        return settings.recipe("gaussian" if self._kind == "gaussian" else "logistic", sizes)

    def _about_targets(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist()}

    def _take_targets(self, about: dict[str, Any], outputs: int) -> None:
        checks.one_of("likelihood", self.likelihood, LIKELIHOODS)
        classes = about["classes"]
        plain = isinstance(classes, list) and all(isinstance(name, str | int | float) for name in classes)
        if (
            not plain
            or len({type(name) for name in classes}) != 1
            or len(set(classes)) != len(classes)
            or len(classes) < 2
        ):
            raise ValueError(f"a classifier's file must name its classes, not {classes!r}")
        self.classes_ = np.array(classes)
        if outputs != (1 if self._kind == "logistic" else len(classes)):
            raise ValueError(f"its model has {outputs} outputs, for {len(classes)} classes")


def _plain(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels in a type that a file can keep: strings given as bytes or as objects, as by pandas, become str."""
    if labels.dtype.kind == "S" or (labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels.flat)):
        return labels.astype(str)
    whole = labels.dtype.kind == "f" and np.all(np.isfinite(labels)) and np.all(labels == np.floor(labels))
    if not whole and labels.dtype.kind not in "biuU":
        raise ValueError(f"Unknown label type: labels must be integers or strings, not {labels.dtype}")
    return labels
