import numpy as np
import pytest
import tensorflow as tf

from orbitgp import orbits
from orbitgp.optimizers.natural import best_posterior
from orbitgp.optimizers.schedules import cosine, geometric
from orbitgp.optimizers.steps import BATCH, DRAWS, Optimiser
from orbitgp.orbits.sampling import split
from orbitgp.schemes import FullOrbit, Groups

KINDS = ("natural", "adam")


def noise():
    return orbits.GaussianNoise(9, 0.5)


def seed_of(seed, step, stream):
    return split(tf.constant([seed, step], tf.int64), stream)


def rows_of(optimiser, seed, step):
    return optimiser._batches.rows(tf.constant([seed, step], tf.int64), BATCH)


def bytes_of(state):
    return {name: variable.numpy().tobytes() for name, variable in state.items()}


def all_rows(data):
    return (*data, np.arange(len(data[0])))


# -- what a step does ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", ["gaussian", "network", "table", "groups"])
def test_the_natural_step_has_the_bound_and_the_gradients_of_the_model(
    likelihood, make_model, settings, regression, signs, monkeypatch, eagerly
):
    data = regression if likelihood == "gaussian" else signs
    model = make_model(likelihood, noise(), scheme=Groups(2, 3))
    optimiser = Optimiser(model, data, settings(), seed=4)
    optimiser.advance(tf.constant(2))  # away from the start, where model and posterior have the same q
    seen = []
    monkeypatch.setattr(optimiser, "_apply", lambda gradients, progress: seen.extend(gradients))
    twin = make_model(likelihood, noise(), scheme=Groups(2, 3))
    for mine, theirs in zip(twin.parameters, model.parameters, strict=True):
        mine.assign(theirs)
    mean, precision = optimiser.posterior.mean.numpy(), optimiser.posterior.precision.numpy()
    twin.q_mu.assign(mean)
    twin.q_sqrt.assign(np.linalg.cholesky(np.linalg.inv(precision))[None])

    found, finite = optimiser.advance(tf.constant(1))
    groups = (twin.inducing_variable, twin.kernel.base, twin.likelihood, twin.kernel.orbit)
    variables = [variable for group in groups for variable in group.trainable_variables]
    with tf.GradientTape() as tape:
        bound = twin.elbo(all_rows(data), seed=seed_of(4, 2, DRAWS))
    assert finite
    np.testing.assert_allclose(found, bound, rtol=1e-10)
    for mine, theirs in zip(seen, tape.gradient(bound, variables), strict=True):
        theirs = tf.convert_to_tensor(theirs)
        assert np.abs(theirs).max() > 0
        np.testing.assert_allclose(-tf.convert_to_tensor(mine), theirs, rtol=1e-6, atol=1e-9)


def test_the_natural_step_moves_q_by_the_schedule(make_model, settings, regression, eagerly):
    model = make_model()
    optimiser = Optimiser(model, regression, settings(), seed=0)
    optimiser.advance(tf.constant(5))
    before, mean = optimiser.posterior.precision.numpy(), optimiser.posterior.mean.numpy()
    quadratic = model.quadratic(regression, [0, 0])  # the full orbit: no draws
    optimiser.advance(tf.constant(1))
    rho = geometric(tf.constant(5 / 20, tf.float64), 0.5, 0.1).numpy()
    G = rho * (np.eye(6) + quadratic.precision.numpy() - before)
    expected = before + G + 0.5 * G @ np.linalg.inv(before) @ G
    np.testing.assert_allclose(optimiser.posterior.precision, expected, rtol=1e-8)
    slope = quadratic.linear - quadratic.precision @ mean - mean
    # nothing is drawn at random: the ceiling has the target of the precision, and from the start it was there
    ceiling = optimiser.posterior.ceiling.numpy()
    np.testing.assert_allclose(optimiser.posterior.mean, mean + rho * np.linalg.solve(ceiling, slope), rtol=1e-8)
    np.testing.assert_allclose(ceiling, expected, rtol=0.05, atol=0.05 * np.abs(expected).max())


