"""Regression on one-hot targets, as in the paper's Figs. 4 and 5, with the probabilities that it implies."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.likelihoods import Gaussian

#: nodes of the Gauss-Hermite quadrature
NODES = 48


class OneHotGaussian(Gaussian):
    """y = f + ε with y a one-hot row: Gaussian in training, and the class whose y is largest in prediction."""

    @check_shapes("Fmu: [N, K]", "Fvar: [N, K]", "return: [N, K]")
    def predict_probability(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """
        P(y_j > y_k for all k ≠ j) = ∫ N(t; μ_j, s_j²) Π_{k≠j} Φ((t − μ_k)/s_k) dt, s² = σ² + noise, by quadrature.

        :return: [N, K], with sum one.
        """
        Fmu, Fvar = tf.convert_to_tensor(Fmu), tf.convert_to_tensor(Fvar)
        places, weights = np.polynomial.hermite_e.hermegauss(NODES)
        spread = tf.sqrt(Fvar + tf.cast(self.variance, Fvar.dtype))
        t = Fmu[:, :, None] + spread[:, :, None] * places  # [N, K, nodes]
        scaled = (t[:, :, None] - Fmu[:, None, :, None]) / spread[:, None, :, None]  # [N, j, k, nodes]
        below = tfp.distributions.Normal(tf.zeros([], t.dtype), tf.ones([], t.dtype)).log_cdf(scaled)
        others = 1 - tf.eye(tf.shape(Fmu)[1], dtype=t.dtype)[None, :, :, None]
        found = tf.exp(tf.reduce_sum(others * below, axis=2)) @ tf.constant(weights[:, None], t.dtype)  # [N, K, 1]
        return found[:, :, 0] / tf.reduce_sum(found, axis=1)
