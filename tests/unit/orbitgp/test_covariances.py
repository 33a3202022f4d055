from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import inherit_check_shapes
from check_shapes.exceptions import ShapeMismatchError
from gpflow import kernels

from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant, orbit_Kff, orbit_Kff_diag, orbit_Kfu
from orbitgp.orbits import FiniteOrbit, GaussianNoise, Identity, Permutation, QuantisedRotation, Rotation

SCALE = 0.7
# the kernel of four coordinates, and (variance, lengthscales, columns) of a plain one
BASES = {
    "isotropic": (lambda: kernels.SquaredExponential(1.4, 0.9), (1.4, [0.9] * 4, [0, 1, 2, 3])),
    "ard": (lambda: kernels.SquaredExponential(0.8, [0.5, 1.0, 2.0, 4.0]), (0.8, [0.5, 1, 2, 4], [0, 1, 2, 3])),
    "some columns": (lambda: kernels.SquaredExponential(1.1, 0.6, active_dims=[2, 0]), (1.1, [0.6] * 2, [2, 0])),
    "some columns, ard": (
        lambda: kernels.SquaredExponential(1.1, [0.6, 1.5], active_dims=[3, 1]),
        (1.1, [0.6, 1.5], [3, 1]),
    ),
    "a slice": (lambda: kernels.SquaredExponential(0.9, 1.2, active_dims=slice(1, 4)), (0.9, [1.2] * 3, [1, 2, 3])),
}


