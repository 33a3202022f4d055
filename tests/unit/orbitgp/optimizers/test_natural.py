import gpflow
import numpy as np
import pytest
import tensorflow as tf

from orbitgp import orbits
from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant
from orbitgp.models import InvariantSVGP, Quadratic
from orbitgp.optimizers.natural import NaturalPosterior, best_posterior, inverse_root
from orbitgp.schemes import FullOrbit

SEED = [1, 2]


def random_quadratic(rng, M=5, outputs=2, sign=1.0):
    """With an indefinite precision if ``sign`` is zero, a negative one if it is −1; the ceiling lies above it."""
    root, other = rng.normal(size=(2, M, M))
    precision = root @ root.T * sign if sign else (root + root.T) * 5
    above = np.abs(np.linalg.eigvalsh(precision)).max() * np.eye(M) + other @ other.T
    arrays = (rng.normal(size=(M, outputs)), precision, 0.7, above)
    return Quadratic(*(tf.constant(array, tf.float64) for array in arrays))


def free_energy(quadratic, mean, root):
    """The bound of q(v) = N(mean, root rootᵀ), in NumPy."""
    A, b = quadratic.precision.numpy(), quadratic.linear.numpy()
    covariance, (M, outputs) = root @ root.T, mean.shape
    fit = np.sum(mean * b) - 0.5 * np.sum(mean * (A @ mean)) - 0.5 * outputs * np.trace(A @ covariance)
    log_determinant = np.linalg.slogdet(covariance)[1]
    divergence = 0.5 * (np.sum(mean**2) + outputs * (np.trace(covariance) - M - log_determinant))
    return float(quadratic.constant) + fit - divergence


def set_q(model, mean, root):
    model.q_mu.assign(mean)
    model.q_sqrt.assign(root[None])


def advance(posterior, quadratic, rho):
    posterior.step(quadratic, rho, posterior.inverse_factor())


# -- the optimum ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("M", [1, 2, 7, 40])
def test_the_inverse_root_is_one_and_is_lower_triangular(M):
    rng = np.random.default_rng(M)
    root = rng.normal(size=(M, M))
    precision = root @ root.T + 0.1 * np.eye(M)
    found = inverse_root(tf.constant(precision)).numpy()
    assert np.array_equal(found, np.tril(found))
    assert np.all(np.diag(found) > 0)
    np.testing.assert_allclose(found @ found.T @ precision, np.eye(M), atol=1e-9)


def test_no_other_q_has_a_higher_bound(central_differences):
    rng = np.random.default_rng(0)
    quadratic = random_quadratic(rng)
    mean, root = (tensor.numpy() for tensor in best_posterior(quadratic))
    best = free_energy(quadratic, mean, root)
    for array, bound in (
        (mean, lambda value: free_energy(quadratic, value, root)),
        (root, lambda value: free_energy(quadratic, mean, value)),
    ):
        np.testing.assert_allclose(central_differences(bound, array), 0, atol=1e-7)
        for _ in range(20):
            assert bound(array + 0.1 * rng.normal(size=array.shape)) < best


def test_without_a_maximum_it_is_not_a_number():
    quadratic = random_quadratic(np.random.default_rng(0), sign=-1.0)
    mean, root = best_posterior(quadratic)
    assert not np.all(np.isfinite(mean))
    assert not np.all(np.isfinite(root))


def test_with_all_orbit_points_the_best_bound_is_the_marginal_likelihood(regression):
    X, Y = regression[0][:, :2], regression[1]
    kernel = Invariant(gpflow.kernels.SquaredExponential(1.3, 0.6), orbits.Permutation([[0, 1], [1, 0]]))
    Z = tf.reshape(kernel.orbit.full(X), [-1, 2]).numpy()
    model = InvariantSVGP(
        kernel,
        gpflow.likelihoods.Gaussian(0.3),
        BasePoints(Z),
        num_latent_gps=2,
        scheme=FullOrbit(),
        jitter=1e-9,
    )
    quadratic = model.quadratic((X, Y), SEED)
    set_q(model, *best_posterior(quadratic))
    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=0.3).log_marginal_likelihood()
    np.testing.assert_allclose(model.elbo((X, Y), seed=SEED), exact, rtol=1e-6)
    np.testing.assert_allclose(free_energy(quadratic, model.q_mu.numpy(), model.q_sqrt.numpy()[0]), exact, rtol=1e-6)


