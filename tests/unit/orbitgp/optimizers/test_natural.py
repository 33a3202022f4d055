from dataclasses import replace

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from orbitgp import orbits
from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant
from orbitgp.models import COVARIANCES, InvariantSVGP, Quadratic
from orbitgp.optimizers.natural import NaturalPosterior, best_posterior, inverse_root
from orbitgp.schemes import FullOrbit

SEED = [1, 2]


def random_quadratic(rng, M=6, outputs=2, sign=1.0, precisions=1):
    """With an indefinite precision if ``sign`` is zero, a negative one if it is −1; the ceiling lies above it."""
    precision, above = np.zeros((2, precisions, M, M))
    linear = rng.normal(size=(M, outputs))
    for i in range(precisions):
        root, other = rng.normal(size=(2, M, M))
        precision[i] = root @ root.T * sign if sign else (root + root.T) * 5
        above[i] = np.abs(np.linalg.eigvalsh(precision[i])).max() * np.eye(M) + other @ other.T
    return Quadratic(*(tf.constant(array, tf.float64) for array in (linear, precision, 0.7, above)))


def free_energy(quadratic, mean, root):
    """The bound of q(v_p) = N(mean_p, root_p root_pᵀ), in NumPy, output by output."""
    M, outputs = mean.shape
    bound = float(quadratic.constant)
    for p in range(outputs):
        A = quadratic.precision.numpy()[p % quadratic.precision.shape[0]]
        m, b, T = mean[:, p], quadratic.linear.numpy()[:, p], root[p % len(root)]
        covariance = T @ T.T
        bound += m @ b - 0.5 * m @ A @ m - 0.5 * np.trace(A @ covariance)
        bound -= 0.5 * (m @ m + np.trace(covariance) - M - np.linalg.slogdet(covariance)[1])
    return bound


def set_q(model, mean, root):
    model.q_mu.assign(mean)
    model.q_sqrt.assign(np.broadcast_to(root, model.q_sqrt.shape))


# -- the optimum ---------------------------------------------------------------------------------------------------


def test_the_inverse_root_is_one_and_is_lower_triangular():
    for M in (1, 2, 40):
        root = np.random.default_rng(M).normal(size=(M, M))
        precision = root @ root.T + 0.1 * np.eye(M)
        found = inverse_root(tf.constant(precision)).numpy()
        assert np.array_equal(found, np.tril(found)) and np.all(np.diag(found) > 0)
        np.testing.assert_allclose(found @ found.T @ precision, np.eye(M), atol=1e-9)


@pytest.mark.parametrize("precisions", [1, 2])
def test_no_other_q_has_a_higher_bound(precisions, central_differences):
    rng = np.random.default_rng(0)
    quadratic = random_quadratic(rng, precisions=precisions)
    mean, root = (tensor.numpy() for tensor in best_posterior(quadratic))
    assert root.shape == (precisions, 6, 6)
    best = free_energy(quadratic, mean, root)
    for array, bound in (
        (mean, lambda value: free_energy(quadratic, value, root)),
        (root, lambda value: free_energy(quadratic, mean, value)),
    ):
        np.testing.assert_allclose(central_differences(bound, array), 0, atol=1e-7)
        for _ in range(20):
            assert bound(array + 0.1 * rng.normal(size=array.shape)) < best
    for tensor in best_posterior(random_quadratic(rng, sign=-1.0)):  # there is no maximum
        assert not np.all(np.isfinite(tensor))


def test_with_all_orbit_points_the_best_bound_is_the_marginal_likelihood(regression):
    X, Y = regression[0][:, :2], regression[1]
    kernel = Invariant(gpflow.kernels.SquaredExponential(1.3, 0.6), orbits.Permutation([[0, 1], [1, 0]]))
    Z = BasePoints(tf.reshape(kernel.orbit.full(X), [-1, 2]).numpy())
    likelihood = gpflow.likelihoods.Gaussian(0.3)
    model = InvariantSVGP(kernel, likelihood, Z, num_latent_gps=2, scheme=FullOrbit(), jitter=1e-9)
    quadratic = model.quadratic((X, Y), SEED)
    set_q(model, *best_posterior(quadratic))
    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=0.3).log_marginal_likelihood()
    np.testing.assert_allclose(model.elbo((X, Y), seed=SEED), exact, rtol=1e-6)
    np.testing.assert_allclose(free_energy(quadratic, model.q_mu.numpy(), model.q_sqrt.numpy()), exact, rtol=1e-6)


