import numpy as np
import pytest
import tensorflow as tf

from orbitgp import orbits
from orbitgp.optimizers.adam import Adam
from orbitgp.optimizers.natural import NaturalPosterior, best_posterior
from orbitgp.optimizers.recipe import NaturalRate
from orbitgp.optimizers.schedules import cosine, geometric
from orbitgp.optimizers.steps import BATCH, DRAWS, Optimizer, _quadratic_in_q
from orbitgp.orbits.sampling import split
from orbitgp.schemes import FullOrbit, Groups

KINDS = ("natural", "adam")


def noise():
    return orbits.GaussianNoise(9, 0.5)


def seed_of(seed, step, stream):
    return split(tf.constant([seed, step], tf.int64), stream)


def rows_of(optimizer, seed, step):
    return optimizer._batches.rows(tf.constant([seed, step], tf.int64), BATCH)


def bytes_of(state):
    return {name: variable.numpy().tobytes() for name, variable in state.items()}


def all_rows(data):
    return (*data, np.arange(len(data[0])))


# -- what a step does ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", ["gaussian", "network", "table", "groups"])
def test_the_natural_step_has_the_bound_and_the_gradients_of_the_model(
    likelihood, make_model, recipe, regression, signs, monkeypatch, eagerly
):
    data = regression if likelihood == "gaussian" else signs
    model, twin = (make_model(likelihood, noise(), scheme=Groups(2, 3)) for _ in range(2))
    optimizer = Optimizer(model, data, recipe(), seed=4)
    optimizer.advance(tf.constant(2))  # away from the start, where model and posterior have the same q
    seen = []
    monkeypatch.setattr(optimizer, "_apply", lambda gradients, progress: seen.extend(gradients))
    for mine, theirs in zip(twin.parameters, model.parameters, strict=True):
        mine.assign(theirs)
    twin.q_mu.assign(optimizer.posterior.mean)
    twin.q_sqrt.assign(np.linalg.cholesky(optimizer.posterior.covariance()))

    found, finite = optimizer.advance(tf.constant(1))
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


