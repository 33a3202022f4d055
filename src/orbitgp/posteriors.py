"""Predictions: the posterior of averages over draws from the orbit."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import InputData, MeanAndVariance, Module, TensorType
from gpflow.functions import MeanFunction

from orbitgp import checks
from orbitgp._ops.blocks import map_blocks
from orbitgp._ops.products import steady_product
from orbitgp._ops.triangular import inverse_triangle
from orbitgp.inducing import Points, draw_kernels
from orbitgp.kernels import Invariant
from orbitgp.schemes import Scheme

PREDICTED_TOGETHER = 256  # inputs at a time: all draws of a test set would not fit into memory


class InvariantPosterior(Module):
    """
    The posterior of a model as it is now, with k_uu factorised once for all predictions.

    f(x) = E_a g(x_a) is predicted by f̂(x) = (1/S) Σ_s g(t(x, u_s)) with **one** set of uniforms u_1 … u_S for all
    inputs. So f̂(x) does not depend on the batch that x is in (but for rounding, in mixed precision that of float32),
    covariances are those of one process, and f̂(x) − f̂(x) is zero. Over the choice of u, the mean of f̂ is unbiased for
    that of f; its variance is never negative, and above that of f by a term that falls with S. If the scheme lists a
    finite orbit, both are exact.
    """

    def __init__(
        self,
        kernel: Invariant,
        inducing_variable: Points,
        Kuu: tf.Tensor,
        q_mu: TensorType,
        q_sqrt: TensorType,
        *,
        whiten: bool,
        mean_function: MeanFunction,
        scheme: Scheme,
        samples: int,
        seed: int,
        dtype: tf.DType,
    ) -> None:
        """
        :param inducing_variable: M points of g.
        :param Kuu: [M, M], their prior covariance.
        :param q_mu: [M, P], the mean of q.
        :param q_sqrt: [1 or P, M, M], the Cholesky factor of its covariance.
        :param samples: default of S.
        :param seed: default seed of u.
        :param dtype: floating type in which the orbit and the base kernel are evaluated.
        """
        super().__init__()
        self._orbit, self._scheme, self._shift = kernel.orbit, scheme, mean_function
        self._samples, self._seed, self._dtype = samples, seed, dtype
        self._whitener = inverse_triangle(tf.linalg.cholesky(Kuu))  # W = L⁻¹
        mean, root = tf.convert_to_tensor(q_mu), tf.convert_to_tensor(q_sqrt)
        self._mean = mean if whiten else tf.matmul(self._whitener, mean)  # [M, P], of v = L⁻¹ u
        self._root = root if whiten else tf.matmul(self._whitener, root)  # [1 or P, M, M]
        self._product = steady_product(self._mean.dtype)
        self._kernels = draw_kernels(inducing_variable, kernel, dtype, steady_product(dtype))

    def draw(self, X: TensorType, samples: int | None = None, seed: TensorType | None = None) -> tf.Tensor:
        """
        :param X: [N, D]
        :param samples: S; the model's ``prediction_samples`` if None.
        :param seed: [2] integers that decide u; fixed if None, so that a repeated prediction is the same.
        :return: [N, S, E], the points t(x, u_s) over which g is averaged.
        """
        samples = self._samples if samples is None else checks.integer("samples", samples, least=1)
        seed = tf.constant([self._seed, -1]) if seed is None else tf.convert_to_tensor(seed)
        return self._scheme.draw_for_prediction(self._orbit, tf.cast(X, self._dtype), samples, seed)

    @check_shapes("drawn: [N, G, n, D]", "weights: [K, G]", "return[0]: [N, K, P]", "return[1]: [N, K, K, Q]")
    def functionals(self, drawn: TensorType, weights: TensorType) -> MeanAndVariance:
        """
        Linear functionals Σ_g w_kg ḡ_g of the averages ḡ_g = mean_n g(x_gn), K of them for each input.

        :param drawn: [N, G, n, D], for each input G groups of n points.
        :param weights: [K, G]
        :return: their means [N, K, P], and their covariances [N, K, K, Q], Q = 1 if all outputs share them, else P.
        """
        weights = tf.convert_to_tensor(weights)
        Kaa, Kfu = (tf.cast(part, weights.dtype) for part in self._kernels(drawn))
        prior = tf.einsum("kg,ngh,lh->nkl", weights, _between_groups(Kaa, drawn), weights)
        shape = tf.concat([tf.shape(drawn)[:1], tf.shape(weights)[:1], tf.shape(Kfu)[2:]], axis=0)  # N, K, M
        # rows of all inputs in one product: a product for each input would read the matrices anew for each
        phi = self._product(tf.reshape(weights @ Kfu, [-1, shape[2]]), self._whitener, transpose_b=True)  # [N K, M]
        roots = tf.unstack(self._root)  # Q of them
        spread = tf.stack([tf.reshape(self._product(phi, root), shape) for root in roots])  # [Q, N, K, M]
        mean, phi = tf.reshape(self._product(phi, self._mean), [shape[0], shape[1], -1]), tf.reshape(phi, shape)
        explained = tf.matmul(spread, spread, transpose_b=True) - tf.matmul(phi, phi, transpose_b=True)
        return mean, tf.transpose(prior + explained, [1, 2, 3, 0])

    @check_shapes("drawn: [N, G, n, D]", "return: [N, G, G]")
    def prior_covariance(self, drawn: TensorType) -> tf.Tensor:
        """Prior covariance of the averages ḡ_g = mean_n g(x_gn), for each input."""
        return _between_groups(self._kernels(drawn)[0], drawn)

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
        :param Xnew: [N, D]
        :param samples: S, as in :meth:`draw`.
        :param seed: as in :meth:`draw`.
        :return: mean and variance of f̂, each [N, P]; full covariances have GPflow's shapes, such as [P, N, N].
        """
        predict = self._joint if full_cov else self._marginal
        mean, variance = predict(tf.convert_to_tensor(Xnew), samples, seed)
        mean += self._shift(tf.cast(Xnew, mean.dtype))
        return mean, _between_outputs(variance, full_cov) if full_output_cov else variance

    @check_shapes("X: [N, D]", "X2: [N, D]", "return[0]: [N, P]", "return[1]: [N, P]")
    def difference(
        self, X: TensorType, X2: TensorType, *, samples: int | None = None, seed: TensorType | None = None
    ) -> MeanAndVariance:
        """
        Posterior mean and variance of f̂(x) − f̂(x') for each pair of rows, each [N, P]; zero for x = x'.

        :param X: [N, D] x
        :param X2: [N, D] x'
        :param samples: S, as in :meth:`draw`.
        :param seed: as in :meth:`draw`.
        """

        def predict(number: tf.Tensor, rows: tf.Tensor, rows2: tf.Tensor) -> MeanAndVariance:
            drawn = tf.stack([self.draw(side, samples, seed) for side in (rows, rows2)], axis=1)
            mean, variance = self._single(drawn, [[1.0, -1.0]])
            return mean + self._shift(tf.cast(rows, mean.dtype)) - self._shift(tf.cast(rows2, mean.dtype)), variance

        return map_blocks(predict, (X, X2), PREDICTED_TOGETHER, (self._mean.dtype,) * 2)

    def _marginal(self, X: tf.Tensor, samples: int | None, seed: TensorType | None) -> MeanAndVariance:
        def predict(number: tf.Tensor, rows: tf.Tensor) -> MeanAndVariance:
            return self._single(self.draw(rows, samples, seed)[:, None], [[1.0]])

        return map_blocks(predict, X, PREDICTED_TOGETHER, (self._mean.dtype,) * 2)

    def _single(self, drawn: tf.Tensor, weights: list[list[float]]) -> MeanAndVariance:
        """Mean and variance, each [N, P], of one functional."""
        mean, covariance = self.functionals(drawn, tf.constant(weights, self._mean.dtype))
        variance = tf.maximum(covariance[:, 0, 0, :], 0.0)  # rounding can go below zero
        return mean[:, 0], tf.broadcast_to(variance, tf.shape(mean[:, 0]))

    def _joint(self, X: tf.Tensor, samples: int | None, seed: TensorType | None) -> MeanAndVariance:
        """Mean [N, P], and covariance between inputs [P, N, N]."""
        drawn, dtype = self.draw(X, samples, seed), self._mean.dtype
        Kff = tf.cast(self._kernels.between_inputs(drawn), dtype)
        phi = tf.cast(self._kernels(drawn[:, None])[1][:, 0], dtype) @ tf.transpose(self._whitener)  # [N, M]
        spread = tf.matmul(phi[None], self._root)
        covariance = Kff - tf.matmul(phi, phi, transpose_b=True) + tf.matmul(spread, spread, transpose_b=True)
        return phi @ self._mean, tf.broadcast_to(covariance, [self._mean.shape[1], *tf.unstack(tf.shape(Kff))])


def _between_groups(Kaa: tf.Tensor, drawn: TensorType) -> tf.Tensor:
    """[N, G n, G n], the kernel between all points of an input, → [N, G, G], averaged over pairs of groups."""
    N, G, n = tf.unstack(tf.shape(drawn)[:3])
    return tf.reduce_mean(tf.reshape(Kaa, [N, G, n, G, n]), axis=[2, 4])


def _between_outputs(variance: tf.Tensor, full_cov: bool) -> tf.Tensor:
    """Outputs are independent: [N, P] → [N, P, P], or [P, N, N] → [N, P, N, P]."""
    if not full_cov:
        return tf.linalg.diag(variance)
    return tf.transpose(tf.linalg.diag(tf.transpose(variance, [1, 2, 0])), [0, 2, 1, 3])
