"""Sparse variational Gaussian processes averaged over orbits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes, register_get_shape
from gpflow import Parameter
from gpflow.base import InputData, MeanAndVariance, TensorType
from gpflow.covariances import Kuu
from gpflow.functions import MeanFunction
from gpflow.likelihoods import Likelihood
from gpflow.models import GPModel
from gpflow.models.training_mixins import ExternalDataTrainingLossMixin
from gpflow.utilities import triangular

from orbitgp import checks
from orbitgp._ops.blocks import map_blocks
from orbitgp._ops.draw_kernels import SumKernels
from orbitgp._ops.outputs import times_each
from orbitgp._ops.precision import PRECISIONS
from orbitgp._ops.products import steady_product, three_passes, worthwhile
from orbitgp._ops.triangular import whitener
from orbitgp.inducing import BasePoints, Points, draw_kernels
from orbitgp.kernels import Invariant
from orbitgp.likelihoods import Batch, Moments, Sites, expected_log_density, quadratic_sites
from orbitgp.orbits.sampling import split
from orbitgp.posteriors import InvariantPosterior
from orbitgp.schemes import (
    Groups,
    PairWeights,
    Scheme,
    average,
    outer_of_average,
    square_norm_of_average,
    square_of_average,
    variance_of_average,
)

COVARIANCES = ("shared", "per_output")


@dataclass(frozen=True)
class Quadratic:
    """
    The bound before the KL divergence, as a function of q alone. For q(v_p) = N(m_p, S_p) in whitened terms it is
    constant + Σ_p (linear_pᵀ m_p − ½ m_pᵀ precision_p m_p − ½ tr precision_p S_p). The best q has a closed form.

    The leading axis of matrices is 1 if all outputs share them, P if each has its own.
    """

    linear: tf.Tensor  #: [M, P]
    precision: tf.Tensor  #: [1 or P, M, M]; an unbiased estimate, so in a small batch it need not be positive
    constant: tf.Tensor  #: []
    ceiling: tf.Tensor  #: [1 or P, M, M]; a biased estimate of ``precision`` that is positive and never below it

    def __call__(self, mean: tf.Tensor, covariance: tf.Tensor) -> tf.Tensor:
        """
        :param mean: [M, P] m
        :param covariance: [1 or P, M, M] S
        """
        traces = tf.reduce_sum(self.precision * covariance, axis=[1, 2])  # [1 or P]
        fit = tf.reduce_sum(mean * (self.linear - 0.5 * times_each(self.precision, mean)))
        return self.constant + fit - 0.5 * mean.shape[1] * tf.reduce_mean(traces)


class SharedRoot(Parameter):
    """The parameter q_sqrt [1, M, M] of a model whose outputs, two or more, share one covariance of q."""


@register_get_shape(SharedRoot)
def _refuse_shared_root(shaped: SharedRoot, context: Any) -> Any:
    """GPflow's own functions of q_sqrt, such as ``NaturalGradient``, need a covariance for each output."""
    raise ValueError(
        f"this q_sqrt, {list(shaped.shape)}, is one covariance for all outputs, and GPflow needs one for each; make "
        'the model with covariance="per_output", or train it with orbitgp.fit, whose natural steps need only one'
    )


