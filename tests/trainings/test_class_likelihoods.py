"""Trainings of models of several classes, by natural steps and Adam, step by step and compiled as a whole."""

import numpy as np
import pytest
import tensorflow as tf
from class_models import D, K, M, N, labelled, likelihood_of, make_model

from orbitgp import orbits
from orbitgp.fitting.loop import fit
from orbitgp.optimizers.natural import best_posterior
from orbitgp.optimizers.recipe import NaturalRate, Recipe
from orbitgp.optimizers.steps import Optimizer
from orbitgp.schemes import Groups


@pytest.mark.parametrize(("kind", "tilt"), [("softmax", "groups"), ("logistic_softmax", "groups"), ("dirichlet", None)])
def test_a_small_training_raises_the_bound_and_learns_the_classes(kind, tilt):
    X, Y = labelled(60)
    model = make_model(likelihood_of(kind, tilt), scheme=Groups(2, 2), num_data=60)
    model.q_mu.assign(np.zeros((M, K)))
    rates = dict.fromkeys(("inducing", "kernel", "likelihood", "orbit"), 0.03)
    recipe = Recipe("natural", steps=60, batch=30, rates=rates, natural=NaturalRate(0.3, 0.1), batches="hard")
    fitted = fit(model, (X, Y), recipe, test=(X, Y), evaluations=3, final_samples=8)
    bounds = [row["elbo"] for row in fitted.history.rows[1:]]
    chance = 100 * (1 - Y.mean(0).max())
    assert not fitted.diverged and bounds[-1] > bounds[0]
    assert fitted.score.error < 0.8 * chance
    mean, variance = model.predict_f(X)
    probability = model.likelihood.predict_probability(mean, variance).numpy()
    assert fitted.score.error == pytest.approx(100 * np.mean(probability.argmax(1) != Y.argmax(1)))
    assert fitted.score.nll == pytest.approx(-np.mean(np.log(np.sum(Y * probability, axis=1))), rel=1e-6)


def test_the_local_parameters_follow_q_from_step_to_step():
    """At the optimum, q is the best for the local parameters that q itself asks for."""
    X, Y = labelled()
    model = make_model(likelihood_of("softmax"), num_data=N)
    rates = dict.fromkeys(("inducing", "kernel", "likelihood", "orbit"), 0.0)
    recipe = Recipe("natural", steps=30, batch=N, rates=rates, natural=NaturalRate(1.0, 1.0))
    optimizer = Optimizer(model, (X, Y), recipe, seed=0)
    optimizer.advance(tf.constant(30))
    optimizer.write_back()
    mean, root = best_posterior(model.quadratic((X, Y), [0, 0]))
    np.testing.assert_allclose(model.q_mu, mean, atol=1e-4)
    np.testing.assert_allclose(model.q_sqrt, root, atol=1e-4)


@pytest.mark.parametrize("kind", ["natural", "adam"])
def test_a_step_that_xla_compiles_as_a_whole_is_the_same(kind):
    found = []
    for fused in (False, True):
        model = make_model(likelihood_of("softmax"), orbits.GaussianNoise(D, 0.5), Groups(2, 2), num_data=N)
        names = ("inducing", "kernel", "likelihood", "orbit", "variational")[: 5 if kind == "adam" else 4]
        recipe = Recipe(kind, steps=4, batch=N, rates=dict.fromkeys(names, 0.01))
        optimizer = Optimizer(model, labelled(), recipe, seed=0, fused=fused)
        bound, finite = optimizer.advance(tf.constant(4))
        optimizer.write_back()
        assert finite
        found.append([bound.numpy(), model.q_mu.numpy(), model.q_sqrt.numpy()])
    for plain, compiled in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-6, atol=1e-8)