@pytest.mark.parametrize("batch", [15, 99])
def test_where_nothing_is_drawn_it_starts_with_the_best_q(batch, make_model, settings, regression, eagerly):
    model = make_model()
    Optimiser(model, regression, settings(batch=batch), seed=0).write_back()
    mean, root = best_posterior(model.quadratic(regression, [0, 0]))
    np.testing.assert_allclose(model.q_mu, mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.q_sqrt[0], root, rtol=1e-8, atol=1e-10)


def test_inducing_points_alone_have_a_scale_for_each_row(make_model, settings, regression, eagerly):
    """
    From rest, a row moves by rate · g / √mean g² and every other number by the rate, less what Adam's ε takes off
    where gradients are small.
    """
    changes = {}
    for scale in ("element", "row"):
        model = make_model(orbit=noise(), scheme=Groups(2, 2))
        before = [variable.numpy() for variable in model.trainable_variables]
        optimiser = Optimiser(model, regression, settings(warmup=0.0, inducing_scale=scale), seed=1)
        optimiser.advance(tf.constant(1))
        changes[scale] = {
            variable.shape.rank: np.abs(variable.numpy() - old)
            for variable, old in zip(model.trainable_variables, before, strict=True)
            if variable.shape in ((), (6, 9))
        }
    np.testing.assert_allclose(changes["element"][2], 0.02, rtol=1e-3)
    np.testing.assert_allclose(np.sqrt(np.mean(changes["row"][2] ** 2, axis=1)), 0.02, rtol=1e-3)
    assert np.ptp(changes["row"][2]) > 0.01
    for scale in changes:
        np.testing.assert_allclose(changes[scale][0], 0.02, rtol=1e-3)


