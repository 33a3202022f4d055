"""Orbits into other spaces, and sums of processes, against GPflow's convolutional kernel and plain formulas."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.conditionals.util import base_conditional
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPatches
from gpflow.kernels import Convolutional, SquaredExponential

from orbitgp import orbits
from orbitgp._ops import draw_kernels
from orbitgp.components import Component, sum_of
from orbitgp.fitting.loop import fit
from orbitgp.fitting.stopping import Interrupted
from orbitgp.inducing import BasePoints, SumPoints, check_lengths, from_arrays, place
from orbitgp.kernels import Invariant
from orbitgp.models import InvariantSVGP
from orbitgp.optimizers.steps import Optimizer
from orbitgp.schemes import FullOrbit, Groups, WithoutReplacement

SHAPE = (5, 5)
N, D, P, JITTER = 4, 25, 2, 1e-6
COUNTS = (3, 4, 5)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    return rng.uniform(size=(N, D)), rng.normal(size=(N, P))


@pytest.fixture(scope="module")
def inducing():
    rng = np.random.default_rng(1)
    return [rng.uniform(size=(count, width)) for count, width in zip(COUNTS, (4, 9, D), strict=True)]


def kernels():
    return SquaredExponential(1.2, 0.9), SquaredExponential(0.7, 1.4), SquaredExponential(0.5, 2.0)


def sum_kernel():
    """2 × 2 patches, 3 × 3 patches, whole images; no places, as GPflow has none."""
    small, large, whole = kernels()
    patches = [orbits.Patches(SHAPE, size, location=False) for size in (2, 3)]
    return Invariant(small, patches[0]) + Invariant(large, patches[1]) + whole


def make_model(inducing, orbit=None, **settings):
    rng = np.random.default_rng(2)
    model = InvariantSVGP(
        Invariant(sum_kernel(), orbits.Identity() if orbit is None else orbit),
        gpflow.likelihoods.Gaussian(0.2),
        SumPoints(inducing),
        num_latent_gps=P,
        num_data=N,
        **{"scheme": FullOrbit(), "jitter": JITTER, **settings},
    )
    model.q_mu.assign(rng.normal(size=model.q_mu.shape))
    model.q_sqrt.assign(0.2 * np.tril(rng.normal(size=model.q_sqrt.shape)) + 0.6 * np.eye(sum(COUNTS)))
    return model


def convolutional():
    """The same three processes in GPflow's words."""
    small, large, whole = kernels()
    return Convolutional(small, SHAPE, (2, 2)), Convolutional(large, SHAPE, (3, 3)), whole


def reference(X, inducing, turns=1):
    """
    :param turns: how many quarter turns of the images to average over, by loops.
    :return: k_ff [N, N], k_uf and k_uu of GPflow's kernels.
    """
    turned = [np.rot90(X.reshape(-1, *SHAPE), turn, axes=(1, 2)).reshape(-1, D) for turn in range(turns)]
    kinds = (InducingPatches, InducingPatches, gpflow.inducing_variables.InducingPoints)
    parts = list(zip(convolutional(), kinds, strict=True))
    points = [kind(Z) for (_, kind), Z in zip(parts, inducing, strict=True)]
    Kff = sum(kernel(a, b) for kernel, _ in parts for a in turned for b in turned) / turns**2
    each = [sum(Kuf(u, kernel, a) for a in turned) / turns for (kernel, _), u in zip(parts, points, strict=True)]
    diagonal = tf.linalg.LinearOperatorBlockDiag(
        [tf.linalg.LinearOperatorFullMatrix(Kuu(u, kernel)) for (kernel, _), u in zip(parts, points, strict=True)]
    ).to_dense()
    return Kff, tf.concat(each, axis=0), diagonal + JITTER * np.eye(sum(COUNTS))


