from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes.exceptions import ShapeMismatchError
from gpflow import kernels
from scipy.ndimage import map_coordinates

from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant
from orbitgp.orbits import (
    Affine,
    Composed,
    FiniteOrbit,
    GaussianNoise,
    Identity,
    Permutation,
    QuantisedRotation,
    RightAngles,
    Rotation,
)

PointKernel = Callable[[np.ndarray, np.ndarray], float]

# -- plain references ----------------------------------------------------------------------------------------------


def lengths(D: int) -> np.ndarray:
    return np.linspace(0.8, 2.0, D)


def rbf(a: np.ndarray, b: np.ndarray) -> float:
    return 1.7 * np.exp(-0.5 * np.sum((a - b) ** 2) / 1.3**2)


def ard(a: np.ndarray, b: np.ndarray) -> float:
    return 0.6 * np.exp(-0.5 * np.sum(((a - b) / lengths(len(a))) ** 2))


def matern32(a: np.ndarray, b: np.ndarray) -> float:
    r = np.sqrt(3 * np.sum((a - b) ** 2)) / 1.5
    return 0.9 * (1 + r) * np.exp(-r)


def linear(a: np.ndarray, b: np.ndarray) -> float:
    return 0.4 * float(a @ b)


def first_only(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.exp(-0.5 * (a[0] - b[0]) ** 2))


BASES: dict[str, tuple[Callable[[int], kernels.Kernel], PointKernel]] = {
    "rbf": (lambda D: kernels.SquaredExponential(1.7, 1.3), rbf),
    "ard": (lambda D: kernels.SquaredExponential(0.6, lengths(D)), ard),
    "matern": (lambda D: kernels.Matern32(0.9, 1.5), matern32),
    "linear": (lambda D: kernels.Linear(0.4), linear),
    "one coordinate": (lambda D: kernels.SquaredExponential(active_dims=[0]), first_only),
    "combined": (
        lambda D: kernels.SquaredExponential(1.7, 1.3) * kernels.Linear(0.4) + kernels.Matern32(0.9, 1.5),
        lambda a, b: rbf(a, b) * linear(a, b) + matern32(a, b),
    ),
}


def turned(image: np.ndarray, radians: float) -> np.ndarray:
    """Counter-clockwise as numpy.rot90 turns, about the centre, zero outside."""
    centre = (len(image) - 1) / 2
    rows, columns = np.indices(image.shape) - centre
    from_rows = np.sin(radians) * columns + np.cos(radians) * rows + centre
    from_columns = np.cos(radians) * columns - np.sin(radians) * rows + centre
    return map_coordinates(image, [from_rows, from_columns], order=1, mode="grid-constant", cval=0.0)


ORBITS: dict[str, tuple[Callable[[], FiniteOrbit], int, Callable[[np.ndarray], list[np.ndarray]]]] = {
    "swap": (lambda: Permutation([[0, 1], [1, 0]]), 2, lambda x: [x, x[::-1]]),
    "right angles": (
        lambda: RightAngles((4, 4)),
        16,
        lambda x: [np.rot90(x.reshape(4, 4), turns).ravel() for turns in range(4)],
    ),
    "three angles": (
        lambda: QuantisedRotation((5, 5), 3),
        25,
        lambda x: [turned(x.reshape(5, 5), 2 * np.pi * k / 3).ravel() for k in range(3)],
    ),
    "no orbit": (Identity, 3, lambda x: [x]),
}
CASES = [(base, orbit) for base in BASES for orbit in ORBITS]


def double_sum(
    base: PointKernel, orbit: Callable[[np.ndarray], list[np.ndarray]], x: np.ndarray, y: np.ndarray
) -> float:
    total = 0.0
    for a in orbit(x):
        for b in orbit(y):
            total += base(a, b)
    return total / (len(orbit(x)) * len(orbit(y)))


def swap_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    _, _, orbit = ORBITS["swap"]
    return np.array([[double_sum(rbf, orbit, a, b) for b in B] for a in A])