def test_it_starts_from_as_many_batches_as_the_data_have(make_model, settings, regression, eagerly):
    model = make_model(orbit=noise(), scheme=Groups(2, 2))
    linear, ceiling = np.zeros((6, 2)), np.eye(6)
    optimiser = Optimiser(model, regression, settings(batch=4), seed=5)
    for number in range(4):  # of four, of fifteen images
        seed = seed_of(5, -1, number)
        batch = optimiser._batch(optimiser._batches.draw(split(seed, BATCH)))
        part = model.quadratic(batch, split(seed, DRAWS))
        linear += part.linear.numpy() / 4
        ceiling += part.ceiling.numpy() / 4
    np.testing.assert_allclose(optimiser.posterior.precision, ceiling, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(optimiser.posterior.mean, np.linalg.solve(ceiling, linear), rtol=1e-6, atol=1e-9)


def test_the_adam_step_is_adam_on_the_bound(make_model, settings, regression, eagerly):
    """Adam's formula in NumPy, with the rate of each group and step."""
    rates = {"inducing": 0.01, "kernel": 0.02, "likelihood": 0.03, "orbit": 0.04, "variational": 0.05}
    model, twin = (make_model(orbit=noise(), scheme=Groups(2, 2)) for _ in range(2))
    optimiser = Optimiser(model, regression, settings("adam", rates=rates, warmup=0.0), seed=1)
    groups = {
        "inducing": twin.inducing_variable.trainable_variables,
        "kernel": twin.kernel.base.trainable_variables,
        "likelihood": twin.likelihood.trainable_variables,
        "orbit": twin.kernel.orbit.trainable_variables,
        "variational": (twin.q_mu.unconstrained_variable, twin.q_sqrt.unconstrained_variable),
    }
    pairs = [(variable, rates[name]) for name, variables in groups.items() for variable in variables]
    assert len(pairs) == len(twin.trainable_variables)
    first, second = ([np.zeros(variable.shape) for variable, _ in pairs] for _ in range(2))
    for step in range(3):
        with tf.GradientTape() as tape:
            bound = twin.elbo(all_rows(regression), seed=seed_of(1, step, DRAWS))
        gradients = tape.gradient(bound, [variable for variable, _ in pairs])
        share = cosine(tf.constant(step / 20, tf.float64), 0.0, 0.1).numpy()
        for i, ((variable, rate), gradient) in enumerate(zip(pairs, gradients, strict=True)):
            g = -tf.convert_to_tensor(gradient).numpy()
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.99 * second[i] + 0.01 * g**2
            corrected = first[i] / (1 - 0.9 ** (step + 1)), second[i] / (1 - 0.99 ** (step + 1))
            variable.assign_sub(rate * share * corrected[0] / (np.sqrt(corrected[1]) + 1e-7))
        found, _ = optimiser.advance(tf.constant(1))
        np.testing.assert_allclose(found, bound, rtol=1e-5)
    for mine, theirs in zip(model.trainable_variables, twin.trainable_variables, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_training_raises_the_exact_bound(kind, make_model, settings, regression):
    model = make_model(scheme=Groups(2, 1, "iid"), orbit=orbits.RightAngles((3, 3)))
    optimiser = Optimiser(model, regression, settings(kind, steps=40, batch=8), seed=0)

    def exact():
        optimiser.write_back()
        model.scheme, stochastic = FullOrbit(), model.scheme
        bound = model.elbo(regression).numpy()
        model.scheme = stochastic
        return bound

    before = exact()
    _, finite = optimiser.advance(tf.constant(40))
    assert finite
    after = exact()
    assert after > before + 1
    if kind == "natural":  # q is close to the best that these parameters allow
        model.scheme = FullOrbit()
        mean, root = best_posterior(model.quadratic(regression, [0, 0]))
        model.q_mu.assign(mean)
        model.q_sqrt.assign(root[None])
        assert 0 <= model.elbo(regression).numpy() - after < 1


def test_a_tilt_chosen_by_q_follows_q_from_step_to_step(make_model, settings, signs, eagerly):
    model = make_model("groups")
    optimiser = Optimiser(model, signs, settings(natural={"first": 1.0, "last": 1.0, "scale": "ceiling"}), seed=0)
    optimiser.advance(tf.constant(12))
    optimiser.write_back()
    X = signs[0]
    mean, variance = model.predict_f(X)
    c = np.sqrt(mean**2 + variance)
    # at the optimum, q is the best for the tilt that q itself asks for
    quadratic = model.quadratic(all_rows(signs), [0, 0])
    best, root = best_posterior(quadratic)
    np.testing.assert_allclose(model.q_mu, best, atol=0.02)
    np.testing.assert_allclose(model.q_sqrt[0], root, atol=0.02)
    theta = np.tanh(c / 2) / (2 * c)
    L = np.linalg.cholesky(model._Kuu())
    drawn = model.kernel.orbit.full(X).numpy()
    Kfu = np.mean([model.kernel.base(drawn[:, p], model.inducing_variable.Z) for p in range(4)], axis=0)
    phi = np.linalg.solve(L, Kfu.T)
    np.testing.assert_allclose(quadratic.precision, (phi * theta[:, 0]) @ phi.T, rtol=1e-6, atol=1e-8)


# -- batches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [15, 16, 1000])
def test_a_batch_as_large_as_the_data_is_the_data(kind, batch, make_model, settings, regression, eagerly):
    model = make_model(orbit=noise(), scheme=Groups(2, 2))
    optimiser = Optimiser(model, regression, settings(kind, batch=batch), seed=3)
    optimiser.write_back()
    expected = model.elbo(all_rows(regression), seed=seed_of(3, 0, DRAWS)).numpy()
    found, _ = optimiser.advance(tf.constant(1))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("batches", ["drawn", "shuffled", "hard"])
def test_a_batch_has_the_rows_of_its_numbers(batches, make_model, settings, regression):
    X, Y = regression
    optimiser = Optimiser(make_model(), regression, settings(batch=4, batches=batches), seed=0)
    found = optimiser._batch(rows_of(optimiser, 0, 7))
    rows = found[2].numpy()
    assert len(rows) == 4
    np.testing.assert_array_equal(found[0], X[rows])
    np.testing.assert_array_equal(found[1], Y[rows])


def test_shuffled_batches_of_an_epoch_have_the_bound_of_all_data_between_them(make_model, settings, regression):
    """Exactly, where nothing is drawn and nothing moves; drawn ones do not."""
    model = make_model()
    expected = model.elbo(regression).numpy()
    means = {}
    for batches in ("shuffled", "drawn"):
        optimiser = Optimiser(model, regression, settings(batch=5, batches=batches), seed=2)
        of_each = [model.elbo(optimiser._batch(rows_of(optimiser, 2, step))).numpy() for step in range(3, 6)]
        assert np.ptp(of_each) > 1
        means[batches] = np.mean(of_each)
    np.testing.assert_allclose(means["shuffled"], expected, rtol=1e-10)
    assert abs(means["drawn"] - expected) > 1e-3


def test_the_bound_of_a_batch_is_scaled_to_all_data(make_model, settings, regression, eagerly):
    model = make_model()
    optimiser = Optimiser(model, regression, settings(batch=4), seed=9)
    optimiser.write_back()
    rows = rows_of(optimiser, 9, 0).numpy()
    expected = model.elbo((regression[0][rows], regression[1][rows])).numpy()
    found, _ = optimiser.advance(tf.constant(1))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("likelihood", ["gaussian", "network"])
def test_hard_batches_are_drawn_by_how_wrong_the_model_is(
    kind, likelihood, make_model, settings, regression, signs, eagerly
):
    """By a loop over all rows with the exact posterior; four to a batch, so that the last of 15 is in a shorter one."""
    X, Y = data = regression if likelihood == "gaussian" else signs
    model = make_model(likelihood)
    optimiser = Optimiser(model, data, settings(kind, batch=4, batches="hard", steps=90), seed=5)
    optimiser.advance(tf.constant(3))
    optimiser.write_back()
    mean = model.predict_f(X)[0].numpy()
    before = optimiser._batches.probability.numpy()
    optimiser.advance(tf.constant(1))  # looks first
    found = optimiser._batches.probability.numpy()
    assert np.abs(found - before).max() > 1e-5
    hardness = []
    for row in range(len(X)):
        residual = Y[row] - mean[row] if likelihood == "gaussian" else 1 / (1 + np.exp(Y[row] * mean[row]))
        hardness.append(np.linalg.norm(residual))
    np.testing.assert_allclose(found, 0.5 / len(X) + 0.5 * np.array(hardness) / np.sum(hardness), rtol=1e-6)
    optimiser.advance(tf.constant(2))
    np.testing.assert_array_equal(optimiser._batches.probability, found)  # until the next look


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_of_a_hard_batch_counts_rows_by_their_weights(kind, make_model, settings, regression, eagerly):
    X, Y = regression
    model = make_model()
    optimiser = Optimiser(model, regression, settings(kind, batch=4, batches="hard", steps=90), seed=9)
    optimiser.advance(tf.constant(1))
    optimiser.write_back()
    rows = rows_of(optimiser, 9, 1).numpy()
    weights = 1 / (len(X) * optimiser._batches.probability.numpy()[rows])
    assert np.ptp(weights) > 0.1
    expected = model.elbo((X[rows], Y[rows], rows, weights)).numpy()
    found, _ = optimiser.advance(tf.constant(1))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("likelihood", ["gaussian", "network"])
def test_hard_batches_leave_bound_and_gradient_unbiased(likelihood, make_model, settings, regression, signs):
    """Of 600 batches, within four standard errors of those of all data, over the full orbit."""
    X, Y = data = regression if likelihood == "gaussian" else signs
    model = make_model(likelihood)
    optimiser = Optimiser(model, data, settings(batch=4, batches="hard"), seed=1)
    optimiser._batches.weigh(optimiser.hardness())
    variables = [*model.kernel.trainable_variables, *model.inducing_variable.trainable_variables]

    @tf.function
    def terms(rows, weights):
        with tf.GradientTape() as tape:
            bound = model.elbo((tf.gather(X, rows), tf.gather(Y, rows), rows, weights))
        gradients = tape.gradient(bound, variables)
        return tf.concat([[bound], *(tf.reshape(gradient, [-1]) for gradient in gradients)], axis=0)

    expected = terms(tf.range(len(X)), tf.ones(len(X), tf.float64)).numpy()
    drawn = [rows_of(optimiser, 1, step) for step in range(600)]
    found = np.stack([terms(rows, optimiser._batches.weights(rows)).numpy() for rows in drawn])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - expected) < 4.5 * error)