def test_with_fewer_points_the_best_bound_is_that_of_sparse_regression(make_model, regression):
    model = make_model(jitter=gpflow.default_jitter())
    set_q(model, *best_posterior(model.quadratic(regression, SEED)))
    collapsed = gpflow.models.SGPR(regression, model.kernel, model.inducing_variable, noise_variance=0.3)
    np.testing.assert_allclose(model.elbo(regression), collapsed.elbo(), rtol=1e-8)
    new = np.random.default_rng(9).normal(size=(4, 9))
    for ours, theirs in zip(model.predict_f(new), collapsed.predict_f(new), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("tilt", ["network", "table"])
def test_with_logistic_sites_no_other_q_has_a_higher_bound(tilt, make_model, signs):
    model, data = make_model(tilt), (*signs, np.arange(len(signs[0])))
    set_q(model, *best_posterior(model.quadratic(data, SEED)))
    with tf.GradientTape() as tape:
        best = model.elbo(data, seed=SEED)
    for gradient in tape.gradient(best, [model.q_mu.unconstrained_variable, model.q_sqrt.unconstrained_variable]):
        np.testing.assert_allclose(gradient, 0, atol=1e-7)
    rng, root, mean = np.random.default_rng(0), model.q_sqrt.numpy(), model.q_mu.numpy()
    for _ in range(3):
        set_q(model, mean, root + 0.05 * np.tril(rng.normal(size=root.shape)))
        assert model.elbo(data, seed=SEED) < best


# -- steps ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", COVARIANCES)
def test_the_posterior_starts_with_the_q_of_the_model_and_gives_it_back(shape, make_model):
    model = make_model(covariance=shape)
    mean, root = model.q_mu.numpy(), model.q_sqrt.numpy()
    covariance = root @ np.swapaxes(root, 1, 2)
    assert len(root) == (1 if shape == "shared" else 2)
    posterior = NaturalPosterior(model)
    np.testing.assert_allclose(posterior.covariance(), covariance, atol=1e-10)
    np.testing.assert_allclose(posterior.prior_kl(covariance), model.prior_kl(), rtol=1e-10)
    set_q(model, 0 * mean, np.eye(len(mean)))
    posterior.write_back()
    np.testing.assert_array_equal(model.q_mu, mean)
    found = model.q_sqrt.numpy()
    assert np.array_equal(found, np.tril(found))
    np.testing.assert_allclose(found @ np.swapaxes(found, 1, 2), covariance, atol=1e-10)


@pytest.mark.parametrize(
    ("rho", "sign", "scale", "shortened"),
    [(0.001, 0.0, "ceiling", False), (1.0, -1.0, "ceiling", True), (0.3, 1, "precision", True)],
)
@pytest.mark.parametrize(("covariance", "precisions"), [("shared", 1), ("per_output", 2), ("per_output", 1)])
def test_a_step_is_the_formula(rho, sign, scale, shortened, covariance, precisions, make_model):
    """Output by output: the step of one is not shortened for another."""
    posterior = NaturalPosterior(make_model(covariance=covariance), scale)
    quadratic = random_quadratic(np.random.default_rng(0), sign=sign, precisions=precisions)
    posterior.roots.assign(posterior.roots * np.array([1.0, 0.8])[:, None, None, None])  # C apart from Λ
    old, mean = posterior.roots.numpy(), posterior.mean.numpy()
    posterior.step(quadratic, rho)
    lengths = set()
    for p in range(2):
        given, found = (roots[:, p % roots.shape[1]] for roots in (old, posterior.roots.numpy()))
        precision, ceiling = (part.numpy()[p % precisions] for part in (quadratic.precision, quadratic.ceiling))
        changes = given @ (np.eye(6) + np.stack([precision, ceiling])) @ np.swapaxes(given, 1, 2) - np.eye(6)
        longest = max(np.sum(np.linalg.eigvalsh(E) ** 8) ** (1 / 8) for E in changes)
        assert shortened == (rho * longest > 1)
        length = min(rho, 1 / longest)
        lengths.add(length)
        expected = []
        for root, E in zip(given, changes, strict=True):
            P = length * (np.tril(E, -1) + 0.5 * np.diag(np.diag(E)))
            expected.append((np.eye(6) - P + 0.5 * P @ P) @ root)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        slope = quadratic.linear.numpy()[:, p] - precision @ mean[:, p] - mean[:, p]
        inverse = expected[scale == "ceiling"].T @ expected[scale == "ceiling"]
        np.testing.assert_allclose(posterior.mean[:, p], mean[:, p] + length * inverse @ slope, rtol=1e-8, atol=1e-8)
    assert len(lengths) == (2 if shortened and covariance == "per_output" else 1)


@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e2, 1e6])
def test_a_direction_that_no_batch_had_shown_before_is_not_overshot(strength, make_model):
    """All of a batch's data lie along u, whose best mean is y: the step goes there part of the way."""
    model, u, y = (
        make_model(),
        np.linspace(1, 2, 6)[:, None] / np.linalg.norm(np.linspace(1, 2, 6)),
        np.array([[3, -2]]),
    )
    set_q(model, np.zeros((6, 2)), np.eye(6))
    posterior = NaturalPosterior(model)
    pull = tf.constant(strength * u @ u.T)[None]
    posterior.step(Quadratic(tf.constant(strength * u @ y), pull, tf.constant(0.0, tf.float64), pull), 0.3)
    share = (u.T @ posterior.mean.numpy()) / y
    assert np.all(share > 0) and np.all(share < 1)
    aside = posterior.mean.numpy() - u @ (share * y)  # by the higher powers of X that products leave out
    assert np.linalg.norm(aside) < 0.25 * np.linalg.norm(share * y)


