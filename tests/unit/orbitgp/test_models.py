import gpflow
import numpy as np
import pytest
import tensorflow as tf

from orbitgp import orbits
from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant
from orbitgp.likelihoods import (
    IndependentGroups,
    PolyaGammaBernoulli,
    RecognitionNetwork,
    TiltTable,
    polya_gamma_bound,
)
from orbitgp.models import COVARIANCES, InvariantSVGP
from orbitgp.schemes import FullOrbit, Groups, PairWeights, WithoutReplacement, paper_scheme

N, D, M, OUTPUTS, WHOLE = 12, 16, 7, 3, 30
SQUARE = (4, 4)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)), rng.normal(size=(N, OUTPUTS))


def right_angles():
    return orbits.RightAngles(SQUARE)


def noise():
    return orbits.GaussianNoise(D, scale=0.7)


def make_model(orbit, likelihood=None, outputs=OUTPUTS, seed=1, inducing=M, **settings):
    """A model with a q(u) that is nowhere near the prior, so that every term of the bound counts."""
    rng = np.random.default_rng(seed)
    kernel = Invariant(gpflow.kernels.SquaredExponential(variance=1.3, lengthscales=3.0), orbit)
    model = InvariantSVGP(
        kernel,
        gpflow.likelihoods.Gaussian(0.3) if likelihood is None else likelihood,
        BasePoints(rng.normal(size=(inducing, D))),
        num_latent_gps=outputs,
        num_data=WHOLE,
        **settings,
    )
    model.q_mu.assign(rng.normal(size=model.q_mu.shape))
    model.q_sqrt.assign(0.2 * np.tril(rng.normal(size=model.q_sqrt.shape)) + 0.6 * np.eye(inducing))
    return model


class Slope(gpflow.functions.MeanFunction):
    """A mean function that turning an image leaves alone."""

    def __call__(self, X):
        return 0.3 * tf.reduce_sum(X, axis=1, keepdims=True) + tf.constant([[0.1, -0.5, 0.7]], X.dtype)


def stochastic_bounds(model, data, copies=80, repeats=10):
    """Independent estimates of the bound, each a mean over copies of the batch with draws of their own."""
    tiled = [np.tile(part, (copies, *(1,) * (np.ndim(part) - 1))) for part in data]
    return np.array([model.elbo(tiled, seed=[7, i]).numpy() for i in range(repeats)])


def with_gradients(bound, variables):
    """The value, and the gradient of each variable."""
    with tf.GradientTape() as tape:
        value = bound()
    return [value, *(tf.convert_to_tensor(gradient) for gradient in tape.gradient(value, variables))]


def assert_unbiased(values, exact):
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert error > 0
    assert abs(values.mean() - exact) < 3 * error


SCHEMES = {
    "paper": paper_scheme(4),
    "iid groups": Groups(3, 2, "iid"),
    "sobol pair": Groups(2, 3),  # not 4: a Sobol set of four lists the four right angles exactly
    "sobol groups": Groups(3, 2),
    "two of four": WithoutReplacement(2),
    "three of four": WithoutReplacement(3),
}
UNBIASED = [(right_angles, scheme, "shared", True) for scheme in SCHEMES]
UNBIASED += [(noise, scheme, "shared", True) for scheme in SCHEMES if "of four" not in scheme]
UNBIASED += [(orbit, "paper", "per_output", True) for orbit in (right_angles, noise)]
UNBIASED += [(orbit, "sobol pair", "shared", False) for orbit in (right_angles, noise)]


@pytest.mark.parametrize(("orbit", "scheme", "covariance", "whiten"), UNBIASED)
def test_the_mean_of_the_stochastic_bound_is_the_exact_bound(orbit, scheme, covariance, whiten, data, exact_twin):
    model = make_model(orbit(), scheme=SCHEMES[scheme], covariance=covariance, whiten=whiten)
    assert_unbiased(stochastic_bounds(model, data), exact_twin(model).elbo(data).numpy())


def test_the_bound_in_blocks_is_unbiased_and_has_the_gradients_of_the_whole(data, exact_twin):
    model = make_model(noise(), scheme=Groups(2, 4), block=14)  # of 36
    assert_unbiased(stochastic_bounds(model, data, copies=3), exact_twin(model).elbo(data).numpy())
    models = (make_model(right_angles(), scheme=FullOrbit(), block=block) for block in (None, 5))
    found = [with_gradients(lambda one=one: one.elbo(data), one.trainable_variables) for one in models]
    for plain, lean in zip(*found, strict=True):
        np.testing.assert_allclose(lean, plain, rtol=1e-9, atol=1e-9)