def test_batches_that_are_the_data_need_no_look(make_model, settings, regression, eagerly):
    totals = {}
    for batches in ("drawn", "hard"):
        optimiser = Optimiser(make_model(), regression, settings(batches=batches), seed=9)
        totals[batches] = optimiser.advance(tf.constant(3))[0].numpy()
    assert totals["hard"] == totals["drawn"]
    np.testing.assert_array_equal(optimiser._batches.probability, np.full(15, 1 / 15))


@pytest.mark.parametrize(("steps", "looks"), [(7500, 30), (61, 21), (20, 20), (1, 1)])
def test_a_training_with_hard_batches_looks_up_to_thirty_times(
    steps, looks, make_model, settings, regression, monkeypatch
):
    optimiser = Optimiser(make_model(), regression, settings(batch=4, batches="hard", steps=steps), seed=0)
    seen = []

    def step_over(count):
        optimiser.step.assign_add(int(count))
        return tf.zeros([], tf.float64), tf.constant(True)

    def look():
        seen.append(int(optimiser.step.numpy()))
        return tf.ones(15, tf.float64)

    monkeypatch.setattr(optimiser, "_advance_compiled", step_over)
    monkeypatch.setattr(optimiser, "hardness", look)
    for first in range(0, steps, 20):
        optimiser.advance(tf.constant(min(20, steps - first)))
    assert optimiser.step.numpy() == steps and len(seen) == looks
    assert seen == list(range(0, steps, -(-steps // 30)))


def test_a_table_learns_the_rows_of_its_batch_and_no_others(make_model, settings, signs, eagerly):
    model = make_model("table")
    before = model.likelihood._tilt.values.numpy()
    optimiser = Optimiser(model, signs, settings(batch=4, warmup=0.0), seed=9)
    rows = rows_of(optimiser, 9, 0).numpy()
    optimiser.advance(tf.constant(1))
    moved = np.flatnonzero(np.any(model.likelihood._tilt.values.numpy() != before, axis=1))
    assert set(moved) == set(rows)


# -- state ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "likelihood", "batches"),
    [
        ("natural", "gaussian", "drawn"),
        ("natural", "gaussian", "shuffled"),
        ("adam", "gaussian", "shuffled"),
        ("natural", "groups", "drawn"),
        ("natural", "gaussian", "hard"),  # which look in the middle of what is repeated
        ("adam", "gaussian", "hard"),
    ],
)
def test_a_state_that_is_brought_back_goes_on_to_the_bit(
    kind, likelihood, batches, make_model, settings, regression, signs, eagerly
):
    data = regression if likelihood == "gaussian" else signs

    def fresh(seed):
        model = make_model(likelihood, noise(), scheme=Groups(2, 2), seed=seed, precision="mixed")
        return Optimiser(model, data, settings(kind, batch=5, batches=batches, steps=60), seed=2)

    first = fresh(1)
    first.advance(tf.constant(3))
    saved = {name: variable.numpy() for name, variable in first.state().items()}
    total, _ = first.advance(tf.constant(3))

    second = fresh(8)  # begun elsewhere: whatever the state leaves out would show
    assert list(second.state()) == list(saved)
    for name, variable in second.state().items():
        variable.assign(saved[name])
    again, _ = second.advance(tf.constant(3))
    assert again.numpy() == total.numpy()
    assert bytes_of(second.state()) == bytes_of(first.state())
    for optimiser in (first, second):
        optimiser.write_back()
    for mine, theirs in zip(second._model.parameters, first._model.parameters, strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_has_a_name_for_everything_that_is_trained(kind, make_model, settings, regression):
    model = make_model(orbit=noise(), scheme=Groups(2, 2))
    state = Optimiser(model, regression, settings(kind), seed=0).state()
    places = [variable.ref() for variable in state.values()]
    assert len(set(places)) == len(places)
    assert {variable.ref() for variable in model.trainable_variables} <= set(places)
    assert model.jitter.ref() in places
    adam = [name for name in state if name.startswith("adam/")]
    groups = ["inducing", "kernel", "likelihood", "orbit"] + ["variational"] * (kind == "adam")
    assert {name.split("/")[1] for name in adam} == set(groups)
    # two moments of each variable; rates come from the number of the step
    trained = len(model.trainable_variables) - (0 if kind == "adam" else 2)
    assert len(adam) == 2 * trained
    parts = ("mean", "precision", "factor", "ceiling") if kind == "natural" else ()
    assert [name for name in state if name.startswith("posterior/")] == [f"posterior/{part}" for part in parts]


def test_what_is_held_fixed_stays(make_model, settings, regression, eagerly):
    model = make_model(orbit=orbits.Rotation((3, 3), 40.0, trainable=False), scheme=Groups(2, 2))
    optimiser = Optimiser(model, regression, settings(), seed=0)
    optimiser.advance(tf.constant(3))
    assert model.kernel.orbit.alpha.numpy() == pytest.approx(40.0, rel=1e-14)
    assert not [name for name in optimiser.state() if "orbit" in name]


@pytest.mark.parametrize(
    ("poison", "changes"),
    [
        ("posterior/mean", {}),
        ("model/0", {}),
        ("posterior/mean", {"batch": 5, "batches": "hard"}),  # which look at all images before each of 20 steps
        ("batches/probability", {"batch": 5, "batches": "hard", "steps": 90}),  # and not before the second of 90
    ],
)
def test_what_is_not_finite_is_seen(poison, changes, make_model, settings, regression, eagerly):
    optimiser = Optimiser(make_model(), regression, settings(**changes), seed=0)
    assert optimiser.advance(tf.constant(1))[1]
    variable = optimiser.state()[poison]
    variable.assign(variable * np.nan)
    assert not optimiser.advance(tf.constant(1))[1]


@pytest.mark.parametrize("batches", ["drawn", "hard"])
def test_compiled_steps_are_the_eager_ones(batches, make_model, settings, regression):
    found, changes = [], {"batch": 5, "batches": batches, "steps": 60}
    for eager in (True, False):
        tf.config.run_functions_eagerly(eager)
        try:
            model = make_model(orbit=noise(), scheme=Groups(2, 2))
            optimiser = Optimiser(model, regression, settings(**changes), seed=0)
            totals = [optimiser.advance(tf.constant(steps))[0].numpy() for steps in (2, 3)]
        finally:
            tf.config.run_functions_eagerly(False)
        assert optimiser.step.numpy() == 5
        found.append((totals, {name: variable.numpy() for name, variable in optimiser.state().items()}))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    for name, value in found[0][1].items():
        np.testing.assert_allclose(found[1][1][name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_an_unknown_kind_is_named(make_model, settings, regression):
    with pytest.raises(ValueError, match=r"optimiser\.kind must be one of 'natural', 'adam', got 'sgd'"):
        Optimiser(make_model(), regression, settings("sgd"), seed=0)