def test_the_covariance_stays_positive_whatever_the_batch_says(make_model):
    rng, posterior, naive = np.random.default_rng(3), NaturalPosterior(make_model()), False
    for number in range(30):
        quadratic = random_quadratic(rng, sign=-(number % 2))
        naive |= np.linalg.eigvalsh(np.eye(6) + quadratic.precision).min() < -1
        posterior.step(quadratic, 1.0)
        assert np.all(np.isfinite(posterior.roots)) and np.all(np.isfinite(posterior.mean))
        assert np.array_equal(posterior.roots, np.tril(posterior.roots))
        assert np.all(np.diagonal(posterior.roots, axis1=2, axis2=3) > 0)
    assert naive  # a plain step would have left the cone


@pytest.mark.parametrize("largest", [1.0, 8.9, 16.0, 100.0])
def test_only_a_variance_far_beyond_the_prior_is_brought_back(largest, make_model):
    """On a batch whose best Λ is the present one, the step is that of min(2 − 6/√s, 1) e eᵀ alone."""
    rng, posterior = np.random.default_rng(0), NaturalPosterior(make_model())
    e = rng.standard_normal(6) / 3
    root = np.linalg.cholesky(0.5 * np.eye(6) + (largest - 0.5) * np.outer(e, e) / (e @ e))
    posterior.roots.assign(np.stack([root, root])[:, None])
    precision = tf.constant(np.linalg.inv(root.T @ root) - np.eye(6))[None]
    zero = tf.zeros([6, 2], tf.float64)
    posterior.step(Quadratic(zero, precision, tf.constant(0.0, tf.float64), precision), 0.1)
    share = min(max(0, 2 - 6 / np.sqrt(largest)), 1)
    X = share * np.outer(e, e) / (e @ e)
    P = np.tril(X, -1) + 0.5 * np.diag(np.diag(X))
    np.testing.assert_allclose(posterior.roots[0, 0], (np.eye(6) - P + 0.5 * P @ P) @ root, atol=1e-3 * share + 1e-10)
    assert (np.linalg.eigvalsh(posterior.covariance()[0]).max() < 0.9 * largest) == (share > 0)


