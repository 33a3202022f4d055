"""Regression on one-hot targets, as in the paper's Figs. 4 and 5, with the probabilities that it implies."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.likelihoods import Gaussian

from orbitgp._ops.blocks import map_blocks

#: inputs at a time: all pairs of classes at all nodes would not fit into memory
TOGETHER = 256

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
        itself = tf.eye(tf.shape(Fmu)[1], dtype=tf.bool)[None, :, :, None]

        def block(number: tf.Tensor, mean: tf.Tensor, spread: tf.Tensor) -> tuple[tf.Tensor]:
            t = mean[:, :, None] + spread[:, :, None] * places  # [N, j, nodes]
            scaled = (t[:, :, None] - mean[:, None, :, None]) / spread[:, None, :, None]  # [N, j, k, nodes]
            below = tf.where(itself, tf.ones([], t.dtype), 0.5 * tf.math.erfc(-np.sqrt(0.5) * scaled))  # Φ
            found = tf.linalg.matvec(tf.reduce_prod(below, axis=2), tf.constant(weights, t.dtype))  # [N, j]
            return (found / tf.reduce_sum(found, axis=1, keepdims=True),)

        spread = tf.sqrt(Fvar + tf.cast(self.variance, Fvar.dtype))
        return map_blocks(block, (Fmu, spread), TOGETHER, (Fmu.dtype,))[0]
