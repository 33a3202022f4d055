"""The invariant kernel and its closed forms: against double sums over orbits and integrals, and in GPflow's models."""

from functools import partial

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow import kernels
from scipy.ndimage import map_coordinates

from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant, orbit_Kff, orbit_Kff_diag, orbit_Kfu
from orbitgp.orbits import (
    Affine,
    Composed,
    GaussianNoise,
    Identity,
    Permutation,
    QuantisedRotation,
    RightAngles,
    Rotation,
)

# -- plain references ----------------------------------------------------------------------------------------------


def rbf(a, b, variance=1.7, lengthscales=1.3, columns=slice(None)):
    """[..., D], [..., D] → [...]"""
    return variance * np.exp(-0.5 * np.sum(((a - b)[..., columns] / np.array(lengthscales)) ** 2, -1))


def matern32(a, b):
    r = np.sqrt(3 * np.sum((a - b) ** 2)) / 1.5
    return 0.9 * (1 + r) * np.exp(-r)


def linear(a, b):
    return 0.4 * float(a @ b)


BASES = {
    "rbf": (lambda: kernels.SquaredExponential(1.7, 1.3), rbf),
    "combined": (
        lambda: kernels.SquaredExponential(1.7, 1.3) * kernels.Linear(0.4) + kernels.Matern32(0.9, 1.5),
        lambda a, b: rbf(a, b) * linear(a, b) + matern32(a, b),
    ),
    "one coordinate": (
        lambda: kernels.SquaredExponential(1.0, 1.3, active_dims=[0]),
        partial(rbf, variance=1.0, columns=[0]),
    ),
}


def turned(image, degrees):
    """Counter-clockwise as numpy.rot90 turns, about the centre, zero outside."""
    cos, sin, centre = np.cos(np.radians(degrees)), np.sin(np.radians(degrees)), (len(image) - 1) / 2
    rows, columns = np.indices(image.shape) - centre
    places = [sin * columns + cos * rows + centre, cos * columns - sin * rows + centre]
    return map_coordinates(image, places, order=1, mode="grid-constant", cval=0.0)


ORBITS = {
    "swap": (lambda: Permutation([[0, 1], [1, 0]]), 2, lambda x: [x, x[::-1]]),
    "right angles": (
        lambda: RightAngles((3, 3)),
        9,
        lambda x: [np.rot90(x.reshape(3, 3), turns).ravel() for turns in range(4)],
    ),
    "three angles": (
        lambda: QuantisedRotation((3, 3), 3),
        9,
        lambda x: [turned(x.reshape(3, 3), 120 * k).ravel() for k in range(3)],
    ),
    "no orbit": (Identity, 3, lambda x: [x]),
}


def double_sum(base, orbit, A, B):
    """[N, M], the mean of the base kernel over both orbits."""
    return np.array([[np.mean([[base(a, b) for b in orbit(y)] for a in orbit(x)]) for y in B] for x in A])


def inputs(N, D, seed):
    return np.random.default_rng(seed).normal(size=(N, D)) * np.sqrt(2 / D)


# -- finite orbits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "orbit"), [("rbf", orbit) for orbit in ORBITS] + [("combined", "swap"), ("one coordinate", "right angles")]
)
def test_kernel_is_the_double_mean_over_orbits(base, orbit):
    (make_base, point_kernel), (make_orbit, D, points) = BASES[base], ORBITS[orbit]
    kernel = Invariant(make_base(), make_orbit())
    X, X2 = inputs(4, D, 0), inputs(3, D, 1)
    full = double_sum(point_kernel, points, X, X)
    np.testing.assert_allclose(kernel(X, X2), double_sum(point_kernel, points, X, X2), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel(X), full, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(full), rtol=1e-10, atol=1e-12)
    one_sided = [[np.mean([point_kernel(a, z) for a in points(x)]) for z in X2] for x in X]
    np.testing.assert_allclose(orbit_Kfu(kernel.orbit, kernel.base, X, X2), one_sided, rtol=1e-10, atol=1e-12)
    K = kernel(inputs(12, D, 2)).numpy()
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-9 * np.trace(K)
    if orbit in ("swap", "right angles"):  # groups: the function is invariant
        for moved in np.stack([points(x) for x in X], axis=1):
            np.testing.assert_allclose(kernel(moved, X2), kernel(X, X2), rtol=0, atol=1e-12)


