"""Natural-gradient steps for q where the bound is quadratic in it."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from gpflow.base import Module, TensorType

from orbitgp import checks
from orbitgp._ops.outputs import times_each
from orbitgp._ops.triangular import inverse_triangle, lower_half
from orbitgp.models import InvariantSVGP, Quadratic
from orbitgp.optimizers.recipe import NATURAL_SCALES

#: a standard deviation of q is brought back where it is beyond so many times the prior's
FAR = 3.0

#: products with T Tᵀ that find the largest variance: along one of nine times the others they are 6,561 times as large
POWERS = 4


class NaturalPosterior(Module):
    """
    q(v) = N(m, Λ⁻¹) by the inverse T of its precision's Cholesky factor: Λ⁻¹ = Tᵀ T, T lower triangular.

    The batch's estimate of the best precision, I + A, is unbiased and so need not be positive. Seen from T its
    difference to Λ is E = T (I + A) Tᵀ − I, and with X = ρ E the step is

        T ← (I − P + ½ P²) T,   P lower triangular, P + Pᵀ = X.

    To first order in ρ, Λ moves by the natural gradient, ρ (I + A − Λ), and it has the same fixed point. If an
    eigenvalue of X could be beyond 1, ρ is shortened, so that T stays invertible whatever A is. This is rare: it
    happens when a batch has a direction that none before had, and a few steps make up for it.

    Where noise is many times Λ, X is 1 along a direction as often as −1, and log Λ walks at random. Nothing brings back
    an eigenvalue that has walked off, and the bounds of single steps go with it. But A is positive but for noise, so
    Λ ⪰ I: no variance should be beyond the prior's, 1. Where the largest, s, is beyond 3², X therefore has
    min(2 − 6/√s, 1) e eᵀ more, e being the unit vector of s in T Tᵀ. So s stays below some 40.

    The mean moves by ρ C⁻¹ ∇_m. C = Λ would be the natural gradient. But in directions in which draws differ and their
    averages do not, Λ is small and the noise of ∇_m is not: under wide orbits such steps diverge. C is instead a
    running mean of the batches' ceilings I + Σ θ φ_g φ_gᵀ, which bound that noise. The inverse of its factor takes the
    same steps as T, the present batch's included: without it, ±180° of Fig. 3 loses its bound for hundreds of steps. If
    nothing is drawn at random, C is Λ's target and the step is the natural one.

    There is one Λ for all outputs, or one for each, as in the model; the same holds for C. ρ is shortened for each Λ by
    itself: given the sites, outputs are independent, and a direction that is new to one class need not slow the others.
    """

    def __init__(self, model: InvariantSVGP, scale: str = "ceiling") -> None:
        """
        :param model: its q is the start, and :meth:`write_back` sets it.
        :param scale: what C is: ``"ceiling"``, or ``"precision"`` for the natural gradient, to compare.
        """
        super().__init__()
        self._model, self._scale = model, checks.one_of("scale", scale, NATURAL_SCALES)
        root = np.array(model.q_sqrt)
        inverse = np.linalg.inv(np.linalg.cholesky(np.linalg.inv(root @ np.swapaxes(root, 1, 2))))
        self.mean = tf.Variable(model.q_mu, trainable=False, name="mean")
        #: [2, Q, M, M], T and the same of C; Q is 1 if all outputs share them, else P
        self.roots = tf.Variable(np.stack([inverse, inverse]), trainable=False, name="roots")

    def covariance(self) -> tf.Tensor:
        """[Q, M, M], Λ⁻¹"""
        return tf.matmul(self.roots[0], self.roots[0], transpose_a=True)

    def prior_kl(self, covariance: tf.Tensor) -> tf.Tensor:
        """
        :param covariance: [Q, M, M], Λ⁻¹.
        :return: KL(q(v) ‖ N(0, I)), summed over outputs.
        """
        M, outputs = self.mean.shape
        log_determinants = -2 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(self.roots[0])), axis=-1)
        spread = tf.reduce_mean(tf.linalg.trace(covariance) - M + log_determinants)
        return 0.5 * (tf.reduce_sum(tf.square(self.mean)) + outputs * spread)

    def start(self, linear: tf.Tensor, ceiling: tf.Tensor) -> None:
        """
        Sets the first q, from the bound of some of the data, scaled to all of it.

        :param linear: [M, P], the bound's linear term.
        :param ceiling: [Q, M, M], its ceiling. Too large a precision is safe to start from.
        """
        precision = tf.eye(ceiling.shape[-1], dtype=ceiling.dtype) + ceiling
        inverse = inverse_triangle(tf.linalg.cholesky(precision))
        self.roots.assign(tf.stack([inverse, inverse]))
        self.mean.assign(times_each(inverse, times_each(inverse, linear), transpose=True))

    def step(self, quadratic: Quadratic, rho: TensorType) -> None:
        """
        :param quadratic: the bound of a batch, scaled to all data.
        :param rho: in (0, 1], the size of the step.
        """
        mean = tf.convert_to_tensor(self.mean)
        gradient = quadratic.linear - times_each(quadratic.precision, mean) - mean
        roots = tf.convert_to_tensor(self.roots)
        rho = tf.convert_to_tensor(rho, roots.dtype)
        eye = tf.eye(roots.shape[-1], dtype=roots.dtype)
        targets = eye + tf.stack([quadratic.precision, quadratic.ceiling])
        X = rho * (tf.matmul(tf.matmul(roots, targets), roots, transpose_b=True) - eye)
        square = tf.matmul(X, X)
        # ‖X⁴‖ by Frobenius' norm, which no eigenvalue's fourth power is beyond
        fourth = tf.norm(tf.matmul(square, square), axis=[2, 3])
        shorter = tf.minimum(tf.reduce_min(fourth**-0.25, axis=0), 1.0)  # [Q]
        X = shorter[:, None, None] * X + tf.stack([_far_beyond_prior(roots[0]), tf.zeros_like(X[1])])
        P = lower_half(X)
        moved = tf.matmul(P, roots)
        roots = roots - moved + 0.5 * tf.matmul(P, moved)
        scale = roots[1 if self._scale == "ceiling" else 0]
        self.mean.assign_add(shorter * rho * times_each(scale, times_each(scale, gradient), transpose=True))
        self.roots.assign(roots)

    def write_back(self) -> None:
        """Sets the model's q to this one."""
        # not by Parameter.assign: its check for NaN would end a compiled training, which should go back instead
        self._model.q_mu.unconstrained_variable.assign(self.mean)
        root = self._model.q_sqrt
        assert root.transform is not None
        root.unconstrained_variable.assign(root.transform.inverse(tf.linalg.cholesky(self.covariance())))


