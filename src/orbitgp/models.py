"""Sparse variational Gaussian processes averaged over orbits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.base import InputData, MeanAndVariance, TensorType
from gpflow.covariances import Kuu
from gpflow.likelihoods import Likelihood
from gpflow.models import GPModel
from gpflow.models.training_mixins import ExternalDataTrainingLossMixin
from gpflow.utilities import triangular

from orbitgp import checks
from orbitgp._ops.blocks import map_blocks
from orbitgp._ops.draw_kernels import DrawKernels
from orbitgp._ops.precision import PRECISIONS, in_precision
from orbitgp._ops.triangular import whitener
from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant
from orbitgp.likelihoods import Batch, Moments, Sites, expected_log_density, quadratic_sites
from orbitgp.orbits.sampling import split
from orbitgp.schemes import (
    Groups,
    PairWeights,
    Scheme,
    all_pairs,
    average,
    square_norm_of_average,
    square_of_average,
    variance_of_average,
)

COVARIANCES = ("shared", "per_output")
ONE_GROUP = all_pairs(1)  # all draws of a prediction are one group, and its average is what is predicted
PREDICTED_TOGETHER = 256  # inputs


@dataclass(frozen=True)
class Quadratic:
    """
    The bound as a function of q alone, q(v) = N(m_p, S) in whitened terms, before the KL divergence:
    constant + Σ_p (linear_pᵀ m_p − ½ m_pᵀ precision m_p − ½ tr precision S). Its best q is known in closed form.
    """

    linear: tf.Tensor  #: [M, P]
    precision: tf.Tensor  #: [M, M]; an unbiased estimate, so in a small batch it need not be positive
    constant: tf.Tensor  #: []
    ceiling: tf.Tensor  #: [M, M]; each group paired with itself alone: positive, never below ``precision``, biased

    def __call__(self, mean: tf.Tensor, covariance: tf.Tensor) -> tf.Tensor:
        """
        :param mean: [M, P]
        :param covariance: [M, M], of every output.
        """
        outputs = tf.cast(tf.shape(mean)[1], mean.dtype)
        fit = tf.reduce_sum(mean * (self.linear - 0.5 * tf.matmul(self.precision, mean)))
        return self.constant + fit - 0.5 * outputs * tf.reduce_sum(self.precision * covariance)


class InvariantSVGP(GPModel, ExternalDataTrainingLossMixin):
    """
    f(x) = E_a g(x_a) with inducing variables u = g(Z) and q(u), trained on an unbiased estimate of the bound.

    The bound needs k_fu and k_ff only through terms that :mod:`orbitgp.schemes` estimates without bias from draws
    of the orbit; k_uu and the KL divergence are exact. Orbit and kernel parameters are learned by gradients through
    the draws. ``elbo`` draws anew at each call, or from a seed that is passed; predictions are deterministic.
    """

    def __init__(
        self,
        kernel: Invariant,
        likelihood: Likelihood,
        inducing_variable: BasePoints,
        *,
        num_latent_gps: int = 1,
        num_data: int | None = None,
        scheme: Scheme | None = None,
        covariance: str = "shared",
        whiten: bool = True,
        precision: str = "float64",
        block: int | None = None,
        compiled: bool = False,
        jitter: float | None = None,
        prediction_samples: int = 64,
        seed: int = 0,
    ) -> None:
        """
        :param kernel: base kernel and orbit.
        :param likelihood: one that :func:`orbitgp.likelihoods.expected_log_density` knows.
        :param inducing_variable: points of g.
        :param num_latent_gps: P, the number of outputs; all have the same kernel.
        :param num_data: N, if ``elbo`` gets minibatches.
        :param scheme: how to draw from the orbit; two Sobol groups of eight by default.
        :param covariance: ``"shared"``: one covariance of q(u) for all outputs, which loses nothing with a Gaussian
            likelihood of one noise variance; ``"per_output"``: one for each.
        :param whiten: whether q is over v with u = L v, L Lᵀ = k_uu.
        :param precision: ``"float64"``, or ``"mixed"``: the orbit and the base kernel between draws and Z in float32,
            k_uu, its factor and all solves in float64. It turns TensorFloat-32 off in this process.
        :param block: how many inputs are worked on at a time, None for all: the batch's draws and kernel stay in memory
            for the gradient, but not what is computed on the way, for some more time
            (benchmarks/step.md).
        :param compiled: whether XLA compiles a training step from the draws to the terms of the bound (not the
            factorisations, which it makes slower): fewer and larger operations, for a longer start. Inputs are data
            then, with no derivative by them. Not together with ``block``.
        :param jitter: added to the diagonal of k_uu; GPflow's default if None. It is a variable, ``model.jitter``.
        :param prediction_samples: draws for each input in predictions, unless these say otherwise.
        :param seed: decides all draws.
        """
        checks.instance("kernel", kernel, Invariant)
        checks.instance("likelihood", likelihood, Likelihood)
        checks.instance("inducing_variable", inducing_variable, BasePoints)
        outputs = checks.integer("num_latent_gps", num_latent_gps, least=1)
        super().__init__(kernel, likelihood, None, outputs)
        self.inducing_variable = inducing_variable
        self.num_data = None if num_data is None else checks.integer("num_data", num_data, least=1)
        self.scheme: Scheme = checks.instance("scheme", Groups() if scheme is None else scheme, Scheme)
        self.scheme.check(kernel.orbit)
        checks.one_of("covariance", covariance, COVARIANCES)
        checks.one_of("precision", precision, PRECISIONS)
        self.whiten = whiten
        self.compute_dtype = tf.float32 if precision == "mixed" else gpflow.default_float()
        if precision == "mixed":  # ten bits of mantissa, which GPUs else take for float32 products, are too few
            tf.config.experimental.enable_tensor_float_32_execution(False)
        in_precision(kernel.base, self.compute_dtype)  # refuses now what it would refuse in the first step
        self.block = None if block is None else checks.integer("block", block, least=1)
        if compiled and block is not None:
            raise ValueError(
                "compiled=True works on the whole batch, since XLA cannot leave a loop's results; drop block"
            )
        self._training_averages, self._training_terms = self._orbit_averages, self._quadratic_terms
        if compiled:
            self._training_averages = _compiled(self._orbit_averages)
            self._training_terms = _compiled(self._quadratic_terms)
        self.prediction_samples = checks.integer("prediction_samples", prediction_samples, least=1)
        self.seed = checks.integer("seed", seed, least=0)

        jitter = gpflow.default_jitter() if jitter is None else checks.number("jitter", jitter, least=0.0)
        self.jitter = tf.Variable(jitter, trainable=False, dtype=gpflow.default_float(), name="jitter")
        self._draws = tf.Variable(0, trainable=False, dtype=tf.int64, name="draws")
        M = inducing_variable.Z.shape[0]
        self.q_mu = Parameter(np.zeros((M, outputs)))
        copies = 1 if covariance == "shared" else outputs
        self.q_sqrt = Parameter(np.tile(np.eye(M), (copies, 1, 1)), transform=triangular())

    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        """The bound, with new draws at each call."""
        return self.elbo(data)

    @check_shapes("data[0]: [N, D]", "data[1]: [N, P]", "return: []")
    def elbo(self, data: Any, seed: TensorType | None = None) -> tf.Tensor:
        """
        An unbiased estimate of the evidence lower bound; exact under :class:`orbitgp.schemes.FullOrbit`.

        :param data: (X, Y), (X, Y, index) with the rows' numbers [N] in the whole data, or (X, Y, index, weight) with
            how many times each row counts [N].
        :param seed: [2] integers that decide the draws; None for new ones at each call.
        """
        batch = self._batch(data)
        seed = self._next_seed() if seed is None else tf.convert_to_tensor(seed)
        L = tf.linalg.cholesky(self._Kuu())
        moments = self._moments(batch.X, L, split(seed, 0))
        expectations = expected_log_density(
            self.likelihood, batch, moments, lambda: self._moments(batch.X, L, split(seed, 1))
        )
        return self._scale(batch) * tf.reduce_sum(expectations) - self._prior_kl(L)

    @check_shapes("data[0]: [N, D]", "data[1]: [N, P]")
    def quadratic(self, data: Any, seed: TensorType) -> Quadratic:
        """
        What :meth:`elbo` says of these data with this seed, for every q at once.

        :param data: and
        :param seed: as in :meth:`elbo`.
        """
        if not self.whiten or self.q_sqrt.shape[0] != 1:
            raise ValueError("the bound is quadratic in one q for all outputs: it needs whiten=True and one covariance")
        batch, seed, Kuu = self._batch(data), tf.convert_to_tensor(seed), self._Kuu()

        def second_moments() -> tf.Tensor:
            return self._moments(batch.X, tf.linalg.cholesky(Kuu), split(seed, 1)).second

        sites = quadratic_sites(self.likelihood, batch, second_moments)
        if sites.precision.shape[-1] != 1:
            raise ValueError(
                f"{type(self.likelihood).__name__} with {self.num_latent_gps} outputs has a precision for each of "
                "them, and no single covariance of q is the best for all"
            )
        found = self._training_terms(batch.X, self.scheme, sites, whitener(Kuu), split(seed, 0))
        scale = self._scale(batch)
        return Quadratic(*(scale * term for term in found))

    @check_shapes("return: [M, P]")
    def mean_weights(self) -> tf.Tensor:
        """What k_fu is multiplied with for the posterior mean of f."""
        L = tf.linalg.cholesky(self._Kuu())
        whitened = self.q_mu if self.whiten else tf.linalg.triangular_solve(L, self.q_mu)
        return tf.linalg.triangular_solve(L, whitened, adjoint=True)

    @check_shapes("X: [N, D]", "weights: [M, P]", "return: [N, P]")
    def mean_estimates(self, X: TensorType, weights: tf.Tensor, seed: TensorType) -> tf.Tensor:
        """
        Unbiased estimates of the posterior mean of f, by as many draws as the scheme of training has.

        :param X: [N, D]
        :param weights: :meth:`mean_weights`, which are the same for all X.
        :param seed: [2] integers that decide the draws.
        """
        _, Kfu = self._training_averages(tf.cast(X, self.compute_dtype), self.scheme, tf.convert_to_tensor(seed))
        return tf.matmul(average(Kfu), weights)

    def prior_kl(self) -> tf.Tensor:
        """KL(q(u) ‖ p(u)), summed over outputs."""
        return self._prior_kl(tf.linalg.cholesky(self._Kuu()))

    @inherit_check_shapes
    def predict_f(
        self,
        Xnew: InputData,
        full_cov: bool = False,
        full_output_cov: bool = False,
        *,
        samples: int | None = None,
        seed: TensorType | None = None,
    ) -> MeanAndVariance:
        """
        The posterior of the average of g over ``samples`` draws from each orbit. Its mean is unbiased for that of f;
        its variance is a variance, never negative, and above that of f by a term that falls with ``samples``. With a
        finite orbit under a finite scheme, both are exact.

        :param Xnew: [N, D]
        :param samples: draws for each input; the model's ``prediction_samples`` if None.
        :param seed: [2] integers that decide the draws; fixed if None, so that predictions do not change by themselves.
        """
        samples, seed = self._prediction_settings(samples, seed)
        Xnew = tf.cast(Xnew, self.compute_dtype)
        L = tf.linalg.cholesky(self._Kuu())
        predict = self._predict_jointly if full_cov else self._predict_marginals
        mean, variance = predict(Xnew, L, samples, seed)
        return mean, _between_outputs(variance, full_cov) if full_output_cov else variance

    def predict_y(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False, **sampling: Any
    ) -> MeanAndVariance:
        """
        Mean and variance of new targets.

        :param sampling: ``samples`` and ``seed`` as in :meth:`predict_f`.
        """
        if full_cov or full_output_cov:
            raise ValueError("predict_y gives a mean and a variance for each target; it has no full covariance")
        mean, variance = self.predict_f(Xnew, **sampling)
        return self.likelihood.predict_mean_and_var(Xnew, mean, variance)

    def predict_log_density(
        self, data: Any, full_cov: bool = False, full_output_cov: bool = False, **sampling: Any
    ) -> tf.Tensor:
        """
        :param data: (X, Y), new inputs and targets.
        :param sampling: ``samples`` and ``seed`` as in :meth:`predict_f`.
        :return: [N], log p(y | data so far), summed over outputs.
        """
        if full_cov or full_output_cov:
            raise ValueError("predict_log_density treats each target by itself; it has no full covariance")
        X, Y = data
        mean, variance = self.predict_f(X, **sampling)
        return self.likelihood.predict_log_density(X, mean, variance, Y)

    @check_shapes("X: [N, D]", "X2: [N, D]", "return[0]: [N, P]", "return[1]: [N, P]")
    def difference(
        self, X: TensorType, X2: TensorType, *, samples: int | None = None, seed: TensorType | None = None
    ) -> MeanAndVariance:
        """
        Posterior mean and variance of f(x) − f(x'), row by row: how far the model tells x' from x.

        :param X: [N, D]
        :param X2: [N, D]
        :param samples: and
        :param seed: as in :meth:`predict_f`.
        """
        samples, seed = self._prediction_settings(samples, seed)
        L, kernels = tf.linalg.cholesky(self._Kuu()), self._draw_kernels()
        width = X.shape[1]

        def predict(number: tf.Tensor, rows: tf.Tensor) -> MeanAndVariance:
            sides = [
                self.scheme.draw_for_prediction(self.kernel.orbit, side, samples, split(split(seed, number), i))
                for i, side in enumerate((rows[:, :width], rows[:, width:]))
            ]
            prior, Kfu = _averaged(kernels, tf.stack(sides, axis=1), PairWeights(same=1.0, different=-1.0))
            return self._condition(L, prior, Kfu[:, :1] - Kfu[:, 1:])

        pairs = tf.cast(tf.concat([X, X2], axis=1), self.compute_dtype)
        mean, variance = map_blocks(predict, pairs, PREDICTED_TOGETHER, (L.dtype, L.dtype))
        return mean, variance

    # -- the parts ---------------------------------------------------------------------------------------------------

    def _batch(self, data: Any) -> Batch:
        X, Y, *rest = data
        Y = tf.cast(Y, gpflow.default_float())
        if Y.shape[-1] is not None and Y.shape[-1] != self.num_latent_gps:
            raise ValueError(f"Y has {Y.shape[-1]} columns, the model has {self.num_latent_gps} outputs")
        index, weight = (*rest, None, None)[:2]
        index = None if index is None else tf.convert_to_tensor(index)
        weight = None if weight is None else tf.cast(weight, Y.dtype)
        if weight is not None and weight.shape.rank != 1:
            raise ValueError(f"weights must be [N], one number for each row, got the shape {weight.shape}")
        return Batch(tf.cast(X, self.compute_dtype), Y, index, weight)

    def _scale(self, batch: Batch) -> tf.Tensor:
        """How many data stand behind each of the batch."""
        size = tf.cast(tf.shape(batch.Y)[0], batch.Y.dtype)
        return tf.ones_like(size) if self.num_data is None else self.num_data / size

    def _prediction_settings(self, samples: int | None, seed: TensorType | None) -> tuple[int, tf.Tensor]:
        samples = self.prediction_samples if samples is None else checks.integer("samples", samples, least=1)
        return samples, tf.constant([self.seed, -1]) if seed is None else tf.convert_to_tensor(seed)

    def _next_seed(self) -> tf.Tensor:
        return tf.stack([tf.constant(self.seed, tf.int64), self._draws.assign_add(1)])

    def _Kuu(self) -> tf.Tensor:
        return Kuu(self.inducing_variable, self.kernel, jitter=self.jitter)

    def _moments(self, X: tf.Tensor, L: tf.Tensor, seed: tf.Tensor) -> Moments:
        """
        Estimates for each input, by the weights of the scheme.

        :param X: [N, D]
        :param L: [M, M]
        """
        weights = self.scheme.weights(self.kernel.orbit)
        k_ff, Kfu = self._training_averages(X, self.scheme, seed)
        N, groups = tf.shape(Kfu)[0], Kfu.shape[1]
        columns = self._project(L, _as_columns(Kfu))
        means = tf.reshape(tf.matmul(columns, self.q_mu, transpose_a=True), [N, groups, self.num_latent_gps])
        variance = k_ff[:, None] + self._explained_variance(L, columns, groups, weights)
        return Moments(average(means), square_of_average(means, weights), variance)

    def _orbit_averages(self, X: tf.Tensor, scheme: Scheme, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """
        :param scheme: an argument, so that what was compiled for one scheme is not used for another.
        :return: [N] estimates of k_ff, and [N, G, M] averages of k_fu over each group, both in float64.
        """
        weights, kernels = scheme.weights(self.kernel.orbit), self._draw_kernels()

        def evaluate(number: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return _averaged(kernels, scheme.draw(self.kernel.orbit, rows, split(seed, number)), weights)

        if self.block is None:
            return evaluate(tf.constant(0), X)
        k_ff, Kfu = map_blocks(evaluate, X, self.block, (gpflow.default_float(),) * 2)
        return k_ff, tf.ensure_shape(Kfu, [None, scheme.group_count, None])

    def _quadratic_terms(
        self, X: tf.Tensor, scheme: Scheme, sites: Sites, W: tf.Tensor, seed: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """
        :param X: [N, D]
        :param sites: of each input, with one precision for all outputs.
        :param W: [M, M], what whitens u.
        :return: the fields of :class:`Quadratic`, of these inputs alone.
        """
        weights = scheme.weights(self.kernel.orbit)
        k_ff, Kfu = self._orbit_averages(X, scheme, seed)
        groups, M = Kfu.shape[1], Kfu.shape[2]
        phi = tf.reshape(tf.matmul(W, _as_columns(Kfu)), [M, -1, groups])  # [M, N, G]
        total = tf.reduce_sum(phi, axis=2)
        # Σ_gg' w_gg' φ_g φ_g'ᵀ as one product: each φ_g with the sum of its partners
        partners = weights.different * total[:, :, None] + (weights.same - weights.different) * phi
        weighted = tf.reshape(phi * sites.precision[None], [M, -1])
        precision = tf.matmul(weighted, tf.reshape(partners, [M, -1]), transpose_b=True)
        ceiling = tf.matmul(weighted, tf.reshape(phi, [M, -1]), transpose_b=True) / groups
        linear = tf.matmul(total / groups, sites.linear)
        unexplained = tf.reduce_sum(sites.precision[:, 0] * k_ff) - tf.linalg.trace(precision)
        constant = tf.reduce_sum(sites.constant) - 0.5 * self.num_latent_gps * unexplained
        return linear, 0.5 * (precision + tf.transpose(precision)), constant, ceiling

    def _draw_kernels(self) -> DrawKernels:
        """The base kernel at draws and at Z, in the precision of computation."""
        base = in_precision(self.kernel.base, self.compute_dtype)
        return DrawKernels(base, tf.cast(self.inducing_variable.Z, self.compute_dtype))

    def _project(self, L: tf.Tensor, Kuf: tf.Tensor) -> tf.Tensor:
        """[M, K] → [M, K], φ = L⁻¹ k if whitened, else k_uu⁻¹ k: what multiplies q's mean."""
        phi = tf.linalg.triangular_solve(L, Kuf)
        return phi if self.whiten else tf.linalg.triangular_solve(L, phi, adjoint=True)

    def _explained_variance(self, L: tf.Tensor, columns: tf.Tensor, groups: int, weights: PairWeights) -> tf.Tensor:
        """‖Tᵀφ̄‖² − ‖φ̄‖², [N, 1] or [N, P]"""

        def square_norm(vectors: tf.Tensor) -> tf.Tensor:  # [M, N G] → [N]
            by_group = tf.reshape(tf.transpose(vectors), [-1, groups, vectors.shape[0]])
            return square_norm_of_average(by_group, weights)

        phi = columns if self.whiten else tf.matmul(L, columns, transpose_a=True)
        q_sqrt = tf.unstack(tf.convert_to_tensor(self.q_sqrt), axis=0)
        posterior = [square_norm(tf.matmul(T, columns, transpose_a=True)) for T in q_sqrt]
        return tf.stack(posterior, axis=-1) - square_norm(phi)[:, None]

    def _prior_kl(self, L: tf.Tensor) -> tf.Tensor:
        """½ Σ_p (m_pᵀ m_p + tr T_p T_pᵀ − M − log |T_p T_pᵀ|) in whitened terms."""
        mean, root = self.q_mu, tf.convert_to_tensor(self.q_sqrt)
        log_determinant = tf.reduce_sum(tf.math.log(tf.square(tf.linalg.diag_part(root))))
        if not self.whiten:
            copies = root.shape[0]
            mean = tf.linalg.triangular_solve(L, mean)
            root = tf.linalg.triangular_solve(tf.broadcast_to(L, tf.shape(root)), root)
            log_determinant -= copies * tf.reduce_sum(tf.math.log(tf.square(tf.linalg.diag_part(L))))
        shares = self.num_latent_gps / root.shape[0]  # outputs for each covariance
        M = tf.cast(tf.shape(L)[0], L.dtype)
        constant = self.num_latent_gps * M
        covariance = shares * (tf.reduce_sum(tf.square(root)) - log_determinant) - constant
        return 0.5 * (tf.reduce_sum(tf.square(mean)) + covariance)

    def _predict_marginals(self, X: tf.Tensor, L: tf.Tensor, samples: int, seed: tf.Tensor) -> MeanAndVariance:
        """Mean and variance, each [N, P], some hundred inputs at a time: all draws of a test set would not fit."""

        kernels = self._draw_kernels()

        def predict(number: tf.Tensor, rows: tf.Tensor) -> MeanAndVariance:
            drawn = self.scheme.draw_for_prediction(self.kernel.orbit, rows, samples, split(seed, number))
            return self._condition(L, *_averaged(kernels, drawn[:, None], ONE_GROUP))

        mean, variance = map_blocks(predict, X, PREDICTED_TOGETHER, (L.dtype, L.dtype))
        return mean, variance

    def _condition(self, L: tf.Tensor, prior: tf.Tensor, Kfu: tf.Tensor) -> MeanAndVariance:
        """
        :param prior: [N] variances of some linear functions of g.
        :param Kfu: [N, 1, M] their covariances with u.
        :return: their means and variances under q, each [N, P].
        """
        columns = self._project(L, _as_columns(Kfu))
        variance = prior[:, None] + self._explained_variance(L, columns, 1, ONE_GROUP)
        mean = tf.matmul(columns, self.q_mu, transpose_a=True)
        return mean, tf.broadcast_to(tf.maximum(variance, 0.0), tf.shape(mean))  # rounding can go below zero

    def _predict_jointly(self, X: tf.Tensor, L: tf.Tensor, samples: int, seed: tf.Tensor) -> MeanAndVariance:
        """Mean [N, P] and covariance [P, N, N] between inputs."""
        drawn = self.scheme.draw_for_prediction(self.kernel.orbit, X, samples, split(seed, 0))
        base = in_precision(self.kernel.base, self.compute_dtype)
        Kff = tf.cast(tf.reduce_mean(base(drawn, drawn), axis=[1, 3]), L.dtype)
        columns = self._project(L, _as_columns(_averaged(self._draw_kernels(), drawn[:, None], ONE_GROUP)[1]))
        phi = columns if self.whiten else tf.matmul(L, columns, transpose_a=True)
        spread = tf.einsum("pmk,mn->pkn", self.q_sqrt, columns)
        covariance = Kff - tf.matmul(phi, phi, transpose_a=True) + tf.matmul(spread, spread, transpose_a=True)
        shape = tf.concat([[self.num_latent_gps], tf.shape(Kff)], axis=0)
        return tf.matmul(columns, self.q_mu, transpose_a=True), tf.broadcast_to(covariance, shape)


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """
    By XLA, with the first argument as data: a compiled function has the derivatives by all of its arguments, wanted or
    not, and that by images would add up every pixel of every draw.
    """

    @tf.function(jit_compile=True, autograph=False)
    def compiled(X: tf.Tensor, *others: Any) -> Any:
        return function(tf.stop_gradient(X), *others)

    return lambda X, *others: compiled(tf.stop_gradient(X), *others)  # no derivative, where else it would be zero


def _averaged(kernels: DrawKernels, drawn: tf.Tensor, weights: PairWeights) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param drawn: [N, G, n, D]
    :return: [N] k_ff and [N, G, M] k_fu, averaged by groups, in float64.
    """
    Kaa, Kfu = kernels(drawn)
    k_ff = variance_of_average(Kaa, drawn.shape[1], weights)
    Kfu = tf.ensure_shape(Kfu, [None, drawn.shape[1], None])
    return tf.cast(k_ff, gpflow.default_float()), tf.cast(Kfu, gpflow.default_float())


def _as_columns(Kfu: tf.Tensor) -> tf.Tensor:
    """[N, G, M] → [M, N G]"""
    return tf.transpose(tf.reshape(Kfu, [-1, tf.shape(Kfu)[2]]))


def _between_outputs(variance: tf.Tensor, full_cov: bool) -> tf.Tensor:
    """Outputs are independent: [N, P] → [N, P, P], or [P, N, N] → [N, P, N, P]."""
    if not full_cov:
        return tf.linalg.diag(variance)
    return tf.transpose(tf.linalg.diag(tf.transpose(variance, [1, 2, 0])), [0, 2, 1, 3])