# -- Gaussian noise ------------------------------------------------------------------------------------------------

SCALE = 0.7
# the kernel of four coordinates, and its plain form
NOISY = {
    "isotropic": (lambda: kernels.SquaredExponential(1.4, 0.9), {"variance": 1.4, "lengthscales": 0.9}),
    "one in a list": (lambda: kernels.SquaredExponential(1.4, [0.9]), {"variance": 1.4, "lengthscales": 0.9}),
    "ard": (
        lambda: kernels.SquaredExponential(0.8, [0.5, 1.0, 2.0, 4.0]),
        {"variance": 0.8, "lengthscales": [0.5, 1, 2, 4]},
    ),
    "some columns, ard": (
        lambda: kernels.SquaredExponential(1.1, [0.6, 1.5], active_dims=[3, 1]),
        {"variance": 1.1, "lengthscales": [0.6, 1.5], "columns": [3, 1]},
    ),
    "a slice": (
        lambda: kernels.SquaredExponential(0.9, 1.2, active_dims=slice(1, 4)),
        {"variance": 0.9, "lengthscales": 1.2, "columns": [1, 2, 3]},
    ),
}


@pytest.mark.parametrize("scale", [0.2, 1.0])
def test_noise_in_one_dimension_is_the_integral(scale):
    base, orbit = kernels.SquaredExponential(1.3, 0.4), GaussianNoise(1, scale)
    X, Z = inputs(3, 1, 0), inputs(4, 1, 1)
    grid = np.linspace(-9, 9, 1201) * scale
    density = np.exp(-0.5 * (grid / scale) ** 2)
    density /= density.sum()

    def integral(difference):
        """E k(x + e, x') and E k(x + e, x' + e') with x − x' given."""
        between = np.exp(-0.5 * ((difference + grid[:, None] - grid) / 0.4) ** 2)
        return 1.3 * density @ np.exp(-0.5 * ((difference + grid) / 0.4) ** 2), 1.3 * density @ between @ density

    one, two = np.moveaxis(np.array([[integral(x - z) for z in Z[:, 0]] for x in X[:, 0]]), -1, 0)
    np.testing.assert_allclose(orbit_Kfu(orbit, base, X, Z), one, rtol=1e-10)
    np.testing.assert_allclose(orbit_Kff(orbit, base, X, Z), two, rtol=1e-10)
    np.testing.assert_allclose(orbit_Kff_diag(orbit, base, X), np.full(3, integral(0.0)[1]), rtol=1e-10)


@pytest.mark.parametrize("case", NOISY)
def test_noise_in_several_dimensions_is_the_product_of_those_in_one(case):
    """A product of Gaussians in each coordinate integrates coordinate by coordinate."""
    make, plain = NOISY[case]
    kernel, X, Z = Invariant(make(), GaussianNoise(4, SCALE)), inputs(3, 4, 2), inputs(4, 4, 3)
    columns = plain.get("columns", [0, 1, 2, 3])
    lengths = np.broadcast_to(plain["lengthscales"], [len(columns)])
    for covariance in (orbit_Kfu, orbit_Kff):
        parts = [
            covariance(GaussianNoise(1, SCALE), kernels.SquaredExponential(1.0, length), X[:, [d]], Z[:, [d]])
            for d, length in zip(columns, lengths, strict=True)
        ]
        expected = plain["variance"] * np.prod(parts, axis=0)
        np.testing.assert_allclose(covariance(kernel.orbit, kernel.base, X, Z), expected, rtol=1e-12)
        without = covariance(GaussianNoise(4, 1e-5), kernel.base, X, Z)
        np.testing.assert_allclose(without, rbf(X[:, None], Z, **plain), rtol=1e-7)
    X = inputs(15, 4, 8)
    K = kernel(X).numpy()
    np.testing.assert_allclose(K, K.T, rtol=1e-14)
    assert np.linalg.eigvalsh(K).min() > -1e-12
    np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(K), rtol=1e-14)
    np.testing.assert_allclose(kernel(X, X[:3]), K[:, :3], rtol=1e-14)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda: Invariant(kernels.SquaredExponential(0.6, [0.8, 2.0]), Permutation([[0, 1], [1, 0]])),
        lambda: Invariant(BASES["combined"][0](), Permutation([[0, 1], [1, 0]])),
        lambda: Invariant(kernels.SquaredExponential(1.1, [0.6, 1.5]), GaussianNoise(2, SCALE)),
    ],
    ids=["ard, swap", "combined, swap", "ard, noise"],
)
def test_gradients_with_respect_to_kernel_and_noise(assert_gradients_match, kernel):
    kernel, X, X2 = kernel(), inputs(3, 2, 10), inputs(4, 2, 11)
    directions = np.random.default_rng(12).normal(size=(3, 4))

    def total():
        Kfu = orbit_Kfu(kernel.orbit, kernel.base, X, X2)
        return tf.reduce_sum(directions * (kernel(X, X2) + Kfu)) + tf.reduce_sum(kernel(X, full_cov=False))

    assert_gradients_match(total, kernel.trainable_variables, step=1e-5, rtol=1e-6)