def _far_beyond_prior(root: tf.Tensor) -> tf.Tensor:
    """
    What brings the largest variance back towards the prior's.

    :param root: [Q, M, M] T
    :return: [Q, M, M] min(2 − 6/√s, 1) e eᵀ for the largest eigenvalue s of T Tᵀ and its vector e; zero if s ≤ 9. Both
        are found by products alone. They are exact enough where s is well above the others, which is when they matter.
    """
    e = tf.ones_like(root[:, :, :1])
    for _ in range(POWERS):
        e = tf.math.l2_normalize(tf.matmul(root, tf.matmul(root, e, transpose_a=True)), axis=1)
    largest = tf.norm(tf.matmul(root, e, transpose_a=True), axis=1, keepdims=True)  # √s
    return tf.clip_by_value(2 - 2 * FAR / largest, 0.0, 1.0) * e * tf.linalg.matrix_transpose(e)


def inverse_root(precision: TensorType) -> tf.Tensor:
    """
    :param precision: [..., M, M] Λ
    :return: [..., M, M], lower triangular T with T Tᵀ = Λ⁻¹, without an inverse: Λ = U Uᵀ with U upper triangular, by
        a factorisation from the last row up, and T = U⁻ᵀ.
    """
    upper = tf.reverse(tf.linalg.cholesky(tf.reverse(precision, [-2, -1])), [-2, -1])
    return inverse_triangle(tf.linalg.matrix_transpose(upper))


def best_posterior(quadratic: Quadratic) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param quadratic: the bound of all data.
    :return: [M, P] mean and [1 or P, M, M] root of the covariance of the q that maximises it. NaN if the estimate of
        the precision is so noisy that there is no maximum.
    """
    precision = tf.eye(quadratic.precision.shape[-1], dtype=quadratic.precision.dtype) + quadratic.precision
    root = inverse_root(precision)
    return times_each(root, times_each(root, quadratic.linear, transpose=True)), root