class PairsInsideGroups(Groups):
    """The planted mistake: pairs of draws of one group count as if they were independent."""

    def weights(self, orbit):
        return PairWeights(same=1 / self.groups, different=0.0)


@pytest.mark.parametrize("sampler", ["iid", "sobol"])
def test_a_pair_inside_a_group_is_caught(sampler, data, exact_twin):
    model = make_model(noise(), scheme=PairsInsideGroups(2, 4, sampler))
    with pytest.raises(AssertionError):
        assert_unbiased(stochastic_bounds(model, data), exact_twin(model).elbo(data).numpy())


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("orbit", [right_angles, lambda: orbits.QuantisedRotation(SQUARE, 3)])
def test_the_full_orbit_gives_the_exact_bound_at_once(orbit, covariance, whiten, data, exact_twin):
    model = make_model(orbit(), scheme=FullOrbit(), covariance=covariance, whiten=whiten, mean_function=Slope())
    twin = exact_twin(model)
    np.testing.assert_allclose(model.elbo(data), twin.elbo(data), rtol=1e-10)
    if whiten and covariance == "shared":
        found = bound_of_q(model.quadratic(data, [0, 0]), model)
        np.testing.assert_allclose(found, twin.elbo(data), rtol=1e-10)
    np.testing.assert_allclose(model.prior_kl(), twin.prior_kl(), rtol=1e-10)
    for full_cov in (False, True):
        for full_output_cov in (False, True):
            ours = model.predict_f(data[0], full_cov, full_output_cov)
            theirs = twin.predict_f(data[0], full_cov, full_output_cov)
            for mine, other in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("whiten", [True, False])
def test_with_the_identity_it_is_the_ordinary_model(whiten, data):
    model = make_model(orbits.Identity(), scheme=FullOrbit(), covariance="per_output", whiten=whiten)
    plain = gpflow.models.SVGP(
        model.kernel.base,
        model.likelihood,
        gpflow.inducing_variables.InducingPoints(model.inducing_variable.Z),
        num_latent_gps=OUTPUTS,
        whiten=whiten,
        num_data=WHOLE,
        q_mu=model.q_mu.numpy(),
        q_sqrt=model.q_sqrt.numpy(),
    )
    np.testing.assert_allclose(model.elbo(data), plain.elbo(data), rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.predict_log_density(data), plain.predict_log_density(data), rtol=1e-8)
    for mine, other in zip(model.predict_y(data[0]), plain.predict_y(data[0]), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-8)
    sampled = make_model(orbits.Rotation(SQUARE, 0.0), scheme=Groups(2, 2), covariance="per_output", whiten=whiten)
    np.testing.assert_allclose(sampled.elbo(data), plain.elbo(data), rtol=0, atol=1e-8)


TILTS = {
    "network": lambda: RecognitionNetwork(D, hidden=(5,), outputs=OUTPUTS),
    "table": lambda: TiltTable(WHOLE, outputs=OUTPUTS),
    "independent groups": IndependentGroups,
}


def signs(data):
    return data[0], np.sign(data[1]), np.arange(N) + 3


@pytest.mark.parametrize(
    ("orbit", "tilt", "scheme"), [(right_angles, "network", "paper"), (noise, "table", "sobol pair")]
)
def test_the_polya_gamma_bound_is_unbiased(orbit, tilt, scheme, data, exact_twin):
    X, Y, index = signs(data)
    likelihood = PolyaGammaBernoulli(TILTS[tilt]())
    model = make_model(orbit(), likelihood, scheme=SCHEMES[scheme])
    mean, variance = exact_twin(model).predict_f(X)
    c = likelihood.tilt(model._batch((X, Y, index)), None)
    data_term = tf.reduce_sum(polya_gamma_bound(Y, mean, mean**2 + variance, c))
    exact = WHOLE / N * data_term - model.prior_kl()
    assert_unbiased(stochastic_bounds(model, (X, Y, index)), exact.numpy())


def test_independent_groups_choose_the_best_tilt_when_the_moments_are_exact(data, exact_twin):
    X, Y, _ = signs(data)
    model = make_model(right_angles(), PolyaGammaBernoulli(IndependentGroups()), scheme=FullOrbit())
    mean, variance = exact_twin(model).predict_f(X)
    second = mean**2 + variance
    best = tf.reduce_sum(polya_gamma_bound(Y, mean, second, tf.sqrt(second)))
    np.testing.assert_allclose(model.elbo((X, Y)), WHOLE / N * best - model.prior_kl(), rtol=1e-9)


