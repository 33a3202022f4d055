"""Likelihoods of several classes: bounds against long averages, predictions, and natural steps."""

import numpy as np
import pytest
import tensorflow as tf
from class_models import TILTED, WHOLE, D, K, M, N, labelled, likelihood_of, make_model
from scipy.special import expit, log_softmax
from scipy.stats import norm

from orbitgp import orbits
from orbitgp.fitting.scores import Tester, named_parameters
from orbitgp.likelihoods import (
    Batch,
    DirichletLabels,
    Moments,
    RecognitionNetwork,
    Softmax,
    expected_log_density,
    logistic_softmax_sites,
    polya_gamma_bound,
    quadratic_sites,
    slope,
    softmax_bound,
)
from orbitgp.likelihoods.classes import normal_points
from orbitgp.optimizers.natural import NaturalPosterior, best_posterior
from orbitgp.schemes import Groups

#: spreads of the means, and standard deviations of f
GAUSSIANS = [(0.5, 0.3), (2.0, 0.5), (4.0, 1.0), (8.0, 3.0)]


KINDS = [
    *((kind, tilt) for kind in TILTED for tilt in ("groups", "network", "table")),
    ("dirichlet", None),
]


def gaussians(spread, deviation, classes=K, count=6, seed=0):
    """Means and variances [count, classes], and one-hot labels that such an f makes likely."""
    rng = np.random.default_rng(seed)
    mean = spread * rng.normal(size=(count, classes))
    variance = (deviation * rng.uniform(0.5, 1.5, size=mean.shape)) ** 2
    return mean, variance, np.eye(classes)[(mean + 2 * rng.normal(size=mean.shape)).argmax(1)]


def moments_of(mean, variance):
    return Moments(*(tf.constant(array) for array in (mean, mean**2, variance)))


