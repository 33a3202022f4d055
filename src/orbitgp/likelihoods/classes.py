"""What likelihoods of several classes share: one-hot labels, local parameters, and predicted probabilities."""

from __future__ import annotations

import abc
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.likelihoods import Likelihood
from scipy.special import ndtri

from orbitgp import checks
from orbitgp._ops.blocks import map_blocks
from orbitgp.likelihoods.sites import Batch, Moments
from orbitgp.likelihoods.tilts import Tilt
from orbitgp.orbits.sampling import uniforms

POINTS = 512  #: number of points for expectations over f
PREDICTED_TOGETHER = 256  # inputs at a time: all points of a test set would not fit into memory


@lru_cache(maxsize=16)
def normal_points(dimensions: int) -> np.ndarray:
    """
    Points whose plain average stands for an expectation under N(0, I): a Sobol set under one fixed digital shift. Each
    column has mean 0 and variance 1, so that averages of quadratic functions without cross terms are exact.

    :return: [POINTS, dimensions]
    """
    with tf.init_scope():  # numbers, even while a graph is traced
        points = ndtri(uniforms(1, 1, POINTS, dimensions, tf.constant([0, 0]))[0, 0].numpy())
    points -= points.mean(axis=0)
    return points / points.std(axis=0)


class ClassLikelihood(Likelihood, metaclass=abc.ABCMeta):
    """
    Labels of K classes as one-hot rows [N, K], with one output of the process for each class.

    Expectations over f in predictions are averages over the same fixed points for every input: no randomness, and
    probabilities that add up to one.
    """

    def __init__(self, classes: int) -> None:
        """
        :param classes: K, at least two.
        """
        self.classes = checks.integer("classes", classes, least=2)
        super().__init__(input_dim=None, latent_dim=self.classes, observation_dim=self.classes)

    @abc.abstractmethod
    def log_probabilities(self, F: TensorType) -> tf.Tensor:
        """
        :param F: [..., K]
        :return: [..., K], the logarithm of each class's probability given f.
        """

    @check_shapes("Fmu: [N, K]", "Fvar: [N, K]", "return: [N, K]")
    def predict_probability(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """The probability of each class, E p(y = k | f) under f_k ~ N(Fmu_k, Fvar_k); rows add up to one."""
        return tf.exp(self._log_predicted(Fmu, Fvar))

    def checked(self, Y: tf.Tensor) -> tf.Tensor:
        """
        :return: [N, K], the labels, after checking them.
        """
        if Y.shape[-1] != self.classes:
            raise ValueError(f"Y has {Y.shape[-1]} columns; for {self.classes} classes its rows are one-hot, [N, K]")
        ones, message = tf.ones_like(Y[:, 0]), "labels must be one-hot rows: a single 1, and 0 elsewhere"
        looks = [
            tf.debugging.assert_equal(tf.reduce_sum(Y, axis=-1), ones, message),
            tf.debugging.assert_equal(tf.reduce_max(Y, axis=-1), ones, message),
            tf.debugging.assert_non_negative(Y, message),
        ]
        with tf.control_dependencies([look for look in looks if look is not None]):
            return tf.identity(Y)

    def _average(
        self, function: Callable[..., tf.Tensor], Fmu: TensorType, Fvar: TensorType, *more: TensorType
    ) -> tf.Tensor:
        """
        Applies a function to samples of f, for some of the inputs at a time.

        :param function: ([S, N, K] values of f, [N, …], …) → [N, …]
        """
        points = tf.constant(normal_points(self.classes), tf.convert_to_tensor(Fmu).dtype)[:, None]

        def block(number: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor, *rest: tf.Tensor) -> tuple[tf.Tensor]:
            return (function(mean + tf.sqrt(variance) * points, *rest),)

        return map_blocks(block, (Fmu, Fvar, *more), PREDICTED_TOGETHER, (points.dtype,))[0]

    def _log_predicted(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """[N, K], log E p(y = k | f), finite however small the probability is."""

        def log_mean(F: tf.Tensor) -> tf.Tensor:
            return tf.reduce_logsumexp(self.log_probabilities(F), axis=0) - np.log(POINTS)

        return self._average(log_mean, Fmu, Fvar)

    @inherit_check_shapes
    def _log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return tf.reduce_sum(Y * self.log_probabilities(F), axis=-1)

    @inherit_check_shapes
    def _conditional_mean(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return tf.exp(self.log_probabilities(F))

    @inherit_check_shapes
    def _conditional_variance(self, X: TensorType, F: TensorType) -> tf.Tensor:
        mean = self._conditional_mean(X, F)
        return mean * (1 - mean)

    @inherit_check_shapes
    def _predict_mean_and_var(self, X: TensorType, Fmu: TensorType, Fvar: TensorType) -> MeanAndVariance:
        mean = self.predict_probability(Fmu, Fvar)
        return mean, mean * (1 - mean)

    @inherit_check_shapes
    def _predict_log_density(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tf.Tensor:
        return tf.reduce_sum(Y * self._log_predicted(Fmu, Fvar), axis=-1)

    @inherit_check_shapes
    def _variational_expectations(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tf.Tensor:
        def mean(F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
            return tf.reduce_mean(tf.reduce_sum(Y * self.log_probabilities(F), axis=-1), axis=0)

        return self._average(mean, Fmu, Fvar, Y)


class TiltedClassLikelihood(ClassLikelihood):
    """A likelihood of several classes whose bound has local parameters."""

    def __init__(self, classes: int, tilt: Tilt) -> None:
        """
        :param classes: K, at least two.
        :param tilt: chooses the local parameters of each datum: :class:`~orbitgp.likelihoods.IndependentGroups`, or a
            :class:`~orbitgp.likelihoods.RecognitionNetwork` or :class:`~orbitgp.likelihoods.TiltTable` with the
            numbers of parameters that :meth:`local_numbers` returns.
        """
        super().__init__(classes)
        self._tilt = checks.instance("tilt", tilt, Tilt)

    @staticmethod
    @abc.abstractmethod
    def local_numbers(classes: int) -> tuple[int, int]:
        """Numbers of local parameters of a datum: positive ones (``outputs`` of a tilt), and others (its ``real``)."""

    @staticmethod
    @abc.abstractmethod
    def best_local(moments: Moments) -> tf.Tensor:
        """
        :return: [N, L], the local parameters for which the bound at these moments is highest.
        """

    def local(self, batch: Batch, independent: Callable[[], Moments]) -> tf.Tensor:
        """
        :param independent: returns estimates of the moments of f from independent draws.
        :return: [N, L], the local parameters of each datum.
        """
        found, wanted = self._tilt(batch, lambda: self.best_local(independent())), self.local_numbers(self.classes)
        if found.shape[-1] != sum(wanted):
            raise ValueError(
                f"{type(self).__name__} of {self.classes} classes has {sum(wanted)} local parameters for each datum, "
                f"the tilt gives {found.shape[-1]}; make it with outputs={wanted[0]} and real={wanted[1]}"
            )
        return found
