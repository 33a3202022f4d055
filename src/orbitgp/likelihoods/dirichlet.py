"""Classification as regression on transformed labels (Milios and others, 2018)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from orbitgp import checks
from orbitgp.likelihoods.classes import ClassLikelihood
from orbitgp.likelihoods.sites import Batch, Moments, Sites, gaussian_sites, sites_of


class DirichletLabels(ClassLikelihood):
    """
    A Gaussian for each class, N(ỹ_k; f_k, s_k²), on labels that stand for Dirichlet(α) probabilities, α_k = y_k + ε.

    Each Gamma(α_k, 1) variable of that Dirichlet is approximated by a log-normal one of the same mean and variance:
    s_k² = log(1 + 1/α_k) and ỹ_k = log α_k − ½ s_k². Predicted probabilities are those of softmax(f), while the bound
    is on the density of ỹ. It has no slack and no local parameters. But it does not bound the probability of the
    labels: compare other likelihoods by test scores, not by bounds.

    The label's class and the rest differ in precision: natural steps need a model with ``covariance="per_output"``.
    A common shift of all f changes no probability, so a constant mean function of :meth:`mean_target` is a good prior.
    """

    def __init__(self, classes: int, concentration: float = 1e-4) -> None:
        """
        :param classes: K, at least two.
        :param concentration: ε > 0. The smaller, the further apart are the targets of the label and of the rest. Too
            large an ε makes predictions underconfident, and too small a one raises their NLL as well. Held-out digits
            chose the default (``benchmarks/concentration.md``).
        """
        super().__init__(classes)
        self._concentration = checks.number("concentration", concentration, least=1e-6)

    def targets(self, Y: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """
        :param Y: [..., K] one-hot rows.
        :return: [..., K] each, the transformed labels ỹ and their noise variances s².
        """
        concentration = self._concentration + tf.convert_to_tensor(Y)
        noise = tf.math.log1p(1 / concentration)
        return tf.math.log(concentration) - 0.5 * noise, noise

    def mean_target(self) -> float:
        """The mean over the classes of ỹ, the same for every label."""
        return float(np.mean(self.targets(np.eye(self.classes)[0])[0]))

    def log_probabilities(self, F: TensorType) -> tf.Tensor:
        """log softmax(f)"""
        return tf.nn.log_softmax(F, axis=-1)

    @inherit_check_shapes
    def _log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        """log N(ỹ; f, s²), as in training."""
        return tf.reduce_sum(gaussian_sites(*self.targets(Y)).expectation(F, tf.square(F)), axis=-1)

    @inherit_check_shapes
    def _variational_expectations(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tf.Tensor:
        return tf.reduce_sum(gaussian_sites(*self.targets(Y)).expectation(Fmu, tf.square(Fmu) + Fvar), axis=-1)


@sites_of.register(DirichletLabels, object, object)
def _dirichlet_sites(likelihood: DirichletLabels, batch: Batch, independent: Callable[[], Moments]) -> Sites:
    return gaussian_sites(*likelihood.targets(likelihood.checked(batch.Y)))