@pytest.mark.parametrize("covariance", ["shared", "per_output"])
def test_noise_of_many_times_the_precision_does_not_let_a_variance_walk_off(covariance, make_model):
    """Batches of mean Λ = 4 I, with noise 30 times that; without a way back, variances grow on and on."""
    rng, posterior, M = np.random.default_rng(0), NaturalPosterior(make_model(covariance=covariance)), 6
    outputs, largest, middle = len(posterior.roots[0]), [], []
    nothing = tf.constant(0.0, tf.float64)

    @tf.function
    def step(precision):
        posterior.step(Quadratic(nothing * posterior.mean, precision, nothing, tf.abs(precision)), 0.01)
        return tf.linalg.eigvalsh(posterior.covariance())

    for _ in range(1000):
        noise = rng.standard_normal((outputs, M, M))
        variances = step(tf.constant(3 * np.eye(M) + 120 * (noise + np.swapaxes(noise, 1, 2)) / np.sqrt(2 * M)))
        largest.append(np.max(variances))
        middle.append(np.median(variances))
    assert 9 < max(largest) < 50
    assert 0.1 < np.median(middle) * 4 < 2


@pytest.mark.parametrize(("rho", "steps"), [(1.0, 60), (0.4, 120)])
def test_steps_on_one_quadratic_lead_to_its_best_q(rho, steps, make_model, regression):
    model = make_model()
    lead_to_the_best(model, model.quadratic(regression, SEED), rho, steps)


@pytest.mark.parametrize("precisions", [1, 2])
def test_each_output_with_a_covariance_of_its_own_comes_to_its_best_q(precisions, make_model):
    drawn = random_quadratic(np.random.default_rng(1), precisions=precisions)
    quadratic = replace(drawn, ceiling=drawn.precision)  # as where nothing is drawn at random
    lead_to_the_best(make_model(covariance="per_output"), quadratic, 0.4, 200)


def lead_to_the_best(model, quadratic, rho, steps):
    posterior = NaturalPosterior(model)
    for _ in range(steps):
        posterior.step(quadratic, rho)
    posterior.write_back()
    mean, root = best_posterior(quadratic)
    np.testing.assert_allclose(model.q_mu, mean, atol=1e-9)
    np.testing.assert_allclose(model.q_sqrt, np.broadcast_to(root, model.q_sqrt.shape), atol=1e-9)


def test_a_small_step_is_the_natural_gradient_to_first_order(make_model, exact_twin, regression):
    """GPflow's natural gradient, which moves natural parameters, on its own SVGP of the same problem."""
    start = make_model()
    quadratic = start.quadratic(regression, SEED)

    def flat(model):
        return np.append(model.q_mu, np.broadcast_to(model.q_sqrt, (2, 6, 6)))

    distances, moves = [], []
    for rho in (2e-3, 1e-3):
        model = make_model()
        posterior = NaturalPosterior(model)
        posterior.step(quadratic, rho)
        posterior.write_back()
        twin = exact_twin(start)
        gpflow.optimizers.NaturalGradient(rho).minimize(
            twin.training_loss_closure(regression, compile=False), [(twin.q_mu, twin.q_sqrt)]
        )
        distances.append(np.linalg.norm(flat(model) - flat(twin)))
        moves.append(np.linalg.norm(flat(twin) - flat(start)))
    assert min(moves) > 1e-4 and distances[1] < 0.05 * moves[1]
    # half the step: half the move, a quarter of the difference
    assert moves[1] / moves[0] == pytest.approx(0.5, abs=0.05)
    assert distances[1] / distances[0] == pytest.approx(0.25, abs=0.05)
