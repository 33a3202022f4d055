"""
The kernel of a function averaged over an orbit, and its closed forms: finite orbits, and Gaussian noise under an RBF.

To add a closed form for an orbit and a base kernel, register it with the dispatchers below.
"""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel, SquaredExponential, White
from gpflow.utilities import Dispatcher

from orbitgp import checks
from orbitgp.orbits import FiniteOrbit, GaussianNoise, Orbit

orbit_Kfu = Dispatcher("orbit_Kfu")
orbit_Kff = Dispatcher("orbit_Kff")
orbit_Kff_diag = Dispatcher("orbit_Kff_diag")

for _dispatcher in (orbit_Kfu, orbit_Kff, orbit_Kff_diag):

    @_dispatcher.register(Orbit, Kernel, object)
    @_dispatcher.register(Orbit, Kernel, object, object)
    def _no_closed_form(orbit: Orbit, base: Kernel, *inputs: TensorType) -> tf.Tensor:
        raise TypeError(
            f"a {type(base).__name__} averaged over {type(orbit).__name__} has no exact value here; "
            "orbitgp.models.InvariantSVGP estimates it from samples"
        )


@orbit_Kfu.register(FiniteOrbit, Kernel, object, object)
@check_shapes("X: [N, D]", "Z: [M, E]", "return: [N, M]")
def _finite_Kfu(orbit: FiniteOrbit, base: Kernel, X: TensorType, Z: TensorType) -> tf.Tensor:
    """k_fu(x, z) = (1/P) Σ_a k_g(x_a, z)"""
    return tf.reduce_mean(base(orbit.full(X), Z), axis=1)


@orbit_Kff.register(FiniteOrbit, Kernel, object, object)
@check_shapes("X: [N, D]", "X2: [N2, D]", "return: [N, N2]")
def _finite_Kff(orbit: FiniteOrbit, base: Kernel, X: TensorType, X2: TensorType) -> tf.Tensor:
    """k_ff(x, x') = (1/P²) Σ_a Σ_a' k_g(x_a, x'_a')"""
    return tf.reduce_mean(base(orbit.full(X), orbit.full(X2)), axis=[1, 3])


@orbit_Kff_diag.register(FiniteOrbit, Kernel, object)
@check_shapes("X: [N, D]", "return: [N]")
def _finite_Kff_diag(orbit: FiniteOrbit, base: Kernel, X: TensorType) -> tf.Tensor:
    """k_ff(x, x)"""
    return tf.reduce_mean(base(orbit.full(X)), axis=[1, 2])


def _convolved(base: SquaredExponential, noise_variance: tf.Tensor, X: TensorType, X2: TensorType) -> tf.Tensor:
    """E k_g(x + e, x') with e ~ N(0, noise_variance I): a wider Gaussian of the same mass."""
    X, X2 = base.slice(tf.convert_to_tensor(X), tf.convert_to_tensor(X2))
    squared = tf.broadcast_to(tf.square(base.lengthscales), [X.shape[-1]])  # one for each dimension, or one for all
    wider = squared + noise_variance
    shrink = tf.reduce_prod(tf.sqrt(squared / wider))
    scaled, scaled2 = X / tf.sqrt(wider), X2 / tf.sqrt(wider)
    return base.variance * shrink * tf.exp(-0.5 * _square_distances(scaled, scaled2))


def _square_distances(X: tf.Tensor, X2: tf.Tensor) -> tf.Tensor:
    """[N, D], [M, D] → [N, M], by differences: small problems, and exact on the diagonal."""
    return tf.reduce_sum(tf.square(X[:, None, :] - X2[None, :, :]), axis=-1)


@orbit_Kfu.register(GaussianNoise, SquaredExponential, object, object)
@check_shapes("X: [N, D]", "Z: [M, D]", "return: [N, M]")
def _noise_Kfu(orbit: GaussianNoise, base: SquaredExponential, X: TensorType, Z: TensorType) -> tf.Tensor:
    """E_a k_g(x_a, z): only x is noisy."""
    orbit.check_length(tf.convert_to_tensor(X))
    return _convolved(base, tf.square(orbit.scale), X, Z)


@orbit_Kff.register(GaussianNoise, SquaredExponential, object, object)
@check_shapes("X: [N, D]", "X2: [N2, D]", "return: [N, N2]")
def _noise_Kff(orbit: GaussianNoise, base: SquaredExponential, X: TensorType, X2: TensorType) -> tf.Tensor:
    """E_a E_a' k_g(x_a, x'_a'): both points have independent noise, even where x = x'."""
    orbit.check_length(tf.convert_to_tensor(X))
    return _convolved(base, 2 * tf.square(orbit.scale), X, X2)