@pytest.mark.parametrize("tilt", TILTS)
def test_the_stochastic_polya_gamma_bound_stays_below_the_evidence(tilt):
    """Three data of a symmetric function: the evidence is an integral over three dimensions, by quadrature."""
    X = np.array([[0.3, -0.8], [-0.5, 0.9], [1.0, 0.2]])
    Y = np.array([[1.0], [-1.0], [1.0]])
    kernel = Invariant(gpflow.kernels.SquaredExponential(4.0, 0.8), orbits.GaussianNoise(2, 0.4))
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    mass = np.prod(np.stack(np.meshgrid(weights, weights, weights, indexing="ij"), axis=-1).reshape(-1, 3), axis=1)
    F = grid @ np.linalg.cholesky(kernel(X).numpy()).T
    evidence = np.log(np.sum(mass * np.prod(1 / (1 + np.exp(-F * Y[:, 0])), axis=1)) / np.sum(mass))

    made = {"network": RecognitionNetwork(2, (5,)), "table": TiltTable(3), "independent groups": IndependentGroups()}
    Z = np.concatenate([X, X + 0.3, X - 0.3])
    model = InvariantSVGP(
        kernel, PolyaGammaBernoulli(made[tilt]), Z, num_data=3, scheme=Groups(2, 4, "iid"), jitter=1e-8
    )
    gpflow.set_trainable(model.kernel, False)
    data = (X, Y, np.arange(3))
    optimiser = gpflow.keras.tf_keras.optimizers.Adam(0.05)
    step = tf.function(
        lambda: optimiser.minimize(lambda: -model.elbo(data), model.trainable_variables), autograph=False
    )
    for _ in range(200):
        step()
    bounds = stochastic_bounds(model, data, copies=50)
    error = bounds.std(ddof=1) / np.sqrt(len(bounds))
    assert bounds.mean() + 3 * error < evidence
    assert bounds.mean() > evidence - 1.0  # trained: not below it by some other mistake


# -- the bound as a quadratic function of q ------------------------------------------------------------------------

QUADRATIC_SCHEMES = SCHEMES | {
    "two pairs": Groups(2, 2, "iid"),
    "full": FullOrbit(),
    "all of four": WithoutReplacement(4),
}
QUADRATIC_LIKELIHOODS = {
    "gaussian": lambda: (gpflow.likelihoods.Gaussian(0.3), 3),
    "noise by input": lambda: (
        gpflow.likelihoods.Gaussian(variance=gpflow.functions.Linear(np.full((D, 1), 0.01), [0.5])),
        3,
    ),
    "network": lambda: (PolyaGammaBernoulli(RecognitionNetwork(D, hidden=(5,))), 1),
    "table": lambda: (PolyaGammaBernoulli(TiltTable(WHOLE)), 1),
    "independent groups": lambda: (PolyaGammaBernoulli(IndependentGroups()), 1),
}


def quadratic_case(likelihood, data, orbit=right_angles, **settings):
    """A model, and data that its likelihood knows."""
    made, outputs = QUADRATIC_LIKELIHOODS[likelihood]()
    model = make_model(orbit(), made, outputs, **settings)
    if likelihood == "table":
        made._tilt.values.assign(np.random.default_rng(4).uniform(0.2, 3, (WHOLE, 1)))
    X, Y, index = signs(data)
    return model, (X, data[1], index) if outputs == 3 else (X, Y[:, :1], index)


def bound_of_q(quadratic, model):
    root = tf.convert_to_tensor(model.q_sqrt)
    covariance = tf.matmul(root, root, transpose_b=True)
    return quadratic(tf.convert_to_tensor(model.q_mu), covariance) - model.prior_kl()


