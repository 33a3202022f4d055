import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy.integrate import quad
from scipy.stats import norm

from orbitgp.likelihoods import (
    Batch,
    IndependentGroups,
    Moments,
    PolyaGammaBernoulli,
    RecognitionNetwork,
    TiltTable,
    expected_log_density,
    polya_gamma_bound,
    polya_gamma_precision,
    polya_gamma_sites,
    quadratic_sites,
    slope,
)

CASES = [(y, mean, deviation) for y in (-1.0, 1.0) for mean in (-3.0, -0.4, 0.0, 2.0) for deviation in (0.05, 1.0, 4.0)]


def column(*values):
    return np.array(values)[:, None]


def expected_log_sigmoid(y, mean, deviation):
    return quad(
        lambda f: -np.logaddexp(0, -y * f) * norm.pdf(f, mean, deviation),
        mean - 12 * deviation,
        mean + 12 * deviation,
        points=[mean],
    )[0]


def bound(y, mean, deviation, c):
    return polya_gamma_bound(column(y), column(mean), column(mean**2 + deviation**2), column(c)).numpy()[0, 0]


@pytest.mark.parametrize(("y", "mean", "deviation"), CASES)
def test_the_bound_lies_below_quadrature_and_is_tightest_at_the_second_moment(y, mean, deviation):
    exact = expected_log_sigmoid(y, mean, deviation)
    best = np.sqrt(mean**2 + deviation**2)
    tilts = np.concatenate([[0.0, 1e-4], np.geomspace(1e-2, 30, 60)])
    values = np.array([bound(y, mean, deviation, c) for c in tilts])
    assert np.all(values <= exact + 1e-9)
    assert bound(y, mean, deviation, best) >= values.max() - 1e-12
    step = 1e-4
    for c in (best - step, best + step):
        assert bound(y, mean, deviation, c) <= bound(y, mean, deviation, best)


def test_the_bound_is_the_polya_gamma_one():
    """−½θ(c)E f² + ½yμ − log 2 − KL(PG(1, c) ‖ PG(1, 0)), the KL being log cosh(c/2) − ½c²θ(c)."""
    y, mean, second, c = -1.0, 0.3, 1.7, 2.2
    theta = np.tanh(c / 2) / (2 * c)
    divergence = np.log(np.cosh(c / 2)) - 0.5 * c**2 * theta
    expected = 0.5 * y * mean - 0.5 * theta * second - np.log(2) - divergence
    found = polya_gamma_bound(column(y), column(mean), column(second), column(c))
    np.testing.assert_allclose(found, [[expected]], rtol=1e-13)


def test_the_precision_is_smooth_through_its_limit():
    tilts = tf.constant([0.0, 1e-8, 0.999e-3, 1.001e-3, 1.0, 1e4], tf.float64)
    found = polya_gamma_precision(tilts).numpy()
    np.testing.assert_allclose(found[:2], 0.25, rtol=1e-12)
    np.testing.assert_allclose(found[2:], np.tanh(tilts[2:] / 2) / (2 * tilts[2:]), rtol=1e-10)


def moments(rng, N=4, P=2):
    mean = rng.normal(size=(N, P))
    return Moments(tf.constant(mean), tf.constant(mean**2), tf.constant(rng.uniform(0.1, 1, size=(N, 1))))


def never():
    raise AssertionError("the independent estimate was asked for")


def test_the_gaussian_expectation_is_gpflows_when_the_moments_are_exact():
    rng = np.random.default_rng(0)
    likelihood, found = gpflow.likelihoods.Gaussian(0.4), moments(rng)
    X, Y = tf.zeros([4, 3], tf.float64), tf.constant(rng.normal(size=(4, 2)))
    ours = expected_log_density(likelihood, Batch(X, Y), found, never)
    variance = tf.broadcast_to(found.variance, [4, 2])
    np.testing.assert_allclose(ours, likelihood.variational_expectations(X, found.mean, variance, Y), rtol=1e-12)


def test_the_sites_of_a_gaussian_are_its_log_density():
    rng = np.random.default_rng(1)
    F, Y, noise = rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), 0.3
    sites = quadratic_sites(gpflow.likelihoods.Gaussian(noise), Batch(tf.zeros([5, 3], tf.float64), Y), never)
    np.testing.assert_allclose(sites.expectation(F, F**2), norm.logpdf(Y, F, np.sqrt(noise)), rtol=1e-12)
    assert sites.precision.shape == (5, 1)  # the same for all outputs