def test_with_fewer_points_the_best_bound_is_that_of_sparse_regression(make_model, regression):
    model = make_model(jitter=gpflow.default_jitter())
    set_q(model, *best_posterior(model.quadratic(regression, SEED)))
    collapsed = gpflow.models.SGPR(regression, model.kernel, model.inducing_variable, noise_variance=0.3)
    np.testing.assert_allclose(model.elbo(regression), collapsed.elbo(), rtol=1e-8)
    new = np.random.default_rng(9).normal(size=(4, 9))
    for ours, theirs in zip(model.predict_f(new), collapsed.predict_f(new), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("tilt", ["network", "table"])
def test_with_logistic_sites_no_other_q_has_a_higher_bound(tilt, make_model, signs, central_differences):
    model, data = make_model(tilt), (*signs, np.arange(len(signs[0])))
    set_q(model, *best_posterior(model.quadratic(data, SEED)))
    best = model.elbo(data, seed=SEED).numpy()
    mean, root = model.q_mu.numpy(), model.q_sqrt.numpy()[0]

    def bound(m, T):
        set_q(model, m, T)
        return model.elbo(data, seed=SEED).numpy()

    np.testing.assert_allclose(central_differences(lambda m: bound(m, root), mean), 0, atol=1e-7)
    rng = np.random.default_rng(0)
    for _ in range(10):
        assert bound(mean, root + 0.05 * np.tril(rng.normal(size=root.shape))) < best


# -- steps ---------------------------------------------------------------------------------------------------------


def test_the_posterior_starts_with_the_q_of_the_model_and_gives_it_back(make_model):
    model = make_model()
    mean, covariance = model.q_mu.numpy(), model.q_sqrt[0].numpy() @ model.q_sqrt[0].numpy().T
    posterior = NaturalPosterior(model)
    np.testing.assert_allclose(posterior.precision @ covariance, np.eye(len(mean)), atol=1e-10)
    np.testing.assert_allclose(posterior.factor @ tf.transpose(posterior.factor), posterior.precision, atol=1e-10)
    inverse = posterior.inverse_factor()
    np.testing.assert_allclose(tf.transpose(inverse) @ inverse, covariance, atol=1e-10)
    np.testing.assert_allclose(posterior.prior_kl(covariance), model.prior_kl(), rtol=1e-10)
    model.q_mu.assign(0 * mean)
    model.q_sqrt.assign(np.eye(len(mean))[None])
    posterior.write_back()
    np.testing.assert_array_equal(model.q_mu, mean)
    assert np.array_equal(model.q_sqrt[0], np.tril(model.q_sqrt[0]))
    np.testing.assert_allclose(model.q_sqrt[0] @ tf.transpose(model.q_sqrt[0]), covariance, atol=1e-10)


@pytest.mark.parametrize("rho", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("sign", [1.0, 0.0, -1.0])
def test_a_step_is_the_formula(rho, sign, make_model):
    rng = np.random.default_rng(0)
    posterior = NaturalPosterior(make_model())
    quadratic = random_quadratic(rng, M=6, sign=sign)
    old, mean = posterior.precision.numpy(), posterior.mean.numpy()
    posterior.ceiling.assign(posterior.ceiling + np.eye(6))  # apart from the precision
    ceiling = (1 - rho) * posterior.ceiling.numpy() + rho * (np.eye(6) + quadratic.ceiling.numpy())
    advance(posterior, quadratic, rho)
    G = rho * (np.eye(6) + quadratic.precision.numpy() - old)
    expected = old + G + 0.5 * G @ np.linalg.inv(old) @ G
    np.testing.assert_allclose(posterior.precision, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_allclose(
        posterior.factor @ tf.transpose(posterior.factor), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max()
    )
    slope = quadratic.linear - quadratic.precision @ mean - mean
    np.testing.assert_allclose(posterior.ceiling, ceiling, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(posterior.mean, mean + rho * np.linalg.solve(ceiling, slope), rtol=1e-7, atol=1e-9)


def test_scaled_by_the_precision_the_mean_takes_the_natural_step(make_model):
    rng = np.random.default_rng(3)
    posterior, quadratic = NaturalPosterior(make_model(), scale="precision"), random_quadratic(rng, M=6)
    mean = posterior.mean.numpy()
    advance(posterior, quadratic, 0.3)
    slope = quadratic.linear - quadratic.precision @ mean - mean
    expected = mean + 0.3 * np.linalg.solve(posterior.precision, slope)
    np.testing.assert_allclose(posterior.mean, expected, rtol=1e-7, atol=1e-9)
    with pytest.raises(ValueError, match=r"scale must be one of 'ceiling', 'precision', got 'mean'"):
        NaturalPosterior(make_model(), scale="mean")


@pytest.mark.parametrize("sign", [0.0, -1.0])
def test_the_covariance_stays_positive_whatever_the_batch_says(sign, make_model):
    rng = np.random.default_rng(3)
    posterior = NaturalPosterior(make_model())
    naive = False
    for _ in range(30):
        quadratic = random_quadratic(rng, M=6, sign=sign)
        naive |= np.linalg.eigvalsh(np.eye(6) + quadratic.precision)[0] < -1
        advance(posterior, quadratic, 1.0)
        assert np.linalg.eigvalsh(posterior.precision)[0] > 0
        assert np.all(np.isfinite(posterior.factor))
        assert np.all(np.isfinite(posterior.mean))
    assert naive  # a plain step would have left the cone


def test_a_start_from_some_of_the_data(make_model):
    posterior = NaturalPosterior(make_model())
    quadratic = random_quadratic(np.random.default_rng(0), M=6)
    posterior.start(quadratic.linear, quadratic.ceiling)
    expected = np.eye(6) + quadratic.ceiling
    np.testing.assert_array_equal(posterior.precision, expected)
    np.testing.assert_array_equal(posterior.ceiling, expected)
    np.testing.assert_allclose(posterior.factor @ tf.transpose(posterior.factor), expected, rtol=1e-10)
    np.testing.assert_allclose(posterior.mean, np.linalg.solve(expected, quadratic.linear), rtol=1e-9)


@pytest.mark.parametrize("rho", [1.0, 0.4])
def test_steps_on_one_quadratic_lead_to_its_best_q(rho, make_model, regression):
    model = make_model()
    quadratic = model.quadratic(regression, SEED)
    posterior = NaturalPosterior(model)
    for _ in range(30 if rho == 1 else 80):
        advance(posterior, quadratic, rho)
    posterior.write_back()
    mean, root = best_posterior(quadratic)
    np.testing.assert_allclose(model.q_mu, mean, atol=1e-9)
    np.testing.assert_allclose(model.q_sqrt[0], root, atol=1e-9)
    before = posterior.precision.numpy()
    advance(posterior, quadratic, rho)  # and stay there
    np.testing.assert_allclose(posterior.precision, before, atol=1e-9)


def test_a_small_step_is_the_natural_gradient_to_first_order(make_model, regression):
    """GPflow's natural gradient, which moves natural parameters, on its own SVGP of the same problem."""
    start = make_model()
    quadratic = start.quadratic(regression, SEED)
    distances, moves = [], []
    for rho in (4e-3, 2e-3, 1e-3):
        model = make_model()
        posterior = NaturalPosterior(model)
        advance(posterior, quadratic, rho)
        posterior.write_back()
        twin = gpflow.models.SVGP(
            start.kernel,
            start.likelihood,
            start.inducing_variable,
            num_latent_gps=2,
            num_data=start.num_data,
            q_mu=start.q_mu.numpy(),
            q_sqrt=np.tile(start.q_sqrt, (2, 1, 1)),
        )
        gpflow.optimizers.NaturalGradient(rho).minimize(
            twin.training_loss_closure(regression, compile=False), [(twin.q_mu, twin.q_sqrt)]
        )
        ours = np.concatenate([model.q_mu.numpy().ravel(), np.tile(model.q_sqrt, (2, 1, 1)).ravel()])
        theirs = np.concatenate([twin.q_mu.numpy().ravel(), twin.q_sqrt.numpy().ravel()])
        origin = np.concatenate([start.q_mu.numpy().ravel(), np.tile(start.q_sqrt, (2, 1, 1)).ravel()])
        distances.append(np.linalg.norm(ours - theirs))
        moves.append(np.linalg.norm(theirs - origin))
    assert min(moves) > 1e-4
    assert distances[2] < 0.05 * moves[2]
    for larger, smaller in ((0, 1), (1, 2)):  # half the step: half the move, a quarter of the difference
        assert moves[smaller] / moves[larger] == pytest.approx(0.5, abs=0.05)
        assert distances[smaller] / distances[larger] == pytest.approx(0.25, abs=0.05)