@orbit_Kff_diag.register(GaussianNoise, SquaredExponential, object)
@check_shapes("X: [N, D]", "return: [N]")
def _noise_Kff_diag(orbit: GaussianNoise, base: SquaredExponential, X: TensorType) -> tf.Tensor:
    """k_ff(x, x), the same for every input."""
    X = tf.convert_to_tensor(X)
    one = _noise_Kff(orbit, base, X[:1], X[:1])
    return tf.repeat(one[:, 0], tf.shape(X)[0])


class Invariant(Kernel):
    """
    k_f(x, x') = E_a E_a' k_g(x_a, x'_a'), the covariance of f(x) = E_a g(x_a) under g ~ GP(0, k_g).

    If the average has a closed form, this works like any GPflow kernel, in GPR or SVGP. For other orbits it only
    defines the model, and :class:`orbitgp.models.InvariantSVGP` estimates what it needs.

    The base kernel may itself average over a finite orbit, ``Invariant(Invariant(k, Patches(…)), Affine(…))``, and it
    may be a sum: f(x) = E_a Σ_c E_p g_c(x_a,p), all processes under the same draws a.
    """

    def __init__(self, base: Kernel, orbit: Orbit, name: str | None = None) -> None:
        """
        :param base: k_g, the kernel of the function that is averaged.
        :param orbit: p(x_a | x).
        """
        super().__init__(name=name)
        self.base = checks.instance("base", base, Kernel)
        if any(isinstance(part, White) for part in (base, *base.submodules)):
            raise ValueError(
                "base must not contain White: noise at a point has no average over an orbit. Noise belongs to the "
                "likelihood, or outside: Invariant(…) + White(…)"
            )
        self.orbit = checks.instance("orbit", orbit, Orbit)

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        """The covariance of f: […, N, D], [… 2, N2, D] → […, N, … 2, N2]"""
        X = tf.convert_to_tensor(X)
        if X2 is None and X.shape.rank > 2:  # each matrix with itself
            return tf.map_fn(self.K, X)
        X2 = X if X2 is None else tf.convert_to_tensor(X2)
        found = orbit_Kff(self.orbit, self.base, _as_rows(X), _as_rows(X2))
        return tf.reshape(found, tf.concat([tf.shape(X)[:-1], tf.shape(X2)[:-1]], axis=0))

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        """The variance of f: […, N, D] → […, N]"""
        X = tf.convert_to_tensor(X)
        return tf.reshape(orbit_Kff_diag(self.orbit, self.base, _as_rows(X)), tf.shape(X)[:-1])


@orbit_Kfu.register(FiniteOrbit, Invariant, object, object)
@check_shapes("X: [N, D]", "Z: [M, E]", "return: [N, M]")
def _nested_Kfu(orbit: FiniteOrbit, base: Invariant, X: TensorType, Z: TensorType) -> tf.Tensor:
    """Z are inputs of the innermost function; no orbit transforms them."""
    Kpu = orbit_Kfu(base.orbit, base.base, _as_rows(orbit.full(X)), Z)
    return tf.reduce_mean(tf.reshape(Kpu, [-1, orbit.order, tf.shape(Kpu)[1]]), axis=1)


def innermost(kernel: Kernel) -> tuple[Kernel, tuple[FiniteOrbit, ...]]:
    """
    :param kernel: the base kernel of an :class:`Invariant`, or a part of it.
    :return: the innermost base kernel, and the finite orbits around it, in the order in which they act on inputs.
    """
    orbits: list[FiniteOrbit] = []
    while isinstance(kernel, Invariant):
        if not isinstance(kernel.orbit, FiniteOrbit):
            orbit = type(kernel.orbit).__name__
            raise TypeError(
                f"an Invariant inside an Invariant is averaged over every point of its orbit, and {orbit} cannot be "
                "listed: draw from both orbits, Invariant(k, Composed([outer, inner]))"
            )
        orbits.append(kernel.orbit)
        kernel = kernel.base
    return kernel, tuple(orbits)


def _as_rows(X: tf.Tensor) -> tf.Tensor:
    """[…, N, D] → […  N, D]"""
    return tf.reshape(X, [-1, tf.shape(X)[-1]])
