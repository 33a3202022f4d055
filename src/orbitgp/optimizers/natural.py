"""Natural-gradient steps for q where the bound is quadratic in it."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from gpflow.base import Module, TensorType

from orbitgp import checks
from orbitgp._ops.triangular import inverse_triangle
from orbitgp.models import InvariantSVGP, Quadratic
from orbitgp.optimizers.recipe import NATURAL_SCALES


class NaturalPosterior(Module):
    """
    q(v) = N(m, Λ⁻¹) by its precision Λ, in which a conjugate step is a weighted mean of old and new.

    The batch's estimate of the best precision, I + A, is unbiased and so need not be positive. The step

        Λ ← Λ + G + ½ G Λ⁻¹ G,   G = ρ (I + A − Λ)

    is positive all the same (it is ½ Λ plus half of (Λ + G) Λ⁻¹ (Λ + G)), agrees with the natural gradient to first
    order in ρ, and has the same fixed point.

    The mean moves by ρ C⁻¹ ∇_m. With C = Λ this would be the natural gradient, but in directions that draws tell
    apart and their average does not, Λ is small and the noise of ∇_m is not: under wide orbits such steps grow until
    nothing is finite. C is instead a running mean of the batches' ceilings I + Σ θ φ_g φ_gᵀ, which bound that noise.
    Where nothing is drawn at random, C is Λ's target and the step is the natural one.

    C has this batch's ceiling in it. With a C that was a step older, ±180° of Fig. 3 lost its bound for hundreds of
    steps, presumably by large steps in directions that no batch had shown before.
    """

    def __init__(self, model: InvariantSVGP, scale: str = "ceiling") -> None:
        """
        :param model: whose q is the start, and whose q :meth:`write_back` sets.
        :param scale: what C is: ``"ceiling"``, or ``"precision"`` for the natural gradient, to see what it is worth.
        """
        super().__init__()
        self._model, self._scale = model, checks.one_of("scale", scale, NATURAL_SCALES)
        root = np.array(model.q_sqrt)[0]
        precision = np.linalg.inv(root @ root.T)
        self.mean = tf.Variable(model.q_mu, trainable=False, name="mean")
        self.precision = tf.Variable(precision, trainable=False, name="precision")
        self.factor = tf.Variable(np.linalg.cholesky(precision), trainable=False, name="factor")
        self.ceiling = tf.Variable(precision, trainable=False, name="ceiling")

    def inverse_factor(self) -> tf.Tensor:
        """R⁻¹ [M, M] with Λ = R Rᵀ; the covariance is R⁻ᵀ R⁻¹."""
        return inverse_triangle(self.factor)

    def prior_kl(self, covariance: tf.Tensor) -> tf.Tensor:
        """
        :param covariance: [M, M], Λ⁻¹.
        :return: KL(q(v) ‖ N(0, I)), summed over outputs.
        """
        M, outputs = (tf.cast(size, covariance.dtype) for size in self.mean.shape)
        log_determinant = 2 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(self.factor)))
        return 0.5 * (
            tf.reduce_sum(tf.square(self.mean)) + outputs * (tf.linalg.trace(covariance) - M + log_determinant)
        )

    def start(self, linear: tf.Tensor, ceiling: tf.Tensor) -> None:
        """
        A first q, from some of the data.

        :param linear: [M, P] and
        :param ceiling: [M, M], of a bound that is scaled to all data. Too large a precision is safe to start from.
        """
        precision = tf.eye(self.precision.shape[0], dtype=self.precision.dtype) + ceiling
        for variable in (self.precision, self.ceiling):
            variable.assign(precision)
        self.factor.assign(tf.linalg.cholesky(precision))
        self.mean.assign(_solve(self.factor, linear))

    def step(self, quadratic: Quadratic, rho: TensorType, inverse_factor: tf.Tensor) -> None:
        """
        :param quadratic: the bound of a batch, scaled to all data.
        :param rho: in (0, 1], the size of the step.
        :param inverse_factor: R⁻¹ of the present Λ.
        """
        eye = tf.eye(self.precision.shape[0], dtype=self.precision.dtype)
        change = rho * (eye + quadratic.precision - self.precision)
        half = tf.matmul(inverse_factor, change)
        precision = self.precision + change + 0.5 * tf.matmul(half, half, transpose_a=True)
        ceiling = self.ceiling + rho * (eye + quadratic.ceiling - self.ceiling)
        gradient = quadratic.linear - tf.matmul(quadratic.precision, self.mean) - self.mean
        factor = tf.linalg.cholesky(precision)
        scale = tf.linalg.cholesky(ceiling) if self._scale == "ceiling" else factor
        self.mean.assign_add(rho * _solve(scale, gradient))
        self.precision.assign(precision)
        self.factor.assign(factor)
        self.ceiling.assign(ceiling)

    def write_back(self) -> None:
        """Gives the model this q."""
        # past Parameter.assign, whose check for NaN would end a compiled training instead of sending it back
        self._model.q_mu.unconstrained_variable.assign(self.mean)
        root = self._model.q_sqrt
        assert root.transform is not None
        root.unconstrained_variable.assign(root.transform.inverse(inverse_root(self.precision)[None]))


def _solve(factor: TensorType, columns: tf.Tensor) -> tf.Tensor:
    """(R Rᵀ)⁻¹ b from R [M, M] and b [M, P]."""
    inverse = inverse_triangle(factor)
    return tf.matmul(inverse, tf.matmul(inverse, columns), transpose_a=True)


def inverse_root(precision: TensorType) -> tf.Tensor:
    """
    :param precision: [M, M] Λ
    :return: [M, M], lower triangular T with T Tᵀ = Λ⁻¹, without an inverse: Λ = U Uᵀ with U upper triangular, by a
        factorisation from the last row up, and T = U⁻ᵀ.
    """
    upper = tf.reverse(tf.linalg.cholesky(tf.reverse(precision, [0, 1])), [0, 1])
    return inverse_triangle(tf.transpose(upper))


def best_posterior(quadratic: Quadratic) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param quadratic: the bound of all data.
    :return: [M, P] mean and [M, M] root of the covariance of the q that maximises it. NaN where the estimate of the
        precision is so noisy that there is no maximum.
    """
    precision = tf.eye(quadratic.precision.shape[0], dtype=quadratic.precision.dtype) + quadratic.precision
    mean = tf.linalg.cholesky_solve(tf.linalg.cholesky(precision), quadratic.linear)
    return mean, inverse_root(precision)