def samples(mean, variance, count=40_000):
    noise = np.random.default_rng(1).normal(size=(count // 2, *mean.shape))
    return mean + np.sqrt(variance) * np.concatenate([noise, -noise])


def never():
    raise AssertionError("the independent estimate was asked for")


def bound_of(kind, Y, mean, variance, local):
    """[N], for local parameters [N, L], which may be a tensor with a derivative."""
    if kind == "softmax":
        return softmax_bound(Y, mean, variance, local[:, :-1], local[:, -1:])
    sites = logistic_softmax_sites(tf.constant(Y), *tf.split(local, 2, axis=-1))
    return tf.reduce_sum(sites.expectation(mean, mean**2 + variance), axis=-1)


def log_probabilities(kind, F):
    return log_softmax(F if kind == "softmax" else np.log(expit(F)), axis=-1)


# -- the bounds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spread", "deviation"), GAUSSIANS)
@pytest.mark.parametrize("kind", TILTED)
def test_the_bound_lies_below_a_long_average_and_is_tightest_at_the_closed_form(kind, spread, deviation, monkeypatch):
    monkeypatch.setattr("orbitgp.likelihoods.softmax.ROUNDS", 300)
    mean, variance, Y = gaussians(spread, deviation)
    values = (Y * log_probabilities(kind, samples(mean, variance))).sum(-1)
    exact, error = values.mean(0), values.std(0) / np.sqrt(len(values))
    local = TILTED[kind].best_local(moments_of(mean, variance))
    best = bound_of(kind, Y, mean, variance, local).numpy()
    assert np.all(best < exact + 4 * error)
    rng = np.random.default_rng(2)
    for size in (0.01, 0.1, 1.0):
        for _ in range(20):
            other = local * np.exp(size * rng.normal(size=local.shape))
            found = bound_of(kind, Y, mean, variance, other).numpy()
            assert np.all(found < best + 1e-9)


@pytest.mark.parametrize(("spread", "deviation"), GAUSSIANS)
@pytest.mark.parametrize("kind", TILTED)
def test_at_the_closed_form_the_bound_is_flat_in_the_local_parameters(kind, spread, deviation, monkeypatch):
    monkeypatch.setattr("orbitgp.likelihoods.softmax.ROUNDS", 300)
    mean, variance, Y = gaussians(spread, deviation)
    local = TILTED[kind].best_local(moments_of(mean, variance))
    with tf.GradientTape() as tape:
        tape.watch(local)
        total = tf.reduce_sum(bound_of(kind, Y, mean, variance, local))
    np.testing.assert_allclose(tape.gradient(total, local), 0, atol=1e-8)


@pytest.mark.parametrize(("spread", "deviation"), GAUSSIANS)
def test_so_few_rounds_are_enough(spread, deviation, monkeypatch):
    mean, variance, Y = gaussians(spread, deviation, classes=10, count=50)
    found = []
    for rounds in (None, 300):
        if rounds is not None:
            monkeypatch.setattr("orbitgp.likelihoods.softmax.ROUNDS", rounds)
        local = Softmax.best_local(moments_of(mean, variance))
        found.append(bound_of("softmax", Y, mean, variance, local).numpy())
    assert np.mean(found[1] - found[0]) < 0.02


def test_the_softmax_bound_is_the_printed_one():
    mean, variance, Y = gaussians(2.0, 0.7)
    c, a = np.random.default_rng(3).uniform(0.1, 4, size=mean.shape), np.linspace(-1, 2, 6)[:, None]
    curvature = np.tanh(c / 2) / (4 * c)
    terms = np.log1p(np.exp(c)) + (mean - a - c) / 2 + curvature * (variance + (mean - a) ** 2 - c**2)
    expected = np.sum(Y * mean, axis=1) - a[:, 0] - terms.sum(1)
    np.testing.assert_allclose(softmax_bound(Y, mean, variance, c, a), expected, rtol=1e-12)


def test_with_two_classes_it_is_two_logistic_bounds_of_half_the_difference():
    """With a = (f_1 + f_2)/2 known: 2 log σ(d/2) for log σ(d), d = f_1 − f_2, each under its Pólya-Gamma bound."""
    half = np.linspace(-4, 4, 9)[:, None]  # d/2, known
    for label in (0, 1):
        Y, sign = np.eye(2)[np.full(9, label)], 1.0 - 2 * label
        for c in (np.abs(half), np.abs(half) + 0.7):
            found = softmax_bound(Y, np.hstack([half, -half]), np.zeros((9, 2)), np.hstack([c, c]), np.zeros((9, 1)))
            binary = polya_gamma_bound(np.full_like(half, sign), half, half**2, c)
            np.testing.assert_allclose(found, 2 * binary[:, 0], rtol=1e-12)
        touching = softmax_bound(
            Y, np.hstack([half, -half]), np.zeros((9, 2)), np.abs(np.hstack([half, half])), np.zeros((9, 1))
        )
        np.testing.assert_allclose(touching, -2 * np.logaddexp(0, -sign * half[:, 0]), rtol=1e-12)
        exact = -np.logaddexp(0, -2 * sign * half[:, 0])
        # what Bouchard's step loses, and nothing else
        np.testing.assert_allclose(exact - touching, np.log1p(1 / np.cosh(half[:, 0])), rtol=1e-9, atol=1e-12)


def test_the_sites_of_dirichlet_labels_are_log_normal_matches_of_gamma_variables():
    likelihood = DirichletLabels(K, concentration=0.1)
    target, noise = (part.numpy() for part in likelihood.targets(np.eye(K)[[1]]))
    for value, variance, shape in zip(target[0], noise[0], [0.1, 1.1, 0.1], strict=True):
        assert np.exp(value + variance / 2) == pytest.approx(shape)  # the mean of Gamma(shape, 1)
        assert np.expm1(variance) * np.exp(2 * value + variance) == pytest.approx(shape)  # and its variance
    assert likelihood.mean_target() == pytest.approx(target.mean())
    mean, variance, Y = gaussians(2.0, 0.7)
    target, noise = (part.numpy() for part in likelihood.targets(Y))
    expected = norm.logpdf(target, mean, np.sqrt(noise)) - variance / (2 * noise)
    batch = Batch(tf.zeros([6, D], tf.float64), tf.constant(Y))
    found = expected_log_density(likelihood, batch, moments_of(mean, variance), never)
    np.testing.assert_allclose(found, expected.sum(1), rtol=1e-12)
    X = np.zeros((6, D))
    np.testing.assert_allclose(likelihood.variational_expectations(X, mean, variance, Y), found, rtol=1e-12)
    np.testing.assert_allclose(
        likelihood.log_prob(X, mean, Y), norm.logpdf(target, mean, np.sqrt(noise)).sum(1), rtol=1e-12
    )


@pytest.mark.parametrize("kind", TILTED)
def test_noisy_moments_give_finite_sites(kind):
    """Estimates of squares and variances can be below zero."""
    rng = np.random.default_rng(4)
    mean, square, variance = 5 * rng.normal(size=(3, 50, K))
    local = TILTED[kind].best_local(Moments(*(tf.constant(part) for part in (mean, square, variance))))
    batch = Batch(tf.zeros([50, D], tf.float64), tf.constant(np.eye(K)[rng.integers(K, size=50)]))
    sites = quadratic_sites(likelihood_of(kind), batch, lambda: Moments(tf.constant(mean), square, variance))
    assert np.all(np.isfinite(local))
    assert all(np.all(np.isfinite(part)) for part in sites) and np.all(sites.precision > 0)


@pytest.mark.parametrize("noise", [1.0, 2.0])
@pytest.mark.parametrize("kind", TILTED)
def test_local_parameters_from_few_draws_cost_no_datum_much(kind, noise):
    """Estimates of E f² below the square of the mean's must not make a rate of the logistic-softmax huge."""
    rng, count, classes = np.random.default_rng(5), 500, 10
    Y = np.eye(classes)[rng.integers(classes, size=count)]
    mean, variance = 6 * Y - 4 + rng.normal(size=Y.shape), np.full(Y.shape, 0.5)
    one, other = mean + noise * rng.normal(size=(2, *Y.shape))
    few = Moments(*(tf.constant(part) for part in ((one + other) / 2, one * other, variance)))
    best, found = (
        bound_of(kind, Y, mean, variance, TILTED[kind].best_local(moments)).numpy()
        for moments in (moments_of(mean, variance), few)
    )
    assert np.all(found < best + 0.1)  # the softmax's best are of few rounds
    assert np.max(best - found) < 3 * noise


# -- predictions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("kind", [*TILTED, "dirichlet"])
def test_predictions_agree_with_long_sampling(kind, classes):
    likelihood, X = likelihood_of(kind, classes=classes), np.zeros((6, 0))
    for spread, deviation in GAUSSIANS:
        mean, variance, Y = gaussians(spread, deviation, classes)
        logs = log_probabilities("softmax" if kind == "dirichlet" else kind, samples(mean, variance))
        exact = np.exp(logs).mean(0)
        found = likelihood.predict_probability(mean, variance).numpy()
        np.testing.assert_allclose(found.sum(1), 1, rtol=1e-12)
        np.testing.assert_allclose(found, exact, atol=0.015)
        assert np.sqrt(np.mean((found - exact) ** 2)) < 0.005
        average, spread_of_labels = likelihood.predict_mean_and_var(X, mean, variance)
        np.testing.assert_array_equal(average, found)
        np.testing.assert_allclose(spread_of_labels, found * (1 - found), rtol=1e-12)
        density = likelihood.predict_log_density(X, mean, variance, Y)
        np.testing.assert_allclose(density, np.log(np.sum(Y * found, axis=1)), rtol=1e-9)
        if kind != "dirichlet":  # whose expectations are those of another density
            expectation = likelihood.variational_expectations(X, mean, variance, Y)
            np.testing.assert_allclose(expectation, (Y * logs).sum(-1).mean(0), atol=0.05, rtol=0.02)


def test_predictions_need_no_randomness_and_are_the_same_in_blocks_and_in_graphs():
    mean, variance, _ = gaussians(2.0, 1.0, count=300)
    likelihood = likelihood_of("softmax")
    whole = likelihood.predict_probability(mean, variance)
    np.testing.assert_allclose(whole[:6], likelihood.predict_probability(mean[:6], variance[:6]), rtol=1e-12)
    normal_points.cache_clear()
    compiled = tf.function(likelihood.predict_probability)
    np.testing.assert_allclose(compiled(tf.constant(mean), tf.constant(variance)), whole, rtol=1e-12)
    points = normal_points(5)
    np.testing.assert_allclose(points.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(points.std(0), 1, rtol=1e-12)


def test_a_probability_that_is_almost_zero_has_a_finite_logarithm():
    found = likelihood_of("softmax").predict_log_density(
        np.zeros((1, 0)), np.array([[0.0, 900.0, 0.0]]), np.full((1, 3), 0.01), np.array([[1.0, 0.0, 0.0]])
    )
    np.testing.assert_allclose(found, -900, atol=1)


@pytest.mark.parametrize("kind", [*TILTED, "dirichlet"])
def test_the_slope_is_that_of_the_log_density(kind):
    mean, _, Y = gaussians(2.0, 1.0)
    likelihood, X = likelihood_of(kind), np.zeros((6, 0))
    step, expected = 1e-6 * np.eye(K), np.zeros((6, K))
    for k in range(K):
        ends = [likelihood.log_prob(X, mean + sign * step[k], Y).numpy() for sign in (1, -1)]
        expected[:, k] = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(slope(likelihood, X, mean, Y), np.linalg.norm(expected, axis=1), rtol=1e-6)
    if kind == "softmax":
        residual = Y - np.exp(log_softmax(mean, axis=1))
        np.testing.assert_allclose(slope(likelihood, X, mean, Y), np.linalg.norm(residual, axis=1), rtol=1e-12)


# -- in a model ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    """Inputs [N, D], one-hot labels, and the rows' numbers."""
    return *labelled(), np.arange(N) + 3


def bound_of_q(quadratic, model):
    root = tf.convert_to_tensor(model.q_sqrt)
    covariance = tf.matmul(root, root, transpose_b=True)
    return quadratic(tf.convert_to_tensor(model.q_mu), covariance) - model.prior_kl()


@pytest.mark.parametrize(("kind", "tilt"), [*((kind, "network") for kind in TILTED), ("dirichlet", None)])
def test_the_stochastic_bound_is_unbiased(kind, tilt, data, exact_twin):
    """Draws of the batch, tiled; the exact bound is that of the whole orbit, by GPflow's own posterior."""
    X, Y, _ = data
    likelihood, copies = likelihood_of(kind, tilt), 150
    model = make_model(likelihood, scheme=Groups(2, 1, "iid"))
    mean, variance = exact_twin(model).predict_f(X)
    found = moments_of(mean, variance)
    exact = tf.reduce_sum(expected_log_density(likelihood, Batch(X, tf.constant(Y)), found, never)).numpy()
    tiled = tuple(np.tile(part, (copies, *(1 for _ in part.shape[1:]))) for part in data)
    batch = model._batch(tiled)
    W = tf.linalg.inv(tf.linalg.cholesky(model.Kuu()))
    drawn = model._moments(batch.X, W, tf.constant([1, 2]))
    sums = tf.reduce_sum(tf.reshape(expected_log_density(likelihood, batch, drawn, never), [copies, N]), axis=1).numpy()
    error = sums.std(ddof=1) / np.sqrt(copies)
    assert error > 1e-4 * abs(exact)
    assert abs(sums.mean() - exact) < 3 * error


@pytest.mark.parametrize(("kind", "tilt"), KINDS)
def test_the_quadratic_is_the_bound_with_its_gradients(kind, tilt, data):
    model = make_model(likelihood_of(kind, tilt), orbits.GaussianNoise(D, 0.5), Groups(2, 3))
    quadratic = model.quadratic(data, seed=[5, 6])
    assert quadratic.precision.shape == quadratic.ceiling.shape == (K, M, M)
    variables = [*model.kernel.trainable_variables, *model.likelihood.trainable_variables]
    variables += model.inducing_variable.trainable_variables
    found = []
    for bound in (
        lambda: model.elbo(data, seed=[5, 6]),
        lambda: bound_of_q(model.quadratic(data, seed=[5, 6]), model),
    ):
        with tf.GradientTape() as tape:
            value = bound()
        found.append([value, *map(tf.convert_to_tensor, tape.gradient(value, variables))])
    for direct, by_parts in zip(*found, strict=True):
        assert np.abs(direct).max() > 1e-6
        np.testing.assert_allclose(by_parts, direct, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("kind", "tilt"), [(kind, tilt) for kind, tilt in KINDS if tilt != "groups"])
def test_gradients_of_every_parameter_against_finite_differences(kind, tilt, data, assert_slopes_match):
    model = make_model(likelihood_of(kind, tilt), orbits.GaussianNoise(D, 0.5), Groups(2, 2))
    assert len(model.trainable_variables) >= 6
    bound = tf.function(lambda: model.elbo(data, seed=[3, 4]), autograph=False)
    assert_slopes_match(bound, model.trainable_variables, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize(("kind", "tilt"), [("softmax", "table"), ("dirichlet", None)])
def test_natural_steps_of_each_output_lead_to_the_best_q(kind, tilt, data):
    model = make_model(likelihood_of(kind, tilt))
    if tilt == "table":
        model.likelihood._tilt.values.assign(np.random.default_rng(4).uniform(0.2, 3, (WHOLE, K)))
    quadratic = model.quadratic(data, [0, 0])
    posterior = NaturalPosterior(model)
    for _ in range(80):
        posterior.step(quadratic, 0.7)
    posterior.write_back()
    mean, root = best_posterior(quadratic)
    np.testing.assert_allclose(model.q_mu, mean, atol=1e-8)
    np.testing.assert_allclose(model.q_sqrt, root, atol=1e-8)
    assert np.ptp(root, axis=0).max() > 1e-3  # no two outputs are alike
    with tf.GradientTape() as tape:
        best = model.elbo(data, seed=[0, 0])
    for gradient in tape.gradient(best, [model.q_mu.unconstrained_variable, model.q_sqrt.unconstrained_variable]):
        np.testing.assert_allclose(gradient, 0, atol=1e-6)


def test_the_class_of_highest_probability_is_chosen(data):
    """Which need not be that of the highest mean, where variances differ."""
    X, Y, _ = data
    model = make_model(likelihood_of("softmax"))
    mean, variance = model.predict_f(X)
    probability = model.likelihood.predict_probability(mean, variance).numpy()
    score = Tester(model, X, Y)()
    assert score.error == pytest.approx(100 * np.mean(probability.argmax(1) != Y.argmax(1)))


def test_local_parameters_are_not_among_the_numbers_of_a_model():
    for kind, tilt in KINDS:
        assert not [name for name in named_parameters(make_model(likelihood_of(kind, tilt))) if "likelihood" in name]


# -- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*TILTED, "dirichlet"])
@pytest.mark.parametrize(
    "row", [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [2.0, -1.0, 0.0], [1.0, 1.0, -1.0], [2.0, 0.0, 0.0]]
)
def test_labels_that_are_not_one_hot_are_refused(kind, row, data):
    labels = data[1].copy()
    labels[4] = row
    model = make_model(likelihood_of(kind))
    for bound in (lambda: model.elbo((data[0], labels)), lambda: model.quadratic((data[0], labels), [0, 0])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="labels must be one-hot rows"):
            bound()


@pytest.mark.parametrize("kind", [*TILTED, "dirichlet"])
def test_other_numbers_of_classes_are_refused(kind, data):
    with pytest.raises(ValueError, match="classes must be an integer of at least 2, got 1"):
        likelihood_of(kind, classes=1)
    with pytest.raises(ValueError, match="Y has 3 columns; for 4 classes"):
        make_model(likelihood_of(kind, classes=4)).elbo(data[:2])


def test_what_does_not_fit_is_named(data):
    with pytest.raises(TypeError, match="tilt must be a Tilt, got str"):
        Softmax(3, "network")
    with pytest.raises(ValueError, match=r"concentration must be .*, got 0"):
        DirichletLabels(3, 0.0)
    narrow = make_model(Softmax(K, RecognitionNetwork(D, (4,), outputs=K)))
    with pytest.raises(
        ValueError, match=r"3 classes has 4 local parameters .*, the tilt gives 3; .*outputs=3 and real=1"
    ):
        narrow.elbo(data)
    with pytest.raises(
        ValueError, match=r'Softmax with 3 outputs has a site precision for each .*covariance="per_output"'
    ):
        make_model(likelihood_of("softmax"), covariance="shared").quadratic(data, [0, 0])