@pytest.mark.parametrize("kind", ["swap", "noise"])
def test_base_points_wherever_g_is_looked_at_lose_nothing(kind):
    if kind == "swap":
        X, new = np.random.default_rng(13).uniform(-1, 1, size=(12, 2)), inputs(5, 2, 16)
        Y = (np.sin(3 * X[:, :1]) + np.sin(3 * X[:, 1:])) * np.cos(X[:, :1] * X[:, 1:])
        data, kernel = (X, Y), Invariant(BASES["rbf"][0](), Permutation([[0, 1], [1, 0]]))
        Z = np.concatenate([X, X[:, ::-1]])
    else:
        X, new, Z = (np.linspace(-end, end, count)[:, None] for end, count in ((1, 8), (1.2, 5), (2.5, 15)))
        data, kernel = (X, np.sin(3 * X)), Invariant(kernels.SquaredExponential(1.0, 0.8), GaussianNoise(1, 0.3))
    exact = gpflow.models.GPR(data, kernel, noise_variance=0.05)
    sparse = gpflow.models.SGPR(data, kernel, BasePoints(Z), noise_variance=0.05)
    # u = g(Z) fixes f at the data, so that the bound is tight up to GPflow's jitter
    bound, evidence = float(sparse.elbo()), float(exact.log_marginal_likelihood())
    assert evidence - 3e-3 < bound <= evidence
    for found, expected in zip(sparse.predict_f(new), exact.predict_f(new), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-3)


# -- pairs without a closed form, and new ones ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "orbit", "D"),
    [
        (kernels.SquaredExponential, Rotation((2, 2)), 4),
        (kernels.SquaredExponential, Affine((2, 2)), 4),
        (kernels.Matern32, GaussianNoise(2), 2),
        (kernels.SquaredExponential, Composed([Identity()]), 2),
    ],
)
def test_orbits_without_a_closed_form_say_so(base, orbit, D):
    kernel, X = Invariant(base(), orbit), np.zeros((2, D))
    message = f"{base.__name__} averaged over {type(orbit).__name__} has no exact value"
    for evaluate in (
        lambda: kernel(X, X),
        lambda: kernel(X, full_cov=False),
        lambda: gpflow.covariances.Kuf(BasePoints(X), kernel, X),
    ):
        with pytest.raises(TypeError, match=message):
            evaluate()


class Shifted(GaussianNoise):
    """An orbit of a user, whose linear kernel is that of the shifted mean."""

    @inherit_check_shapes
    def transform(self, X, U):
        return super().transform(X + 1.0, U)


def test_a_closed_form_takes_part_once_it_is_registered():
    @orbit_Kff.register(Shifted, kernels.Linear, object, object)
    def _(orbit, base, X, X2):
        return base(X + 1.0, X2 + 1.0)

    X = inputs(3, 2, 17)
    np.testing.assert_allclose(Invariant(kernels.Linear(), Shifted(2))(X), (X + 1) @ (X + 1).T, rtol=1e-12)