def test_the_sites_of_a_logistic_likelihood_lie_below_it_and_touch_it_at_the_tilt():
    F, tilt = np.linspace(-8, 8, 41)[:, None], np.linspace(0.3, 6, 41)[:, None]
    for y in (-1.0, 1.0):
        Y = np.full_like(F, y)
        sites = polya_gamma_sites(tf.constant(Y), tf.constant(tilt))
        assert np.all(sites.expectation(F, F**2) <= -np.logaddexp(0, -Y * F) + 1e-12)
        for sign in (-1, 1):
            touching = sign * tilt
            np.testing.assert_allclose(
                sites.expectation(touching, touching**2), -np.logaddexp(0, -Y * touching), atol=1e-12
            )


@pytest.mark.parametrize("c", [0.0, 1e-9, 800.0, 1e5])
def test_the_sites_and_their_gradients_are_finite_at_both_ends(c):
    tilt = tf.constant([[c]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(tilt)
        sites = polya_gamma_sites(tf.ones([1, 1], tf.float64), tilt)
        total = tf.add_n([sites.linear, sites.precision, sites.constant])
    assert np.isfinite(total)
    assert np.isfinite(tape.gradient(total, tilt))


def test_sites_ask_for_the_independent_estimate_only_where_it_is_needed():
    Y = tf.constant([[1.0], [-1.0]], tf.float64)
    batch = Batch(tf.zeros([2, 3], tf.float64), Y, tf.constant([1, 0]))
    for tilt in (RecognitionNetwork(3), TiltTable(2)):
        likelihood = PolyaGammaBernoulli(tilt)
        found = quadratic_sites(likelihood, batch, never)
        np.testing.assert_array_equal(found.precision, polya_gamma_precision(likelihood.tilt(batch, never)))
    square, variance = tf.constant([[3.0], [-0.5]], tf.float64), tf.constant([[1.0], [0.25]], tf.float64)
    found = quadratic_sites(PolyaGammaBernoulli(IndependentGroups()), batch, lambda: Moments(None, square, variance))
    best = tf.constant([[2.0], [0.0]], tf.float64)  # an estimate below zero is forgiven
    np.testing.assert_allclose(found.precision, polya_gamma_precision(best), rtol=1e-14)
    np.testing.assert_array_equal(found.linear, 0.5 * Y)


def test_a_noise_that_depends_on_the_input_is_used():
    function = gpflow.functions.Linear([[1.0]], [0.5])
    likelihood = gpflow.likelihoods.Gaussian(variance=function)
    X = tf.constant([[0.0], [2.0]], tf.float64)
    found = Moments(*(tf.zeros([2, 1], tf.float64) for _ in range(3)))
    ours = expected_log_density(likelihood, Batch(X, tf.zeros([2, 1], tf.float64)), found, never)
    np.testing.assert_allclose(ours, -0.5 * np.log(2 * np.pi * np.array([0.5, 2.5])), rtol=1e-10)


@pytest.mark.parametrize("kind", ["gaussian", "logistic"])
def test_a_row_counts_as_often_as_its_weight_says(kind):
    rng = np.random.default_rng(8)
    weights, X = np.array([0.0, 0.5, 1.0, 3.0]), tf.constant(rng.normal(size=(4, 3)))
    Y = np.sign(rng.normal(size=(4, 1))) if kind == "logistic" else rng.normal(size=(4, 2))
    likelihood = (
        PolyaGammaBernoulli(RecognitionNetwork(3, (4,))) if kind == "logistic" else gpflow.likelihoods.Gaussian()
    )
    found = moments(rng, P=Y.shape[1])
    plain, weighted = (
        expected_log_density(likelihood, Batch(X, tf.constant(Y), None, weight), found, never).numpy()
        for weight in (None, tf.constant(weights))
    )
    assert np.all(plain != 0)
    np.testing.assert_allclose(weighted, weights * plain, rtol=1e-12)


def test_the_slope_is_the_residual():
    """In closed form, and by differences of the log density, row by row."""
    rng = np.random.default_rng(3)
    X, F, Y = np.zeros((6, 3)), 3 * rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    gaussian, logistic = gpflow.likelihoods.Gaussian(0.3), PolyaGammaBernoulli(IndependentGroups())
    np.testing.assert_allclose(slope(gaussian, X, F, Y), np.linalg.norm(Y - F, axis=1) / 0.3, rtol=1e-12)
    signs = np.sign(Y[:, :1])
    np.testing.assert_allclose(
        slope(logistic, X, F[:, :1], signs), 1 / (1 + np.exp(signs * F[:, :1]))[:, 0], rtol=1e-12
    )
    for likelihood, targets in ((gaussian, Y), (logistic, np.sign(Y))):
        step = 1e-6 * np.eye(2)
        for row in range(6):
            ends = [
                likelihood.log_prob(X[:1], F[row : row + 1] + sign * way, targets[row : row + 1]).numpy()[0]
                for way in step
                for sign in (1, -1)
            ]
            expected = np.hypot(ends[0] - ends[1], ends[2] - ends[3]) / 2e-6
            np.testing.assert_allclose(slope(likelihood, X, F, targets)[row], expected, rtol=1e-6)


def test_the_network_depends_on_input_and_label_and_starts_near_one():
    network = RecognitionNetwork(5, hidden=(16, 8), outputs=2, seed=1)
    rng = np.random.default_rng(0)
    X, Y = tf.constant(rng.normal(size=(6, 5))), tf.constant(np.sign(rng.normal(size=(6, 2))))
    c = network(Batch(X, Y), never)
    assert c.shape == (6, 2)
    assert np.all(c > 0)
    assert 0.3 < np.mean(c) < 3
    assert np.all(np.abs(network(Batch(X, -Y), never) - c) > 0)
    assert np.all(np.abs(network(Batch(X + 1, Y), never) - c) > 0)
    assert len(network.trainable_variables) == 6
    for i in range(6):
        values = np.append(X[i], Y[i])
        for weights, offsets in zip(network.weights[:-1], network.offsets[:-1], strict=True):
            values = np.maximum(values @ weights.numpy() + offsets.numpy(), 0)
        last = values @ network.weights[-1].numpy() + network.offsets[-1].numpy()
        np.testing.assert_allclose(c[i], np.log1p(np.exp(last)), rtol=1e-12)
    again = RecognitionNetwork(5, hidden=(16, 8), outputs=2, seed=1)
    np.testing.assert_array_equal(again(Batch(X, Y), never), c)
    single = RecognitionNetwork(5, hidden=(), outputs=2)
    assert single(Batch(tf.cast(X, tf.float32), Y), never).dtype == tf.float64


def test_the_table_gathers_its_rows():
    table = TiltTable(5, outputs=2)
    table.values.assign(np.arange(1.0, 11.0).reshape(5, 2))
    batch = Batch(tf.zeros([2, 1]), tf.ones([2, 2], tf.float64), tf.constant([4, 0]))
    np.testing.assert_allclose(table(batch, never), [[9, 10], [1, 2]], rtol=1e-12)


def test_independent_groups_take_what_is_best_and_stop_its_gradient():
    best = tf.constant([[4.0], [-0.1]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(best)
        found = IndependentGroups()(None, lambda: best)
    np.testing.assert_array_equal(found, best)
    assert tape.gradient(found, best) is None


def test_numbers_of_either_sign_come_after_the_positive_ones():
    rng = np.random.default_rng(0)
    X, Y = tf.constant(rng.normal(size=(6, 5))), tf.constant(np.eye(3)[rng.integers(3, size=6)])
    network = RecognitionNetwork(5, hidden=(8,), outputs=4, labels=3, real=2)
    found = network(Batch(X, Y), never).numpy()
    assert found.shape == (6, 6)
    assert np.all(found[:, :4] > 0) and np.any(found[:, 4:] < 0) and np.any(found[:, 4:] > 0)
    table = TiltTable(7, outputs=4, real=2)
    table.real.assign(np.arange(14.0).reshape(7, 2) - 5)
    found = table(Batch(X[:2], Y[:2], tf.constant([6, 0])), never)
    np.testing.assert_allclose(found, [[1, 1, 1, 1, 7, 8], [1, 1, 1, 1, -5, -4]], rtol=1e-12)


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (1.5, 0.2), (-2.0, 2.0)])
def test_predictive_probabilities_against_quadrature(mean, deviation):
    likelihood = PolyaGammaBernoulli(IndependentGroups())
    exact = quad(
        lambda f: norm.pdf(f, mean, deviation) / (1 + np.exp(-f)), mean - 12 * deviation, mean + 12 * deviation
    )[0]
    Fmu, Fvar = tf.constant([[mean]], tf.float64), tf.constant([[deviation**2]], tf.float64)
    assert likelihood.predict_probability(Fmu, Fvar).numpy()[0, 0] == pytest.approx(exact, abs=2e-4)
    X = tf.zeros([1, 0], tf.float64)
    average, spread = likelihood.predict_mean_and_var(X, Fmu, Fvar)
    assert average.numpy()[0, 0] == pytest.approx(2 * exact - 1, abs=4e-4)
    assert spread.numpy()[0, 0] == pytest.approx(1 - (2 * exact - 1) ** 2, abs=2e-3)  # of a label ±1
    for y, p in ((1.0, exact), (-1.0, 1 - exact)):
        density = likelihood.predict_log_density(X, Fmu, Fvar, tf.constant([[y]], tf.float64))
        assert np.exp(density.numpy()[0]) == pytest.approx(p, abs=2e-4)
        expectation = likelihood.variational_expectations(X, Fmu, Fvar, tf.constant([[y]], tf.float64))
        assert expectation.numpy()[0] == pytest.approx(expected_log_sigmoid(y, mean, deviation), abs=2e-3)