@pytest.mark.parametrize(
    ("scheme", "likelihood"),
    [*((scheme, "gaussian") for scheme in QUADRATIC_SCHEMES), *(("two pairs", kind) for kind in QUADRATIC_LIKELIHOODS)],
)
def test_the_quadratic_is_the_bound(scheme, likelihood, data):
    model, batch = quadratic_case(likelihood, data, scheme=QUADRATIC_SCHEMES[scheme])
    quadratic = model.quadratic(batch, seed=[5, 6])
    assert quadratic.linear.shape == (M, model.num_latent_gps)
    transposed = tf.linalg.matrix_transpose(quadratic.precision)
    np.testing.assert_allclose(quadratic.precision, transposed, rtol=1e-12, atol=1e-12)
    above = np.linalg.eigvalsh(quadratic.ceiling - quadratic.precision)
    assert above.min() > -1e-9 * above.max() - 1e-9
    if scheme == "full":
        np.testing.assert_allclose(quadratic.ceiling, quadratic.precision, rtol=1e-9, atol=1e-10)
    elif scheme != "all of four":
        assert above.max() > 0.01
    np.testing.assert_allclose(bound_of_q(quadratic, model), model.elbo(batch, seed=[5, 6]), rtol=0, atol=1e-8)
    if likelihood == "independent groups":
        return  # its c is chosen for the q that the model has
    rng = np.random.default_rng(2)
    model.q_mu.assign(rng.normal(size=model.q_mu.shape))
    model.q_sqrt.assign(np.tril(rng.normal(size=model.q_sqrt.shape)))
    np.testing.assert_allclose(bound_of_q(quadratic, model), model.elbo(batch, seed=[5, 6]), rtol=0, atol=1e-8)


@pytest.mark.parametrize("likelihood", ["gaussian", "network", "table"])
def test_a_row_that_counts_twice_is_as_good_as_two(likelihood, data):
    """Exactly, over the full orbit; of quadratic and bound."""
    model, (X, Y, index) = quadratic_case(likelihood, data, scheme=FullOrbit())
    rows, times = np.array([0, 1, 1, 4, 4, 4]), np.array([1.0, 2.0, 3.0])
    once = np.unique(rows)
    weighted = (X[once], Y[once], np.asarray(index)[once], times)
    repeated = (X[rows], Y[rows], np.asarray(index)[rows])
    scale = len(once) / len(rows)  # each batch stands for all data, the shorter one with fewer rows

    def data_term(bound):
        return (bound + model.prior_kl()).numpy()

    expected = data_term(model.elbo(repeated))
    np.testing.assert_allclose(scale * data_term(model.elbo(weighted)), expected, rtol=1e-10)
    by_parts = bound_of_q(model.quadratic(weighted, [0, 0]), model)
    np.testing.assert_allclose(scale * data_term(by_parts), expected, rtol=1e-10)
    # as a column they would be broadcast to all pairs of rows
    with pytest.raises(ValueError, match=r"weights must be \[N\].*\(3, 1\)"):
        model.elbo((*weighted[:3], times[:, None]))


@pytest.mark.parametrize(
    ("likelihood", "settings"),
    [*((kind, {}) for kind in QUADRATIC_LIKELIHOODS), ("gaussian", {"block": 5}), ("network", {"precision": "mixed"})],
)
def test_value_and_gradients_of_the_quadratic_are_those_of_the_bound(likelihood, settings, data):
    model, batch = quadratic_case(likelihood, data, noise, scheme=Groups(2, 3), **settings)
    variables = [*model.kernel.trainable_variables, *model.likelihood.trainable_variables]
    variables += model.inducing_variable.trainable_variables
    rtol = 1e-3 if settings.get("precision") == "mixed" else 1e-7
    elbo = with_gradients(lambda: model.elbo(batch, seed=[5, 6]), variables)
    parts = with_gradients(lambda: bound_of_q(model.quadratic(batch, seed=[5, 6]), model), variables)
    np.testing.assert_allclose(parts[0], elbo[0], rtol=0, atol=1e-8)
    for by_parts, direct in zip(parts, elbo, strict=True):
        assert np.abs(direct).max() > 1e-6
        np.testing.assert_allclose(by_parts, direct, rtol=rtol, atol=rtol / 10)