class InvariantSVGP(GPModel, ExternalDataTrainingLossMixin):
    """
    f(x) = m(x) + E_a g(x_a) with inducing variables u = g(Z) and q(u), trained on an unbiased estimate of the bound.

    The bound needs k_fu and k_ff only through terms that :mod:`orbitgp.schemes` estimates without bias from draws
    of the orbit; k_uu and the KL divergence are exact. Orbit and kernel parameters are learned by gradients through
    the draws. ``elbo`` has new draws at each call, unless a seed is passed; predictions are deterministic.
    """

    def __init__(
        self,
        kernel: Invariant,
        likelihood: Likelihood,
        inducing_variable: Points | TensorType,
        *,
        mean_function: MeanFunction | None = None,
        num_latent_gps: int = 1,
        q_mu: TensorType | None = None,
        q_sqrt: TensorType | None = None,
        num_data: int | None = None,
        scheme: Scheme | None = None,
        covariance: str | None = None,
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
        :param inducing_variable: inducing points of g, or an array Z [M, D] of them;
            :class:`orbitgp.inducing.SumPoints` for a sum of processes.
        :param mean_function: m(x), which should be invariant itself; zero if None.
        :param num_latent_gps: P, the number of outputs; all have the same kernel.
        :param q_mu: [M, P] initial mean of q; zero if None.
        :param q_sqrt: [1, M, M] or [P, M, M] initial Cholesky factor of its covariance; the identity if None.
        :param num_data: N, the size of the whole data, if ``elbo`` gets minibatches.
        :param scheme: how to draw from the orbit; two Sobol groups of eight by default.
        :param covariance: ``"shared"``: one covariance of q(u) for all outputs, which loses nothing with a Gaussian
            likelihood of one noise variance; ``"per_output"``: one for each, which a likelihood of several classes
            needs for natural steps. If None, as in ``q_sqrt``, or else shared.
        :param whiten: whether q is over v with u = L v, L Lᵀ = k_uu.
        :param precision: ``"float64"``, or ``"mixed"``: the orbit and the base kernel between draws and Z in float32,
            k_uu, its factor and all solves in float64. It turns TensorFloat-32 off in this process.
        :param block: number of inputs processed at a time; None for the whole batch. A block saves the memory of
            intermediate results, but not of draws and kernel values, which the gradient needs (benchmarks/step.md).
        :param compiled: whether XLA compiles a training step from the draws to the terms of the bound, without the
            factorisations, which it makes slower. There are fewer and larger operations then, a longer start, and no
            gradient with respect to inputs. Excludes ``block``.
        :param jitter: added to the diagonal of k_uu; GPflow's default if None. It is a variable, ``model.jitter``.
        :param prediction_samples: default number of draws for each input in predictions.
        :param seed: seed of all draws.
        """
        checks.instance("kernel", kernel, Invariant)
        checks.instance("likelihood", likelihood, Likelihood)
        outputs = checks.integer("num_latent_gps", num_latent_gps, least=1)
        super().__init__(kernel, likelihood, mean_function, outputs)
        is_points = isinstance(inducing_variable, Points)
        self.inducing_variable: Points = inducing_variable if is_points else BasePoints(inducing_variable)
        self.num_data = None if num_data is None else checks.integer("num_data", num_data, least=1)
        self.scheme: Scheme = checks.instance("scheme", Groups() if scheme is None else scheme, Scheme)
        self.scheme.check(kernel.orbit)
        checks.one_of("precision", precision, PRECISIONS)
        self.whiten = whiten
        self.compute_dtype = tf.float32 if precision == "mixed" else gpflow.default_float()
        if precision == "mixed":  # ten bits of mantissa, which GPUs else take for float32 products, are too few
            tf.config.experimental.enable_tensor_float_32_execution(False)
        self.block = None if block is None else checks.integer("block", block, least=1)
        if compiled and block is not None:
            raise ValueError(
                "compiled=True needs the whole batch at once, since XLA cannot return a loop's results; leave out block"
            )
        self.compiled = compiled
        self._draw_kernels()  # raises errors now instead of in the first step
        self.prediction_samples = checks.integer("prediction_samples", prediction_samples, least=1)
        self.seed = checks.integer("seed", seed, least=0)

        jitter = gpflow.default_jitter() if jitter is None else checks.number("jitter", jitter, least=0.0)
        self.jitter = tf.Variable(jitter, trainable=False, dtype=gpflow.default_float(), name="jitter")
        self._draws = tf.Variable(0, trainable=False, dtype=tf.int64, name="draws")
        self._init_q(q_mu, q_sqrt, covariance)

    def _init_q(self, q_mu: TensorType | None, q_sqrt: TensorType | None, covariance: str | None) -> None:
        M, P = sum(part.Z.shape[0] for part in self.inducing_variable.parts), self.num_latent_gps
        if covariance is None:
            covariance = "shared" if q_sqrt is None or np.shape(q_sqrt)[0] == 1 else "per_output"
        copies = 1 if checks.one_of("covariance", covariance, COVARIANCES) == "shared" else P
        q_mu = np.zeros((M, P)) if q_mu is None else np.asarray(q_mu)
        q_sqrt = np.tile(np.eye(M), (copies, 1, 1)) if q_sqrt is None else np.asarray(q_sqrt)
        for name, value, shape in (("q_mu", q_mu, (M, P)), ("q_sqrt", q_sqrt, (copies, M, M))):
            if value.shape != shape:
                raise ValueError(f"{name} must have the shape {shape} (covariance={covariance!r}), got {value.shape}")
        self.q_mu = Parameter(q_mu)
        self.q_sqrt = (SharedRoot if copies < P else Parameter)(q_sqrt, transform=triangular())

    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        """The bound, with new draws at each call."""
        return self.elbo(data)

    @check_shapes("data[0]: [N, D]", "data[1]: [N, P]", "return: []")
    def elbo(self, data: Any, seed: TensorType | None = None) -> tf.Tensor:
        """
        An unbiased estimate of the evidence lower bound; exact under :class:`orbitgp.schemes.FullOrbit`.

        :param data: (X, Y), (X, Y, index) or (X, Y, index, weight): ``index`` [N] has the rows' numbers in the whole
            data, ``weight`` [N] how many times each row counts.
        :param seed: [2] integers that decide the draws; None for new ones at each call.
        """
        batch = self._batch(data)
        seed = self._next_seed() if seed is None else tf.convert_to_tensor(seed)
        W = whitener(self.Kuu())
        moments = self._moments(batch.X, W, split(seed, 0))
        expectations = expected_log_density(
            self.likelihood, batch, moments, lambda: self._moments(batch.X, W, split(seed, 1))
        )
        return self._scale(batch) * tf.reduce_sum(expectations) - self._prior_kl(W)

    @check_shapes("data[0]: [N, D]", "data[1]: [N, P]")
    def quadratic(
        self, data: Any, seed: TensorType, *, W: tf.Tensor | None = None, within_xla: bool = False
    ) -> Quadratic:
        """
        The estimate of :meth:`elbo` for this data and seed, before the KL divergence, as a function of q.

        :param data: as in :meth:`elbo`.
        :param seed: [2] integers that decide the draws.
        :param W: [M, M] the inverse of k_uu's Cholesky factor; computed if None.
        :param within_xla: whether XLA compiles the caller, so that nothing is compiled here.
        """
        if not self.whiten:
            raise ValueError("the bound as a function of q is in whitened terms: make the model with whiten=True")
        batch, seed = self._batch(data), tf.convert_to_tensor(seed)
        W = whitener(self.Kuu()) if W is None else W
        sites = quadratic_sites(self.likelihood, batch, lambda: self._moments(batch.X, W, split(seed, 1), within_xla))
        if sites.precision.shape[-1] > self.q_sqrt.shape[0]:
            raise ValueError(
                f"{type(self.likelihood).__name__} with {self.num_latent_gps} outputs has a site precision for each "
                "of them, so no single covariance of q is the best for all; make the model with "
                'covariance="per_output"'
            )
        sites = sites.of_remainder(self._mean_at(batch.X))
        terms = self._compiled_terms if self.compiled and not within_xla else self._quadratic_terms
        found = terms(tf.stop_gradient(batch.X) if self.compiled else batch.X, self.scheme, sites, W, split(seed, 0))
        scale = self._scale(batch)
        return Quadratic(*(scale * term for term in found))

    @check_shapes("return: [M, P]")
    def mean_weights(self) -> tf.Tensor:
        """k_uu⁻¹ E u: the posterior mean of f is k_fu times this, plus m(x)."""
        W = whitener(self.Kuu())
        return tf.matmul(W, self.q_mu if self.whiten else tf.matmul(W, self.q_mu), transpose_a=True)

    @check_shapes("X: [N, D]", "weights: [M, P]", "return: [N, P]")
    def mean_estimates(self, X: TensorType, weights: tf.Tensor, seed: TensorType) -> tf.Tensor:
        """
        Unbiased estimates of the posterior mean of f, by the scheme of training.

        :param X: [N, D]
        :param weights: :meth:`mean_weights`, computed once for all X.
        :param seed: [2] integers that decide the draws.
        """
        X = tf.cast(X, self.compute_dtype)
        _, Kfu = self._training_averages(X, self.scheme, tf.convert_to_tensor(seed))
        return tf.matmul(average(Kfu), weights) + self._mean_at(X)

    def prior_kl(self) -> tf.Tensor:
        """KL(q(u) ‖ p(u)), summed over outputs."""
        return self._prior_kl(whitener(self.Kuu()))

    def posterior(self) -> InvariantPosterior:
        """The posterior of the model as it is now, with k_uu factorised once for many predictions."""
        return InvariantPosterior(
            self.kernel,
            self.inducing_variable,
            Kuu(self.inducing_variable, self.kernel, jitter=self.jitter, product=steady_product(self.jitter.dtype)),
            self.q_mu,
            self.q_sqrt,
            whiten=self.whiten,
            mean_function=self.mean_function,
            scheme=self.scheme,
            samples=self.prediction_samples,
            seed=self.seed,
            dtype=self.compute_dtype,
        )

    @inherit_check_shapes
    def predict_f(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False, **sampling: Any
    ) -> MeanAndVariance:
        """
        Mean and variance of f, averaged over the same draws at every input: see :class:`InvariantPosterior`.

        :param Xnew: [N, D]
        :param sampling: ``samples`` and ``seed``, as in :meth:`InvariantPosterior.draw`.
        """
        return self.posterior().predict_f(Xnew, full_cov, full_output_cov, **sampling)

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
        return self.likelihood.predict_mean_and_var(tf.cast(Xnew, mean.dtype), mean, variance)

    def predict_log_density(
        self, data: Any, full_cov: bool = False, full_output_cov: bool = False, **sampling: Any
    ) -> tf.Tensor:
        """
        :param data: (X, Y), new inputs and targets.
        :param sampling: ``samples`` and ``seed`` as in :meth:`predict_f`.
        :return: [N], the log predictive density of each target, summed over outputs.
        """
        if full_cov or full_output_cov:
            raise ValueError("predict_log_density treats each target by itself; it has no full covariance")
        X, Y = data
        mean, variance = self.predict_f(X, **sampling)
        return self.likelihood.predict_log_density(tf.cast(X, mean.dtype), mean, variance, tf.cast(Y, mean.dtype))

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
        """N over the batch size: the factor from a sum over the batch to one over the whole data."""
        size = tf.cast(tf.shape(batch.Y)[0], batch.Y.dtype)
        return tf.ones_like(size) if self.num_data is None else self.num_data / size

    def _next_seed(self) -> tf.Tensor:
        return tf.stack([tf.constant(self.seed, tf.int64), self._draws.assign_add(1)])

    def Kuu(self) -> tf.Tensor:
        """[M, M], the prior covariance of u, with the model's jitter."""
        return Kuu(self.inducing_variable, self.kernel, jitter=self.jitter)

    def _moments(self, X: tf.Tensor, W: tf.Tensor, seed: tf.Tensor, within_xla: bool = False) -> Moments:
        """
        Unbiased estimates of the moments of q(f) at each input.

        :param X: [N, D]
        :param W: [M, M], L⁻¹ with k_uu = L Lᵀ.
        """
        weights = self.scheme.weights(self.kernel.orbit)
        k_ff, Kfu = self._training_averages(X, self.scheme, seed, within_xla)
        N, groups = tf.shape(Kfu)[0], Kfu.shape[1]
        phi = tf.matmul(W, _as_columns(Kfu))
        columns = phi if self.whiten else tf.matmul(W, phi, transpose_a=True)  # what multiplies q's mean and root
        means = tf.reshape(tf.matmul(columns, self.q_mu, transpose_a=True), [N, groups, self.num_latent_gps])
        variance = k_ff[:, None] + self._explained_variance(phi, columns, groups, weights)
        return Moments(average(means), square_of_average(means, weights), variance).shifted(self._mean_at(X))

    def _mean_at(self, X: tf.Tensor) -> tf.Tensor:
        """m(x), [N, P], or [N, 1] where all outputs have the same."""
        return tf.convert_to_tensor(self.mean_function(tf.cast(X, gpflow.default_float())))

    def _training_averages(
        self, X: tf.Tensor, scheme: Scheme, seed: tf.Tensor, within_xla: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor]:
        averages = self._compiled_averages if self.compiled and not within_xla else self._orbit_averages
        return averages(tf.stop_gradient(X) if self.compiled else X, scheme, seed)

    # Methods, so that a copy of the model has its own compiled functions. Gradients stop at the inputs: a compiled
    # function computes those of all its arguments, wanted or not, and that of images would sum every pixel of every
    # draw.

    @tf.function(jit_compile=True, autograph=False)
    def _compiled_averages(self, X: tf.Tensor, scheme: Scheme, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return self._orbit_averages(tf.stop_gradient(X), scheme, seed)

    @tf.function(jit_compile=True, autograph=False)
    def _compiled_terms(
        self, X: tf.Tensor, scheme: Scheme, sites: Sites, W: tf.Tensor, seed: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        return self._quadratic_terms(tf.stop_gradient(X), scheme, sites, W, seed)

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
        :param sites: sites of each input, with one precision for all outputs or one for each.
        :param W: [M, M], L⁻¹ with k_uu = L Lᵀ.
        :return: the fields of :class:`Quadratic` for these inputs alone.
        """
        weights = scheme.weights(self.kernel.orbit)
        k_ff, Kfu = self._orbit_averages(X, scheme, seed)
        groups, M = Kfu.shape[1], Kfu.shape[2]
        phi = tf.reshape(tf.matmul(W, _as_columns(Kfu)), [M, -1, groups])  # [M, N, G]
        precision, ceiling = outer_of_average(phi, sites.precision, weights)
        linear = tf.matmul(tf.reduce_mean(phi, axis=2), sites.linear)
        unexplained = tf.linalg.matvec(sites.precision, k_ff, transpose_a=True) - tf.linalg.trace(precision)
        constant = tf.reduce_sum(sites.constant) - 0.5 * self.num_latent_gps * tf.reduce_mean(unexplained)
        return linear, precision, constant, ceiling

    def _draw_kernels(self) -> SumKernels:
        """The base kernel at draws and at inducing points, in the precision of computation."""
        product = three_passes if worthwhile(self.compute_dtype, self.compiled) else tf.matmul
        return draw_kernels(self.inducing_variable, self.kernel, self.compute_dtype, product)

    def _explained_variance(self, phi: tf.Tensor, columns: tf.Tensor, groups: int, weights: PairWeights) -> tf.Tensor:
        """Estimates ‖Tᵀc̄‖² − ‖φ̄‖², the posterior variance of f less the prior one: [N, 1] or [N, P]."""

        def square_norm(vectors: tf.Tensor) -> tf.Tensor:  # [M, N G] → [N]
            by_group = tf.reshape(tf.transpose(vectors), [-1, groups, vectors.shape[0]])
            return square_norm_of_average(by_group, weights)

        q_sqrt = tf.unstack(tf.convert_to_tensor(self.q_sqrt), axis=0)
        posterior = [square_norm(tf.matmul(T, columns, transpose_a=True)) for T in q_sqrt]
        return tf.stack(posterior, axis=-1) - square_norm(phi)[:, None]

    def _prior_kl(self, W: tf.Tensor) -> tf.Tensor:
        """½ Σ_p (m_pᵀ m_p + tr T_p T_pᵀ − M − log |T_p T_pᵀ|) in whitened terms."""
        mean, root = tf.convert_to_tensor(self.q_mu), tf.convert_to_tensor(self.q_sqrt)
        if not self.whiten:
            mean, root = tf.matmul(W, mean), tf.matmul(W, root)
        log_determinant = tf.reduce_sum(tf.math.log(tf.square(tf.linalg.diag_part(root))))
        shares = self.num_latent_gps / root.shape[0]  # outputs for each covariance
        constant = tf.cast(self.num_latent_gps * tf.shape(W)[0], W.dtype)
        covariance = shares * (tf.reduce_sum(tf.square(root)) - log_determinant) - constant
        return 0.5 * (tf.reduce_sum(tf.square(mean)) + covariance)


def _averaged(kernels: SumKernels, drawn: tf.Tensor, weights: PairWeights) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param drawn: [N, G, n, D]
    :return: [N] k_ff and [N, G, M] k_fu, averaged by groups, in float64.
    """
    groups = drawn.shape[1]
    across = groups == 2 and weights.same == 0  # then a quarter of all pairs is enough
    Kaa, Kfu = kernels(drawn, across)
    if across:
        k_ff = 2 * weights.different * tf.reduce_mean(Kaa, axis=[1, 2])
    else:
        k_ff = variance_of_average(Kaa, groups, weights)
    Kfu = tf.ensure_shape(Kfu, [None, groups, None])
    return tf.cast(k_ff, gpflow.default_float()), tf.cast(Kfu, gpflow.default_float())


def _as_columns(Kfu: tf.Tensor) -> tf.Tensor:
    """[N, G, M] → [M, N G]"""
    return tf.transpose(tf.reshape(Kfu, [-1, tf.shape(Kfu)[2]]))