# -- exact values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 5])
def test_patches_without_place_are_the_convolutional_kernel(size, images, inducing):
    X, X2 = images[0], images[0][:2] + 0.1
    theirs = Convolutional(SquaredExponential(1.2, 0.9), SHAPE, (size, size))
    mine = Invariant(SquaredExponential(1.2, 0.9), orbits.Patches(SHAPE, size, location=False))
    nested = Invariant(mine, orbits.Identity())
    Z = np.random.default_rng(3).uniform(size=(3, size * size))
    for kernel in (mine, nested):
        np.testing.assert_allclose(kernel(X), theirs(X), rtol=1e-10)
        np.testing.assert_allclose(kernel(X, X2), theirs(X, X2), rtol=1e-10)
        np.testing.assert_allclose(kernel(X, full_cov=False), theirs(X, full_cov=False), rtol=1e-10)
        np.testing.assert_allclose(
            Kuf(BasePoints(Z), kernel, X), Kuf(InducingPatches(Z), theirs, X), rtol=1e-10, err_msg=str(kernel)
        )
        np.testing.assert_allclose(Kuu(BasePoints(Z), kernel), Kuu(InducingPatches(Z), theirs), rtol=1e-10)


@pytest.mark.parametrize("turns", [1, 4])
def test_bound_and_predictions_of_a_sum_are_exact_over_finite_orbits(turns, images, inducing):
    X, Y = images
    model = make_model(inducing, orbits.Identity() if turns == 1 else orbits.RightAngles(SHAPE))
    Kff, K_uf, K_uu = reference(X, inducing, turns)
    q_sqrt = tf.tile(model.q_sqrt, (P, 1, 1))
    np.testing.assert_allclose(Kuf(model.inducing_variable, model.kernel, X), K_uf, rtol=1e-10)
    np.testing.assert_allclose(model.Kuu(), K_uu, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(model.kernel(X), Kff, rtol=1e-10)
    for full_cov in (False, True):
        prior = Kff if full_cov else tf.linalg.diag_part(Kff)
        expected = base_conditional(K_uf, K_uu, prior, model.q_mu, q_sqrt=q_sqrt, white=True, full_cov=full_cov)
        for mine, theirs in zip(model.predict_f(X, full_cov=full_cov), expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-10)
    mean, variance = base_conditional(
        K_uf, K_uu, tf.linalg.diag_part(Kff), model.q_mu, q_sqrt=q_sqrt, white=True, full_cov=False
    )
    data_term = tf.reduce_sum(model.likelihood.variational_expectations(X, mean, variance, Y))
    kl = gpflow.kullback_leiblers.gauss_kl(model.q_mu, q_sqrt)
    np.testing.assert_allclose(model.elbo((X, Y)), data_term - kl, rtol=1e-9)


def test_a_sum_of_one_is_the_model_of_today(images, inducing):
    whole, Z = SquaredExponential(0.5, 2.0), inducing[2]
    settings = {"num_latent_gps": P, "num_data": N, "scheme": Groups(2, 3)}
    orbit = orbits.Affine(SHAPE, spread=0.2)
    alone = InvariantSVGP(Invariant(whole, orbit), gpflow.likelihoods.Gaussian(0.2), Z, **settings)
    base = gpflow.kernels.Sum([whole])
    of_one = InvariantSVGP(Invariant(base, orbit), gpflow.likelihoods.Gaussian(0.2), SumPoints([Z]), **settings)
    assert alone.elbo(images, seed=[0, 1]) == of_one.elbo(images, seed=[0, 1])
    for mine, theirs in zip(of_one.predict_f(images[0]), alone.predict_f(images[0]), strict=True):
        np.testing.assert_array_equal(mine, theirs)


# -- estimates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [Groups(2, 2), Groups(3, 1, "iid"), WithoutReplacement(2)])
def test_draws_estimate_the_bound_of_a_sum_without_bias(scheme, images, inducing):
    model = make_model(inducing, orbits.RightAngles(SHAPE))
    exact = model.elbo(images)
    model.scheme = scheme
    tiled = [np.repeat(part, 500, axis=0) for part in images]
    found = [float(model.elbo(tiled, seed=[7, i])) for i in range(8)]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert error < 0.02 * abs(exact) and abs(np.mean(found) - exact) < 4 * error


def test_single_patches_at_random_have_the_expectation_of_all_patches(images):
    Z, patches = np.random.default_rng(4).uniform(size=(3, 6)), orbits.Patches(SHAPE, 2, 3)

    def model(kernel, scheme):
        return InvariantSVGP(kernel, gpflow.likelihoods.Gaussian(0.2), Z, num_latent_gps=P, num_data=N, scheme=scheme)

    base, turns = SquaredExponential(1.0, 1.0), orbits.RightAngles(SHAPE)
    exact = model(Invariant(Invariant(base, patches), turns), FullOrbit()).elbo(images)
    drawing = model(Invariant(base, orbits.Composed([turns, patches])), Groups(2, 4))
    tiled = [np.repeat(part, 500, axis=0) for part in images]
    found = [float(drawing.elbo(tiled, seed=[8, i])) for i in range(8)]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert error < 0.02 * abs(exact) and abs(np.mean(found) - exact) < 4 * error


@pytest.mark.parametrize("bound", ["elbo", "quadratic"])
@pytest.mark.parametrize("blocks", [False, True])
def test_gradients_of_every_parameter_against_finite_differences(
    bound, blocks, images, monkeypatch, assert_slopes_match
):
    if blocks:
        monkeypatch.setattr(draw_kernels, "TOGETHER", 200)
    components = [Component(3, patch=2, stride=2), Component(4, patch=3, location=False), Component(5)]
    kernel = Invariant(sum_of(components, (*SHAPE, 1), 0.8, 2.0), orbits.Affine(SHAPE, spread=0.15))
    points = place(kernel, np.random.default_rng(5).uniform(size=(30, D)), COUNTS)
    model = InvariantSVGP(
        kernel, gpflow.likelihoods.Gaussian(0.2), points, num_latent_gps=P, num_data=N, scheme=Groups(2, 3)
    )
    rng = np.random.default_rng(6)
    model.q_mu.assign(rng.normal(size=model.q_mu.shape))

    @tf.function(autograph=False)
    def value():
        if bound == "elbo":
            return model.elbo(images, seed=[1, 2])
        return model.quadratic(images, seed=[1, 2])(tf.convert_to_tensor(model.q_mu), model.q_sqrt @ model.q_sqrt)

    variables = [v for part in (kernel, points, model.likelihood) for v in part.trainable_variables]
    assert len(variables) == 3 + 4 + 2 + 3 + 1  # variances, lengthscales, the box, inducing points, noise
    assert_slopes_match(value, variables, rtol=1e-5, atol=1e-6)


def test_mixed_precision_and_xla_are_close_to_float64(images, inducing, monkeypatch):
    settings = {"orbit": orbits.Affine(SHAPE, spread=0.2), "scheme": Groups(2, 3)}
    exact = make_model(inducing, **settings).elbo(images, seed=[1, 1])
    monkeypatch.setattr(draw_kernels, "TOGETHER", 800)
    for other in ({"precision": "mixed"}, {"compiled": True}, {"precision": "mixed", "compiled": True}, {"block": 3}):
        if "block" in other:  # whose blocks have draws of their own
            exact = make_model(inducing, block=3, **settings).elbo(images, seed=[1, 1])
        found = make_model(inducing, **settings, **other).elbo(images, seed=[1, 1])
        np.testing.assert_allclose(found, exact, rtol=1e-4 if "precision" in other else 1e-10, err_msg=str(other))


def test_predictions_are_a_function_of_x(images, inducing):
    model = make_model(inducing, orbits.Affine(SHAPE, spread=0.2), scheme=Groups(2, 3), prediction_samples=5)
    X = images[0]
    mean, variance = model.predict_f(X)
    for n in range(N):
        alone = model.predict_f(X[n : n + 1])
        np.testing.assert_allclose(alone[0][0], mean[n], rtol=1e-10)
        np.testing.assert_allclose(alone[1][0], variance[n], rtol=1e-8)
    _, covariance = model.predict_f(X, full_cov=True)
    np.testing.assert_allclose(tf.transpose(tf.linalg.diag_part(covariance)), variance, rtol=1e-8)
    assert np.linalg.eigvalsh(covariance[0]).min() > -1e-10
    zero = model.posterior().difference(X, X)
    np.testing.assert_allclose(zero[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(zero[1], 0.0, atol=1e-10)


# -- training ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["natural", "adam"])
def test_a_saved_training_goes_on_as_if_nothing_had_happened(kind, images, inducing, recipe, tmp_path, eagerly):
    plan = recipe(kind, steps=4, batch=3)
    straight, halted, resumed = (
        make_model(inducing, orbits.Affine(SHAPE, spread=0.1), scheme=Groups(2, 2)) for _ in range(3)
    )
    whole = fit(straight, images, plan, evaluations=4, final_samples=4, name="")

    def stop_late(history):
        if history.rows[-1]["step"] >= 2:
            raise Interrupted("enough")

    with pytest.raises(Interrupted, match="saved at step"):
        fit(halted, images, plan, evaluations=4, checkpoints=tmp_path, on_report=stop_late, name="")
    again = fit(resumed, images, plan, evaluations=4, checkpoints=tmp_path, final_samples=4, name="")
    assert again.history.resumed == 1 and np.array_equal(whole.bounds, again.bounds)
    for mine, theirs in zip(resumed.parameters, straight.parameters, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_natural_steps_of_the_whole_data_find_the_best_q_of_a_sum(images, inducing, recipe, eagerly):
    model = make_model(inducing)
    frozen = dict.fromkeys(("inducing", "kernel", "likelihood", "orbit"), 0.0)
    optimizer = Optimizer(model, images, recipe(batch=N, rates=frozen), seed=0)
    optimizer.advance(tf.constant(20))
    optimizer.write_back()
    _, K_uf, K_uu = reference(images[0], inducing)
    phi = np.linalg.solve(np.linalg.cholesky(K_uu), K_uf)
    precision = np.eye(sum(COUNTS)) + phi @ phi.T / 0.2
    np.testing.assert_allclose(model.q_mu, np.linalg.solve(precision, phi @ images[1] / 0.2), rtol=1e-4, atol=1e-6)


# -- inducing points -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["kmeans", "greedy"])
def test_inducing_patches_come_from_patches_of_the_data(method):
    X = np.random.default_rng(9).uniform(size=(12, D))
    kernel = Invariant(sum_kernel(), orbits.Identity())
    counts = (20, 15, 6)  # more patches than images
    points = place(kernel, X, counts, method=method, candidates=200)
    assert [part.Z.shape for part in points.parts] == [(20, 4), (15, 9), (6, D)]
    assert points.num_inducing == 41 and points.shape == (41, None, 1)
    if method == "greedy":
        every = {row.tobytes() for row in orbits.Patches(SHAPE, 2, location=False).full(X).numpy().reshape(-1, 4)}
        assert all(row.tobytes() in every for row in points.parts[0].Z.numpy())
    again = place(kernel, X, counts, method=method, candidates=200)
    for mine, theirs in zip(points.parts, again.parts, strict=True):
        np.testing.assert_array_equal(mine.Z, theirs.Z)


def test_inducing_points_come_back_from_their_arrays(inducing):
    names = [f"inducing_variable.parts[{i}].Z" for i in range(3)]
    arrays = {**dict(zip(reversed(names), reversed(inducing), strict=True)), "q_mu": np.zeros((12, 1))}
    for mine, theirs in zip(from_arrays(arrays).parts, inducing, strict=True):
        np.testing.assert_array_equal(mine.Z, theirs)
    assert isinstance(from_arrays({"inducing_variable.Z": inducing[0]}), BasePoints)
    with pytest.raises(ValueError, match="parts must be a list of inducing points"):
        from_arrays({"q_mu": inducing[0]})


# -- bad input -----------------------------------------------------------------------------------------------------


def test_sums_and_points_that_do_not_fit_are_refused(inducing):
    likelihood, turns = gpflow.likelihoods.Gaussian(), orbits.RightAngles(SHAPE)
    with pytest.raises(ValueError, match=r"SumPoints of 2 processes need .* sums as many .* got Sum of 3"):
        InvariantSVGP(Invariant(sum_kernel(), turns), likelihood, SumPoints(inducing[:2]))
    with pytest.raises(ValueError, match=r"SumPoints of 1 processes need .* got SquaredExponential"):
        InvariantSVGP(Invariant(SquaredExponential(), turns), likelihood, SumPoints(inducing[:1]))
    nested = Invariant(Invariant(SquaredExponential(), orbits.Rotation(SHAPE)), turns)
    with pytest.raises(TypeError, match=r"Rotation cannot be listed: draw from both orbits"):
        InvariantSVGP(nested, likelihood, inducing[2])
    with pytest.raises(ValueError, match="inducing points have 9 values each, but g takes 4"):
        check_lengths(SumPoints([inducing[1], inducing[1], inducing[2]]), Invariant(sum_kernel(), turns), D)
    with pytest.raises(ValueError, match="count must name 3 numbers, one for each process"):
        place(Invariant(sum_kernel(), turns), np.ones((3, D)), (1, 2))
    with pytest.raises(ValueError, match="parts must be a list"):
        SumPoints([])


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ({"patch": 3}, ValueError, "a component has inducing and may have patch, stride"),
        ({"inducing": 3, "size": 3}, ValueError, r"may have patch, .*; got .*'size': 3"),
        ({"inducing": 0}, ValueError, "inducing must be an integer of at least 1"),
        ({"inducing": 3, "stride": 2}, ValueError, "stride and location belong to patches"),
        ({"inducing": 3, "patch": 2, "stride": 0}, ValueError, "stride must be an integer of at least 1, got 0"),
        ({"inducing": 3, "lengthscale": 0.0}, ValueError, "lengthscale must be a finite number"),
        (5, TypeError, "a component must be a mapping"),
    ],
)
def test_components_that_say_too_little_or_too_much_are_refused(content, error, message):
    with pytest.raises(error, match=message):
        Component.make(content)


def test_a_component_has_the_kernel_of_its_numbers():
    shape = (6, 6, 1)
    whole = Component.make({"inducing": 3}).kernel(shape, 0.5, 3.0)
    assert isinstance(whole, SquaredExponential) and whole.lengthscales.numpy() == pytest.approx(3.0)
    placed = Component(3, patch=2, stride=2, variance=0.7).kernel(shape, 0.5, 3.0)
    pixels, place_kernel = placed.base.kernels
    assert placed.orbit.order == 9 and pixels.variance.numpy() == pytest.approx(0.7)
    assert pixels.lengthscales.numpy() == pytest.approx(1.0)  # 3 of 6 pixels a side, so 1 of 2
    assert not place_kernel.variance.trainable and place_kernel.lengthscales.trainable
    bare = Component(3, patch=2, location=False, lengthscale=0.4).kernel(shape, 0.5, 3.0)
    assert bare.base.lengthscales.numpy() == pytest.approx(0.4) and bare.orbit.full(np.zeros((1, 36))).shape[2] == 4
    with pytest.raises(ValueError, match="size must be an integer of at least 1 and at most 6, got 7"):
        Component(3, patch=7).kernel(shape, 0.5, 3.0)