def plain_rbf(case: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[..., 4], [..., 4] → [...]"""
    variance, lengthscales, columns = BASES[case][1]
    return variance * np.exp(-0.5 * np.sum(((a - b)[..., columns] / np.array(lengthscales)) ** 2, -1))


def inputs(N: int, D: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N, D))


# -- Gaussian noise against integration ----------------------------------------------------------------------------


@pytest.mark.parametrize("lengthscales", [0.4, [0.4]])
@pytest.mark.parametrize("scale", [0.2, 1.0])
def test_noise_in_one_dimension_is_the_integral(scale: float, lengthscales: float | list[float]) -> None:
    base, orbit = kernels.SquaredExponential(1.3, lengthscales), GaussianNoise(1, scale)
    X, Z = inputs(3, 1, 0), inputs(4, 1, 1)
    grid = np.linspace(-9, 9, 1201) * scale
    density = np.exp(-0.5 * (grid / scale) ** 2)
    density /= density.sum()
    for n, (x,) in enumerate(X):
        for m, (z,) in enumerate(Z):
            one = np.sum(density * 1.3 * np.exp(-0.5 * ((x + grid - z) / 0.4) ** 2))
            between = np.exp(-0.5 * ((x + grid[:, None] - z - grid) / 0.4) ** 2)
            two = density @ (1.3 * between) @ density
            assert orbit_Kfu(orbit, base, X, Z).numpy()[n, m] == pytest.approx(one, rel=1e-10)
            assert orbit_Kff(orbit, base, X, Z).numpy()[n, m] == pytest.approx(two, rel=1e-10)
        itself = density @ (1.3 * np.exp(-0.5 * ((grid[:, None] - grid) / 0.4) ** 2)) @ density
        assert orbit_Kff_diag(orbit, base, X).numpy()[n] == pytest.approx(itself, rel=1e-10)


def test_noise_in_two_dimensions_is_the_product_of_integrals() -> None:
    # a product of Gaussians in each coordinate integrates coordinate by coordinate
    X, Z = inputs(3, 2, 2), inputs(4, 2, 3)
    orbit = GaussianNoise(2, SCALE)
    joint = kernels.SquaredExponential(1.3, [0.5, 1.5])
    single = [kernels.SquaredExponential(1.0, length) for length in (0.5, 1.5)]
    for covariance in (orbit_Kfu, orbit_Kff):
        parts = [covariance(GaussianNoise(1, SCALE), single[d], X[:, d : d + 1], Z[:, d : d + 1]) for d in (0, 1)]
        np.testing.assert_allclose(covariance(orbit, joint, X, Z), 1.3 * parts[0] * parts[1], rtol=1e-12)


@pytest.mark.parametrize("case", BASES)
def test_noise_is_the_average_over_draws(case: str) -> None:
    base, orbit = BASES[case][0](), GaussianNoise(4, SCALE)
    X, Z = 0.5 * inputs(2, 4, 4), 0.5 * inputs(3, 4, 5)
    rng = np.random.default_rng(6)
    S = 40_000

    def assert_mean(draws: np.ndarray, value: float) -> None:
        assert abs(draws.mean() - value) < 4 * draws.std() / np.sqrt(S)

    Kfu, Kff = orbit_Kfu(orbit, base, X, Z).numpy(), orbit_Kff(orbit, base, X, Z).numpy()
    for n, x in enumerate(X):
        noisy = x + SCALE * rng.normal(size=(S, 4))
        for m, z in enumerate(Z):
            assert_mean(plain_rbf(case, noisy, z), Kfu[n, m])
            assert_mean(plain_rbf(case, noisy, z + SCALE * rng.normal(size=(S, 4))), Kff[n, m])
        itself = plain_rbf(case, noisy, x + SCALE * rng.normal(size=(S, 4)))
        assert_mean(itself, orbit_Kff_diag(orbit, base, X).numpy()[n])


def test_one_lengthscale_in_a_list_is_one_lengthscale() -> None:
    X = inputs(3, 4, 7)
    orbit = GaussianNoise(4, SCALE)
    scalar, listed = kernels.SquaredExponential(1.0, 0.9), kernels.SquaredExponential(1.0, [0.9])
    np.testing.assert_allclose(scalar(X), listed(X), rtol=1e-14)
    np.testing.assert_allclose(orbit_Kff(orbit, listed, X, X), orbit_Kff(orbit, scalar, X, X), rtol=1e-12)


# -- Gaussian noise as a kernel ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", BASES)
def test_noisy_kernel_is_positive_semi_definite_and_one_with_its_diagonal(case: str) -> None:
    kernel = Invariant(BASES[case][0](), GaussianNoise(4, SCALE))
    X = inputs(15, 4, 8)
    K = kernel(X).numpy()
    np.testing.assert_allclose(K, K.T, rtol=1e-14)
    assert np.linalg.eigvalsh(K).min() > -1e-12
    np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(K), rtol=1e-14)
    np.testing.assert_allclose(kernel(X, X[:3]), K[:, :3], rtol=1e-14)
    assert np.all(np.diag(K) < plain_rbf(case, X, X))


@pytest.mark.parametrize("case", BASES)
def test_without_noise_it_is_the_base_kernel(case: str) -> None:
    base = BASES[case][0]()
    X, Z = inputs(3, 4, 9), inputs(4, 4, 10)
    for covariance in (orbit_Kfu, orbit_Kff):
        np.testing.assert_allclose(covariance(GaussianNoise(4, 1e-5), base, X, Z), base(X, Z), rtol=1e-7)


def test_columns_that_the_base_ignores_do_not_matter() -> None:
    base = kernels.SquaredExponential(1.1, 0.6, active_dims=[0, 2])
    only_these = kernels.SquaredExponential(1.1, 0.6)
    X, Z = inputs(3, 5, 11), inputs(4, 5, 12)
    for covariance in (orbit_Kfu, orbit_Kff):
        np.testing.assert_allclose(
            covariance(GaussianNoise(5, SCALE), base, X, Z),
            covariance(GaussianNoise(2, SCALE), only_these, X[:, [0, 2]], Z[:, [0, 2]]),
            rtol=1e-13,
        )


@pytest.mark.parametrize("case", ["isotropic", "some columns, ard"])
def test_gradients_with_respect_to_kernel_and_noise(assert_gradients_match: Callable[..., None], case: str) -> None:
    kernel = Invariant(BASES[case][0](), GaussianNoise(4, SCALE))
    X, Z = inputs(3, 4, 13), inputs(2, 4, 14)

    def total() -> tf.Tensor:
        Kfu = orbit_Kfu(kernel.orbit, kernel.base, X, Z)
        return tf.reduce_sum(Kfu) + tf.reduce_sum(kernel(X)) + tf.reduce_sum(kernel(X, full_cov=False))

    assert len(kernel.trainable_variables) == 3
    assert_gradients_match(total, kernel.trainable_variables, step=1e-5, rtol=1e-6)


def test_noisy_base_points_on_many_places_come_close_to_exact_regression() -> None:
    X = np.linspace(-1, 1, 8)[:, None]
    data = (X, np.sin(3 * X))
    kernel = Invariant(kernels.SquaredExponential(1.0, 0.8), GaussianNoise(1, 0.3))
    exact = gpflow.models.GPR(data, kernel, noise_variance=0.1)
    sparse = gpflow.models.SGPR(data, kernel, BasePoints(np.linspace(-2.5, 2.5, 15)[:, None]), noise_variance=0.1)
    assert float(sparse.elbo()) == pytest.approx(float(exact.log_marginal_likelihood()), abs=1e-3)
    new = np.linspace(-1.2, 1.2, 5)[:, None]
    for found, expected in zip(sparse.predict_f(new), exact.predict_f(new), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-3)


# -- finite orbits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orbit", [Identity(), Permutation([[0, 1, 2, 3], [3, 2, 1, 0]]), QuantisedRotation((2, 2), 3)])
@pytest.mark.parametrize("base", [kernels.SquaredExponential(1.4, 0.9), kernels.Polynomial(2.0, 0.5, 0.1)])
def test_finite_covariances_are_means_over_the_listed_points(orbit: FiniteOrbit, base: kernels.Kernel) -> None:
    X, Z = inputs(3, 4, 15), inputs(2, 4, 16)
    points, P = orbit.full(X).numpy(), orbit.order

    def point_kernel(a: np.ndarray, b: np.ndarray) -> float:
        if isinstance(base, kernels.Polynomial):
            return (0.5 * float(a @ b) + 0.1) ** 2
        return plain_rbf("isotropic", a, b)

    for n in range(3):
        for m in range(2):
            one = sum(point_kernel(points[n, p], Z[m]) for p in range(P)) / P
            assert orbit_Kfu(orbit, base, X, Z).numpy()[n, m] == pytest.approx(one, rel=1e-10)
        for n2 in range(3):
            pairs = [point_kernel(points[n, p], points[n2, q]) for p in range(P) for q in range(P)]
            assert orbit_Kff(orbit, base, X, X).numpy()[n, n2] == pytest.approx(sum(pairs) / P**2, rel=1e-10)
        pairs = [point_kernel(points[n, p], points[n, q]) for p in range(P) for q in range(P)]
        assert orbit_Kff_diag(orbit, base, X).numpy()[n] == pytest.approx(sum(pairs) / P**2, rel=1e-10)


# -- pairs without a closed form, and new ones ---------------------------------------------------------------------


@pytest.mark.parametrize("covariance", [orbit_Kfu, orbit_Kff])
def test_no_closed_form_is_a_type_error(covariance: Callable[..., tf.Tensor]) -> None:
    with pytest.raises(TypeError, match="a Linear averaged over Rotation has no exact value"):
        covariance(Rotation((2, 2)), kernels.Linear(), np.zeros((1, 4)), np.zeros((1, 4)))
    with pytest.raises(TypeError, match="a Matern52 averaged over GaussianNoise has no exact value"):
        covariance(GaussianNoise(4), kernels.Matern52(), np.zeros((1, 4)), np.zeros((1, 4)))


def test_no_closed_form_of_the_diagonal_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="a Linear averaged over Rotation has no exact value"):
        orbit_Kff_diag(Rotation((2, 2)), kernels.Linear(), np.zeros((1, 4)))


class Shifted(GaussianNoise):
    """An orbit of a user, whose linear kernel is that of the shifted mean."""

    @inherit_check_shapes
    def transform(self, X: tf.Tensor, U: tf.Tensor) -> tf.Tensor:
        return super().transform(X + 1.0, U)


def test_a_closed_form_takes_part_once_it_is_registered() -> None:
    @orbit_Kff.register(Shifted, kernels.Linear, object, object)
    def _(orbit: Shifted, base: kernels.Linear, X: tf.Tensor, X2: tf.Tensor) -> tf.Tensor:
        return base(X + 1.0, X2 + 1.0)

    X = inputs(3, 2, 17)
    np.testing.assert_allclose(Invariant(kernels.Linear(), Shifted(2))(X), (X + 1) @ (X + 1).T, rtol=1e-12)


@pytest.mark.parametrize("covariance", [orbit_Kfu, orbit_Kff])
@pytest.mark.parametrize("orbit", [GaussianNoise(2), Permutation([[0, 1], [1, 0]])])
def test_inputs_that_do_not_match_are_named(covariance: Callable[..., tf.Tensor], orbit: FiniteOrbit) -> None:
    with pytest.raises(ShapeMismatchError, match=r"(?s)Argument: X\b.*Actual: *\[1, 2\].*Actual: *\[1, 3\]"):
        covariance(orbit, kernels.SquaredExponential(), np.zeros((1, 2)), np.zeros((1, 3)))


@pytest.mark.parametrize("covariance", [orbit_Kfu, orbit_Kff])
def test_noise_of_another_length_than_the_inputs_is_refused(covariance: Callable[..., tf.Tensor]) -> None:
    with pytest.raises((ValueError, ShapeMismatchError), match="3"):
        covariance(GaussianNoise(2), kernels.SquaredExponential(), np.zeros((1, 3)), np.zeros((1, 3)))