def test_the_natural_step_moves_q_by_the_schedule(make_model, recipe, regression, eagerly):
    model = make_model()
    optimizer = Optimizer(model, regression, recipe(), seed=0)
    optimizer.advance(tf.constant(5))
    twin = NaturalPosterior(model)
    twin.roots.assign(optimizer.posterior.roots)
    twin.mean.assign(optimizer.posterior.mean)
    quadratic = model.quadratic(regression, [0, 0])  # the full orbit: no draws
    optimizer.advance(tf.constant(1))
    twin.step(quadratic, geometric(tf.constant(5 / 20, tf.float64), 0.5, 0.1))
    np.testing.assert_allclose(optimizer.posterior.roots, twin.roots, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(optimizer.posterior.mean, twin.mean, rtol=1e-8)


def test_only_a_bound_that_is_quadratic_in_q_is_taken_for_one(make_model):
    assert all(map(_quadratic_in_q, (make_model(), make_model("table"), make_model(covariance="per_output"))))
    assert not _quadratic_in_q(make_model(whiten=False))


def test_where_nothing_is_drawn_it_starts_with_the_best_q_and_so_it_is_mended(make_model, recipe, regression, eagerly):
    model = make_model()
    optimizer = Optimizer(model, regression, recipe(batch=99), seed=0)
    mean, root = best_posterior(model.quadratic(regression, [0, 0]))
    for _ in range(2):
        optimizer.write_back()
        np.testing.assert_allclose(model.q_mu, mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(model.q_sqrt, root, rtol=1e-8, atol=1e-10)
        optimizer.posterior.roots.assign(optimizer.posterior.roots * np.nan)
        optimizer.mend()


def test_it_starts_from_as_many_batches_as_the_data_have(make_model, recipe, regression, eagerly):
    model = make_model(orbit=noise(), scheme=Groups(2, 2))
    linear, ceiling = np.zeros((6, 2)), np.eye(6)
    optimizer = Optimizer(model, regression, recipe(batch=4), seed=5)
    for number in range(4):  # of four, of fifteen images
        seed = seed_of(5, -1, number)
        rows = optimizer._batches.draw(split(seed, BATCH)).numpy()
        part = model.quadratic((regression[0][rows], regression[1][rows], rows), split(seed, DRAWS))
        linear += part.linear.numpy() / 4
        ceiling += part.ceiling.numpy()[0] / 4
    assert optimizer.posterior.roots.shape == (2, 1, 6, 6)
    for root in optimizer.posterior.roots.numpy()[:, 0]:
        np.testing.assert_allclose(root @ ceiling @ root.T, np.eye(6), atol=1e-8)
    np.testing.assert_allclose(optimizer.posterior.mean, np.linalg.solve(ceiling, linear), rtol=1e-6, atol=1e-9)


def test_inducing_points_alone_have_a_scale_for_each_row(make_model, recipe, regression, eagerly):
    """
    From rest, a row moves by rate · g / √mean g² and every other number by the rate, less what Adam's ε takes off
    where gradients are small.
    """
    changes = {}
    for scale in ("element", "row"):
        model = make_model(orbit=noise(), scheme=Groups(2, 2))
        before = [variable.numpy() for variable in model.trainable_variables]
        optimizer = Optimizer(model, regression, recipe(warmup=0.0, inducing_scale=scale), seed=1)
        optimizer.advance(tf.constant(1))
        changes[scale] = {
            variable.shape.rank: np.abs(variable.numpy() - old)
            for variable, old in zip(model.trainable_variables, before, strict=True)
            if variable.shape in ((), (6, 9))
        }
        np.testing.assert_allclose(changes[scale][0], 0.02, rtol=1e-3)
    np.testing.assert_allclose(changes["element"][2], 0.02, rtol=1e-3)
    np.testing.assert_allclose(np.sqrt(np.mean(changes["row"][2] ** 2, axis=1)), 0.02, rtol=1e-3)
    assert np.ptp(changes["row"][2]) > 0.01


def test_the_adam_step_is_adam_on_the_bound(make_model, recipe, regression, eagerly):
    """Its formula is in test_adam.py; here, the rate of each group and step."""
    rates = {"inducing": 0.01, "kernel": 0.02, "likelihood": 0.03, "orbit": 0.04, "variational": 0.05}
    model, twin = (make_model(orbit=noise(), scheme=Groups(2, 2)) for _ in range(2))
    optimizer = Optimizer(model, regression, recipe("adam", rates=rates, warmup=0.0), seed=1)
    groups = {
        "inducing": twin.inducing_variable.trainable_variables,
        "kernel": twin.kernel.base.trainable_variables,
        "likelihood": twin.likelihood.trainable_variables,
        "orbit": twin.kernel.orbit.trainable_variables,
        "variational": (twin.q_mu.unconstrained_variable, twin.q_sqrt.unconstrained_variable),
    }
    adams = {name: Adam(variables) for name, variables in groups.items()}
    assert sum(len(variables) for variables in groups.values()) == len(twin.trainable_variables)
    for step in range(2):
        with tf.GradientTape() as tape:
            bound = -twin.elbo(all_rows(regression), seed=seed_of(1, step, DRAWS))
        gradients = tape.gradient(bound, groups)
        share = cosine(tf.constant(step / 20, tf.float64), 0.0, 0.1)
        for name, adam in adams.items():
            adam.apply([tf.convert_to_tensor(gradient) for gradient in gradients[name]], rates[name] * share, step)
        found, _ = optimizer.advance(tf.constant(1))
        np.testing.assert_allclose(found, -bound, rtol=1e-5)
    for mine, theirs in zip(model.trainable_variables, twin.trainable_variables, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_training_raises_the_exact_bound(kind, make_model, recipe, regression):
    model = make_model(scheme=Groups(2, 1, "iid"), orbit=orbits.RightAngles((3, 3)))
    optimizer = Optimizer(model, regression, recipe(kind, steps=40, batch=8), seed=0)

    def exact():
        optimizer.write_back()
        model.scheme, stochastic = FullOrbit(), model.scheme
        bound = model.elbo(regression).numpy()
        model.scheme = stochastic
        return bound

    before = exact()
    assert optimizer.advance(tf.constant(40))[1]
    after = exact()
    assert after > before + 1
    if kind == "natural":  # q is close to the best that these parameters allow
        model.scheme = FullOrbit()
        mean, root = best_posterior(model.quadratic(regression, [0, 0]))
        model.q_mu.assign(mean)
        model.q_sqrt.assign(root)
        assert 0 <= model.elbo(regression).numpy() - after < 1


def test_a_tilt_chosen_by_q_follows_q_from_step_to_step(make_model, recipe, signs, eagerly):
    model = make_model("groups")
    optimizer = Optimizer(model, signs, recipe(natural=NaturalRate(1.0, 1.0)), seed=0)
    optimizer.advance(tf.constant(12))
    optimizer.write_back()
    # at the optimum, q is the best for the tilt that q itself asks for
    best, root = best_posterior(model.quadratic(all_rows(signs), [0, 0]))
    np.testing.assert_allclose(model.q_mu, best, atol=0.02)
    np.testing.assert_allclose(model.q_sqrt, root, atol=0.02)


# -- batches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "batches", "batch"),
    [
        ("natural", "drawn", 15),
        ("adam", "hard", 99),
        ("natural", "shuffled", 4),
        ("natural", "hard", 4),
        ("adam", "hard", 4),
    ],
)
def test_the_bound_of_a_batch_counts_its_rows_by_their_weights_and_is_scaled_to_all_data(
    kind, batches, batch, make_model, recipe, regression, eagerly
):
    X, Y = regression
    model = make_model(orbit=noise(), scheme=Groups(2, 2))
    optimizer = Optimizer(model, regression, recipe(kind, batch=batch, batches=batches, steps=90), seed=9)
    optimizer.advance(tf.constant(1))
    optimizer.write_back()
    rows, weights = np.arange(15), np.ones(15)
    if batch < 15:
        rows = rows_of(optimizer, 9, 1).numpy()
        weights = np.ones(batch)
    if batches == "hard":
        weights = 1 / (len(X) * optimizer._batches.probability.numpy()[rows])
        assert (np.ptp(weights) > 0.1) == (batch < 15)  # batches that are the data need no look
    assert len(rows) == min(batch, 15)
    expected = model.elbo((X[rows], Y[rows], rows, weights), seed=seed_of(9, 1, DRAWS)).numpy()
    found, _ = optimizer.advance(tf.constant(1))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("likelihood", ["gaussian", "network"])
def test_hard_batches_leave_bound_and_gradient_unbiased(likelihood, make_model, recipe, regression, signs, eagerly):
    """Their mean over every row that a place may draw, exactly those of all data, over the full orbit."""
    X, Y = data = regression if likelihood == "gaussian" else signs
    model = make_model(likelihood)
    optimizer = Optimizer(model, data, recipe(batch=4, batches="hard"), seed=1)
    optimizer._batches.weigh(optimizer.hardness())
    variables = [*model.kernel.trainable_variables, *model.inducing_variable.trainable_variables]

    tf.config.run_functions_eagerly(False)  # sixteen times

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], X.dtype)], autograph=False)
    def terms(rows, weights):
        with tf.GradientTape() as tape:
            bound = model.elbo((tf.gather(X, rows), tf.gather(Y, rows), rows, weights))
        gradients = tape.gradient(bound, variables)
        return tf.concat([[bound], *(tf.reshape(gradient, [-1]) for gradient in gradients)], axis=0)

    probability = optimizer._batches.probability.numpy()
    assert np.ptp(probability) > 0.01
    each = [tf.constant([row]) for row in range(15)]
    of_each = [terms(row, optimizer._batches.weights(row)) for row in each]
    np.testing.assert_allclose(probability @ of_each, terms(np.arange(15), np.ones(15)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("kind", "likelihood"), [("natural", "gaussian"), ("adam", "network")])
def test_hard_batches_are_drawn_by_how_wrong_the_model_is(
    kind, likelihood, make_model, recipe, regression, signs, eagerly
):
    """By a loop over all rows with the exact posterior; four to a batch, so that the last of 15 is in a shorter one."""
    X, Y = data = regression if likelihood == "gaussian" else signs
    model = make_model(likelihood)
    optimizer = Optimizer(model, data, recipe(kind, batch=4, batches="hard", steps=90), seed=5)
    optimizer.advance(tf.constant(3))
    optimizer.write_back()
    mean = model.predict_f(X)[0].numpy()
    before = optimizer._batches.probability.numpy()
    optimizer.advance(tf.constant(1))  # looks first
    found = optimizer._batches.probability.numpy()
    assert np.abs(found - before).max() > 1e-5
    residuals = Y - mean if likelihood == "gaussian" else 1 / (1 + np.exp(Y * mean))
    hardness = np.array([np.linalg.norm(residual) for residual in residuals])
    np.testing.assert_allclose(found, 0.5 / len(X) + 0.5 * hardness / np.sum(hardness), rtol=1e-6)
    optimizer.advance(tf.constant(2))
    np.testing.assert_array_equal(optimizer._batches.probability, found)  # until the next look


@pytest.mark.parametrize(("steps", "looks"), [(7500, 30), (61, 21), (1, 1)])
def test_a_training_with_hard_batches_looks_up_to_thirty_times(
    steps, looks, make_model, recipe, regression, monkeypatch, eagerly
):
    optimizer = Optimizer(make_model(), regression, recipe(batch=4, batches="hard", steps=steps), seed=0)
    seen = []

    def step_over(count):
        optimizer.step.assign_add(int(count))
        return tf.zeros([], tf.float64), tf.constant(True)

    def look():
        seen.append(int(optimizer.step.numpy()))
        return tf.ones(15, tf.float64)

    monkeypatch.setattr(optimizer, "_advance_compiled", step_over)
    monkeypatch.setattr(optimizer, "hardness", look)
    for first in range(0, steps, 20):
        optimizer.advance(tf.constant(min(20, steps - first)))
    assert optimizer.step.numpy() == steps and len(seen) == looks
    assert seen == list(range(0, steps, -(-steps // 30)))


def test_a_table_learns_the_rows_of_its_batch_and_no_others(make_model, recipe, signs, eagerly):
    model = make_model("table")
    before = model.likelihood._tilt.values.numpy()
    optimizer = Optimizer(model, signs, recipe(batch=4, warmup=0.0), seed=9)
    rows = rows_of(optimizer, 9, 0).numpy()
    optimizer.advance(tf.constant(1))
    moved = np.flatnonzero(np.any(model.likelihood._tilt.values.numpy() != before, axis=1))
    assert set(moved) == set(rows)


# -- state ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "likelihood", "batches"),
    [
        ("natural", "groups", "drawn"),
        ("adam", "gaussian", "shuffled"),
        ("natural", "gaussian", "hard"),  # which look in the middle of what is repeated
        ("adam", "gaussian", "hard"),
    ],
)
def test_a_state_that_is_brought_back_goes_on_to_the_bit(
    kind, likelihood, batches, make_model, recipe, regression, signs, eagerly
):
    data = regression if likelihood == "gaussian" else signs

    def fresh(seed):
        model = make_model(likelihood, noise(), scheme=Groups(2, 2), seed=seed, precision="mixed")
        return Optimizer(model, data, recipe(kind, batch=5, batches=batches, steps=60), seed=2)

    first = fresh(1)
    first.advance(tf.constant(1))
    saved = {name: variable.numpy() for name, variable in first.state().items()}
    total, _ = first.advance(tf.constant(2))

    second = fresh(8)  # begun elsewhere: whatever the state leaves out would show
    assert list(second.state()) == list(saved)
    assert any(variable is second._model.jitter for variable in second.state().values())
    for name, variable in second.state().items():
        variable.assign(saved[name])
    again, _ = second.advance(tf.constant(2))
    assert again.numpy() == total.numpy()
    assert bytes_of(second.state()) == bytes_of(first.state())
    for optimizer in (first, second):
        optimizer.write_back()
    for mine, theirs in zip(second._model.parameters, first._model.parameters, strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()


def test_what_is_held_fixed_stays(make_model, recipe, regression, eagerly):
    model = make_model(orbit=orbits.Rotation((3, 3), 40.0, trainable=False), scheme=Groups(2, 2))
    optimizer = Optimizer(model, regression, recipe(), seed=0)
    optimizer.advance(tf.constant(1))
    assert model.kernel.orbit.alpha.numpy() == pytest.approx(40.0, rel=1e-14)
    assert not [name for name in optimizer.state() if "orbit" in name]


@pytest.mark.parametrize(
    ("poison", "changes"),
    [
        ("model/0", {}),
        ("posterior/mean", {"batch": 5, "batches": "hard"}),  # which look at all images before each of 20 steps
        ("batches/probability", {"batch": 5, "batches": "hard", "steps": 90}),  # and not before the second of 90
    ],
)
def test_what_is_not_finite_is_seen(poison, changes, make_model, recipe, regression, eagerly):
    optimizer = Optimizer(make_model(), regression, recipe(**changes), seed=0)
    assert optimizer.advance(tf.constant(1))[1]
    variable = optimizer.state()[poison]
    variable.assign(variable * np.nan)
    assert not optimizer.advance(tf.constant(1))[1]


@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_the_same_one_by_one_in_a_graph_and_each_in_one_by_xla(kind, make_model, recipe, regression, eagerly):
    found = {}
    for way in ("eager", "graph", "fused"):
        tf.config.run_functions_eagerly(way == "eager")
        model = make_model(orbit=noise(), scheme=Groups(2, 2))
        settings = recipe(kind, batch=5, batches="hard", steps=60)
        optimizer = Optimizer(model, regression, settings, seed=0, fused=way == "fused")
        before = {name: variable.numpy() for name, variable in optimizer.state().items()}
        totals = [optimizer.advance(tf.constant(steps)) for steps in (2, 3)]
        assert optimizer.step.numpy() == 5 and all(finite for _, finite in totals)
        found[way] = {name: variable.numpy() for name, variable in optimizer.state().items()}
        found[way]["bounds"] = np.array([total for total, _ in totals])
    W, K = np.stack([before["whitener"], found["fused"].pop("whitener")]), model.Kuu().numpy()
    first, last = np.abs(W @ K @ W.transpose(0, 2, 1) - np.eye(6)).max(axis=(1, 2))
    assert last < 0.5 * first < 0.5, (first, last)  # of the step before, not of the start
    for way in ("eager", "fused"):
        assert found[way].keys() == found["graph"].keys()
        for name, value in found["graph"].items():
            np.testing.assert_allclose(found[way][name], value, rtol=1e-6, atol=1e-8, err_msg=f"{way}, {name}")