def swap_invariant() -> Invariant:
    return Invariant(kernels.SquaredExponential(1.7, 1.3), Permutation([[0, 1], [1, 0]]))


def inputs(N: int, D: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N, D)) * np.sqrt(2 / D)


# -- the double mean -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("base", "orbit"), CASES)
def test_kernel_is_the_double_mean_over_orbits(base: str, orbit: str) -> None:
    make_base, point_kernel = BASES[base]
    make_orbit, D, points = ORBITS[orbit]
    kernel = Invariant(make_base(D), make_orbit())
    X, X2 = inputs(4, D, 0), inputs(3, D, 1)
    cross = [[double_sum(point_kernel, points, x, y) for y in X2] for x in X]
    full = [[double_sum(point_kernel, points, x, y) for y in X] for x in X]
    np.testing.assert_allclose(kernel(X, X2), cross, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel(X), full, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(full), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(kernel.K(X), kernel(X))
    np.testing.assert_array_equal(kernel.K_diag(X), kernel(X, full_cov=False))


@pytest.mark.parametrize(("base", "orbit"), CASES)
def test_kernel_is_positive_semi_definite(base: str, orbit: str) -> None:
    make_orbit, D, _ = ORBITS[orbit]
    K = Invariant(BASES[base][0](D), make_orbit())(inputs(12, D, 2)).numpy()
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-9 * np.trace(K)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("orbit", ["swap", "right angles"])
def test_function_is_invariant_under_a_group(base: str, orbit: str) -> None:
    make_orbit, D, points = ORBITS[orbit]
    kernel = Invariant(BASES[base][0](D), make_orbit())
    X, X2 = inputs(3, D, 3), inputs(4, D, 4)
    for moved in np.stack([points(x) for x in X], axis=1):
        np.testing.assert_allclose(kernel(moved, X2), kernel(X, X2), rtol=0, atol=1e-12)
        np.testing.assert_allclose(kernel(X2, moved), kernel(X2, X), rtol=0, atol=1e-12)


def test_permutations_that_are_no_group_leave_the_function_free() -> None:
    kernel = Invariant(kernels.SquaredExponential(), Permutation([[0, 1, 2], [1, 2, 0]]))
    X, X2 = inputs(3, 3, 5), inputs(4, 3, 6)
    assert np.abs(kernel(X[:, [1, 2, 0]], X2) - kernel(X, X2)).max() > 1e-2


def test_without_an_orbit_it_is_the_base_kernel() -> None:
    base = kernels.SquaredExponential(1.7, 1.3)
    X = inputs(5, 2, 7)
    np.testing.assert_allclose(Invariant(base, Identity())(X), base(X), rtol=1e-13, atol=1e-13)


def test_white_noise_may_be_added_outside() -> None:
    kernel = swap_invariant()
    X = inputs(4, 2, 8)
    np.testing.assert_allclose((kernel + kernels.White(0.3))(X), kernel(X) + 0.3 * np.eye(4), rtol=1e-13)


@pytest.mark.parametrize("base", [kernels.White(0.3), kernels.SquaredExponential() + kernels.White(0.3)])
def test_white_noise_inside_is_refused(base: kernels.Kernel) -> None:
    with pytest.raises(ValueError, match="base must not contain White"):
        Invariant(base, Permutation([[0, 1], [1, 0]]))


# -- gradients and parameters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["rbf", "ard", "matern", "linear", "combined"])
def test_gradients_with_respect_to_the_base_kernel(assert_gradients_match: Callable[..., None], base: str) -> None:
    kernel = Invariant(BASES[base][0](2), Permutation([[0, 1], [1, 0]]))
    X, X2 = inputs(3, 2, 10), inputs(4, 2, 11)
    directions = np.random.default_rng(12).normal(size=(3, 4))

    def total() -> tf.Tensor:
        return tf.reduce_sum(directions * kernel(X, X2)) + tf.reduce_sum(kernel(X, full_cov=False))

    assert_gradients_match(total, kernel.trainable_variables, step=1e-5, rtol=1e-6)


def test_parameters_of_base_and_orbit_are_its_own() -> None:
    base, orbit = kernels.SquaredExponential(), GaussianNoise(2)
    kernel = Invariant(base, orbit, name="mine")
    assert kernel.name == "mine"
    assert {id(p) for p in kernel.parameters} == {id(base.variance), id(base.lengthscales), id(orbit.scale)}


# -- in GPflow's models --------------------------------------------------------------------------------------------

NOISE = 0.05


def toy() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(13).uniform(-1, 1, size=(12, 2))
    return X, (np.sin(3 * X[:, :1]) + np.sin(3 * X[:, 1:])) * np.cos(X[:, :1] * X[:, 1:])


def posterior_in_numpy(X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    Ky, Kn = swap_kernel(X, X) + NOISE * np.eye(len(X)), swap_kernel(new, X)
    covariance = swap_kernel(new, new) - Kn @ np.linalg.solve(Ky, Kn.T)
    return Kn @ np.linalg.solve(Ky, Y), np.diag(covariance)


def optimise(loss: Callable[[], tf.Tensor], model: gpflow.models.GPModel, steps: int) -> None:
    # for so few steps, tracing would take longer than the steps
    gpflow.optimizers.Scipy().minimize(loss, model.trainable_variables, compile=False, options={"maxiter": steps})


def assert_symmetric(model: gpflow.models.GPModel, new: np.ndarray) -> None:
    there, back = model.predict_f(new), model.predict_f(new[:, ::-1].copy())
    np.testing.assert_allclose(there[0], back[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(there[1], back[1], rtol=0, atol=1e-9)


def test_exact_regression_is_that_of_the_double_sum() -> None:
    X, Y = toy()
    new = inputs(5, 2, 14)
    model = gpflow.models.GPR((X, Y), swap_invariant(), noise_variance=NOISE)
    mean, variance = model.predict_f(new)
    expected_mean, expected_variance = posterior_in_numpy(X, Y, new)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-8)
    np.testing.assert_allclose(variance[:, 0], expected_variance, atol=1e-8)
    K = swap_kernel(X, X) + NOISE * np.eye(len(X))
    evidence = -0.5 * (Y.T @ np.linalg.solve(K, Y)).item() - 0.5 * np.linalg.slogdet(2 * np.pi * K)[1]
    assert float(model.log_marginal_likelihood()) == pytest.approx(evidence, rel=1e-9)


def test_learned_regression_stays_symmetric() -> None:
    model = gpflow.models.GPR(toy(), swap_invariant(), noise_variance=NOISE)
    before = float(model.training_loss())
    optimise(model.training_loss, model, 5)
    assert float(model.training_loss()) < before - 0.1
    assert_symmetric(model, inputs(5, 2, 15))


def test_base_points_on_every_orbit_point_lose_nothing() -> None:
    X, Y = toy()
    new = inputs(5, 2, 16)
    Z = BasePoints(np.concatenate([X, X[:, ::-1]]))
    exact = gpflow.models.GPR((X, Y), swap_invariant(), noise_variance=NOISE)
    sparse = gpflow.models.SGPR((X, Y), swap_invariant(), Z, noise_variance=NOISE)
    # u = g(Z) fixes f at the data, so that the bound is tight up to GPflow's jitter
    assert float(sparse.elbo()) == pytest.approx(float(exact.log_marginal_likelihood()), abs=2e-3)
    assert float(sparse.elbo()) <= float(exact.log_marginal_likelihood())
    for found, expected in zip(sparse.predict_f(new), exact.predict_f(new), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_variational_posterior_with_base_points_is_that_of_plain_algebra() -> None:
    rng = np.random.default_rng(17)
    Z, new = rng.normal(size=(4, 2)), inputs(5, 2, 18)
    model = gpflow.models.SVGP(swap_invariant(), gpflow.likelihoods.Gaussian(), BasePoints(Z), whiten=False)
    m, T = rng.normal(size=(4, 1)), np.tril(rng.normal(size=(4, 4))) + 2 * np.eye(4)
    model.q_mu.assign(m)
    model.q_sqrt.assign(T[None])
    Kuu = np.array([[rbf(a, b) for b in Z] for a in Z]) + gpflow.default_jitter() * np.eye(4)
    Kuf = np.array([[(rbf(z, x) + rbf(z, x[::-1])) / 2 for x in new] for z in Z])
    A = np.linalg.solve(Kuu, Kuf)
    mean, variance = model.predict_f(new)
    np.testing.assert_allclose(mean, A.T @ m, rtol=1e-8, atol=1e-10)
    expected = np.diag(swap_kernel(new, new)) - np.sum(Kuf * A, 0) + np.sum((T.T @ A) ** 2, 0)
    np.testing.assert_allclose(variance[:, 0], expected, rtol=1e-8, atol=1e-10)
    assert_symmetric(model, new)


def test_learned_variational_model_stays_symmetric() -> None:
    X, Y = toy()
    model = gpflow.models.SVGP(
        swap_invariant(), gpflow.likelihoods.Gaussian(NOISE), BasePoints(X[:6].copy()), num_data=len(X)
    )
    loss = model.training_loss_closure((X, Y), compile=False)
    before = float(loss())
    optimise(loss, model, 10)
    assert float(loss()) < before - 1
    new = inputs(5, 2, 19)
    assert np.ptp(model.predict_f(new)[0]) > 1e-2
    assert_symmetric(model, new)


def test_ordinary_inducing_points_are_values_of_the_average() -> None:
    Z, X = inputs(3, 2, 20), inputs(4, 2, 21)
    points = gpflow.inducing_variables.InducingPoints(Z)
    np.testing.assert_allclose(gpflow.covariances.Kuu(points, swap_invariant()), swap_kernel(Z, Z), rtol=1e-10)
    np.testing.assert_allclose(gpflow.covariances.Kuf(points, swap_invariant(), X), swap_kernel(Z, X), rtol=1e-10)


# -- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "orbit", "D"),
    [
        (kernels.SquaredExponential, lambda: Rotation((2, 2)), 4),
        (kernels.SquaredExponential, lambda: Affine((2, 2)), 4),
        (kernels.Matern32, lambda: GaussianNoise(2), 2),
        (kernels.Linear, lambda: GaussianNoise(2), 2),
        (kernels.SquaredExponential, lambda: Composed([Identity()]), 2),
    ],
)
def test_orbits_without_a_closed_form_say_so(
    base: Callable[[], kernels.Kernel], orbit: Callable[[], FiniteOrbit], D: int
) -> None:
    kernel = Invariant(base(), orbit())
    X = np.zeros((2, D))
    message = f"{type(kernel.base).__name__} averaged over {type(kernel.orbit).__name__} has no exact value"
    for evaluate in (lambda: kernel(X), lambda: kernel(X, X), lambda: kernel(X, full_cov=False)):
        with pytest.raises(TypeError, match=message):
            evaluate()
    with pytest.raises(TypeError, match=message):
        gpflow.covariances.Kuf(BasePoints(X), kernel, X)


@pytest.mark.parametrize(
    ("base", "orbit", "message"),
    [
        ("rbf", Identity(), "base must be a Kernel, got str"),
        (Identity(), Identity(), "base must be a Kernel, got Identity"),
        (kernels.Linear(), kernels.Linear(), "orbit must be an Orbit, got Linear"),
        (kernels.Linear(), None, "orbit must be an Orbit, got NoneType"),
        (kernels.Linear(), Identity, "orbit must be an Orbit, got "),
    ],
)
def test_a_bad_base_or_orbit_is_named(base: object, orbit: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Invariant(base, orbit)  # type: ignore[arg-type]


def test_inputs_of_another_length_are_named() -> None:
    with pytest.raises(ValueError, match="X has 3 columns, the permutations are of 2 coordinates"):
        swap_invariant()(np.zeros((2, 3)))
    with pytest.raises(ShapeMismatchError, match=r"(?s)Argument: X2.*Actual: *\[2, 3\]"):
        swap_invariant()(np.zeros((2, 2)), np.zeros((2, 3)))