def test_what_has_no_such_bound_is_named(data):
    X, Y = data
    for bound in (lambda model, data: model.elbo(data), lambda model, data: model.quadratic(data, seed=[0, 0])):
        with pytest.raises(TypeError, match="StudentT is not linear"):
            bound(make_model(noise(), gpflow.likelihoods.StudentT()), data)
        with pytest.raises(ValueError, match="Y has 2 columns, the model has 3 outputs"):
            bound(make_model(noise()), (X, Y[:, :2]))
    with pytest.raises(ValueError, match=r"\(X, Y, index\)"):
        make_model(noise(), PolyaGammaBernoulli(TiltTable(WHOLE, OUTPUTS))).elbo((X, np.sign(Y)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels must be −1 or"):
        make_model(noise(), PolyaGammaBernoulli(IndependentGroups())).elbo((X, np.zeros_like(Y)))
    with pytest.raises(ValueError, match="whiten=True"):
        make_model(noise(), whiten=False).quadratic(data, seed=[0, 0])
    for tilt in TILTS.values():
        model = make_model(noise(), PolyaGammaBernoulli(tilt()))
        with pytest.raises(ValueError, match=r'3 outputs has a site precision for each of .* covariance="per_output"'):
            model.quadratic(signs(data), seed=[0, 0])


def test_compiled_it_says_the_same(data):
    smooth = np.random.default_rng(5).normal(size=(N, D)).cumsum(axis=1) / 4
    found = []
    for compiled in (False, True):
        orbit = orbits.Composed([orbits.Affine(SQUARE, spread=0.2), orbits.GaussianNoise(D, 0.3)])
        model = make_model(orbit, scheme=Groups(2, 3), compiled=compiled)

        def bound(model=model):
            return bound_of_q(model.quadratic((smooth, data[1]), seed=[5, 6]), model)

        found.append(with_gradients(bound, model.trainable_variables))
        model.scheme = paper_scheme(3)  # what was compiled for one scheme is not used for another
        found[-1].append(bound())
        found[-1].append(model.elbo((smooth, data[1]), seed=[5, 6]))
        model.kernel.base.variance.assign(2.0)  # nor are parameters frozen in it
        found[-1].append(model.elbo((smooth, data[1]), seed=[5, 6]))
    for plain, compiled in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-8, atol=1e-8)
    assert len({float(found[0][i]) for i in (0, -2, -1)}) == 3


@pytest.mark.parametrize(
    ("tilt", "settings"),
    [
        *((None, settings) for settings in ({}, {"block": 5}, {"covariance": "per_output", "whiten": False})),
        *((tilt, {}) for tilt in ("network", "table")),
    ],
)
def test_gradients_of_every_parameter_against_finite_differences(tilt, settings, data, assert_slopes_match):
    smooth = np.random.default_rng(5).normal(size=(N, D)).cumsum(axis=1) / 4
    if tilt is None:
        steps = [orbits.GaussianNoise(D, 0.3)]
        if "block" not in settings:  # whose graph would be large
            steps.insert(0, orbits.Affine(SQUARE, spread=0.2))
        model, batch = make_model(orbits.Composed(steps), scheme=Groups(2, 2), **settings), (smooth, data[1])
    else:
        model, batch = make_model(noise(), PolyaGammaBernoulli(TILTS[tilt]()), scheme=Groups(2, 2)), signs(data)
    assert len(model.trainable_variables) > 5
    bound = tf.function(lambda: model.elbo(batch, seed=[3, 4]), autograph=False)
    assert_slopes_match(bound, model.trainable_variables, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("noise_by_input", [False, True])
def test_mixed_precision_sees_the_same_draws_and_nearly_the_same_bound(noise_by_input, data):
    found = []
    for precision in ("float64", "mixed"):
        noisy = gpflow.likelihoods.Gaussian(variance=gpflow.functions.Linear(np.full((D, 1), 0.01), [0.5]))
        orbit, likelihood = orbits.Affine(SQUARE, spread=0.2), noisy if noise_by_input else None
        model = make_model(orbit, likelihood, scheme=Groups(2, 4), precision=precision)
        found.append(with_gradients(lambda model=model: model.elbo(data, seed=[0, 1]), model.trainable_variables))
        found[-1] += [*model.predict_y(data[0]), model.predict_log_density(data)]
        found[-1].append(model.quadratic(data, seed=[0, 1]).constant)
    for in_float64, in_mixed in zip(*found, strict=True):
        assert in_mixed.dtype == tf.float64
        np.testing.assert_allclose(in_mixed, in_float64, rtol=1e-3, atol=1e-4 * np.abs(in_float64).max())
    assert not tf.config.experimental.tensor_float_32_execution_enabled()


def test_draws_change_from_call_to_call_but_not_for_a_seed(data):
    model = make_model(noise())
    assert model.elbo(data) != model.elbo(data)
    assert model.elbo(data, seed=[1, 2]) == model.elbo(data, seed=[1, 2])
    assert model.elbo(data, seed=[1, 2]) != model.elbo(data, seed=[1, 3])
    again = make_model(noise())
    assert again.elbo(data) == make_model(noise()).elbo(data)


@pytest.mark.parametrize("whiten", [True, False])
def test_estimates_of_the_mean_are_unbiased_and_exact_over_the_full_orbit(whiten, data, exact_twin):
    model = make_model(right_angles(), whiten=whiten, scheme=FullOrbit(), mean_function=Slope())
    exact = exact_twin(model).predict_f(data[0])[0].numpy()
    np.testing.assert_allclose(model.mean_estimates(data[0], model.mean_weights(), [0, 0]), exact, rtol=1e-8)
    model.scheme = Groups(2, 3)
    many = np.repeat(data[0], 300, axis=0)
    found = model.mean_estimates(many, model.mean_weights(), [1, 0]).numpy().reshape(N, 300, OUTPUTS)
    error = found.std(axis=1, ddof=1) / np.sqrt(300)
    assert np.all(error > 0)
    assert np.all(np.abs(found.mean(axis=1) - exact) < 4 * error)  # of 36 numbers


def test_gpflow_trains_summarises_and_watches_it(data, tmp_path):
    model = make_model(noise(), scheme=Groups(2, 2))

    def fixed():
        return -model.elbo(data, seed=[0, 0])

    before, loss = fixed(), model.training_loss_closure(data)
    optimiser = gpflow.keras.tf_keras.optimizers.Adam(0.1)
    for _ in range(4):
        optimiser.minimize(loss, model.trainable_variables)
    trained = fixed()
    assert trained < before - 50
    assert "orbit.scale" in gpflow.utilities.tabulate_module_summary(model)
    gpflow.monitor.ModelToTensorBoard(str(tmp_path), model)(0)
    batches = iter(tf.data.Dataset.from_tensor_slices(data).batch(4))
    assert np.isfinite(model.training_loss_closure(batches)().numpy())
    result = gpflow.optimizers.Scipy().minimize(fixed, model.trainable_variables, options={"maxiter": 1})
    assert result.fun < trained


# -- as GPflow's models ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [True, False])
def test_a_copy_is_a_model_of_its_own(compiled, data):
    model = make_model(noise(), scheme=Groups(2, 2), compiled=compiled)
    before = model.elbo(data, seed=[1, 2])  # compiled by now
    twin = gpflow.utilities.deepcopy(model)
    twin.kernel.orbit.scale.assign(2.0)
    with tf.GradientTape() as tape:
        moved = twin.elbo(data, seed=[1, 2])
    gradients = tape.gradient(moved, twin.trainable_variables)
    assert all(gradient is not None and np.any(tf.convert_to_tensor(gradient) != 0) for gradient in gradients)
    assert abs(moved - before) > 1e-3
    assert model.elbo(data, seed=[1, 2]) == before
    model.kernel.orbit.scale.assign(2.0)
    np.testing.assert_allclose(model.elbo(data, seed=[1, 2]), moved, rtol=1e-12)


def test_points_and_q_may_be_arrays(data, exact_twin):
    rng = np.random.default_rng(3)
    made = make_model(right_angles(), scheme=FullOrbit())
    Z, q_mu = made.inducing_variable.Z.numpy(), rng.normal(size=(M, OUTPUTS))
    for roots in (1, OUTPUTS):
        q_sqrt = np.tril(rng.uniform(0.1, 1, size=(roots, M, M)))
        model = InvariantSVGP(
            made.kernel, made.likelihood, Z, num_latent_gps=OUTPUTS, q_mu=q_mu, q_sqrt=q_sqrt, scheme=FullOrbit()
        )
        np.testing.assert_array_equal(model.q_mu, q_mu)
        np.testing.assert_allclose(model.q_sqrt, q_sqrt)
        np.testing.assert_allclose(model.elbo(data), exact_twin(model).elbo(data), rtol=1e-10)


def test_gpflows_natural_gradient_works_or_is_told_what_it_needs(data):
    def step(model):
        natural = gpflow.optimizers.NaturalGradient(0.5)
        natural.minimize(model.training_loss_closure(data), [(model.q_mu, model.q_sqrt)])

    model = make_model(right_angles(), scheme=FullOrbit(), covariance="per_output")
    before = model.elbo(data)
    step(model)
    assert model.elbo(data) > before
    with pytest.raises(ValueError, match=r"one covariance for all outputs.*per_output"):
        step(make_model(right_angles(), scheme=FullOrbit()))
