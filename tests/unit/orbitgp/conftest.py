"""What the tests of training share: small problems whose optimum is known, and steps that need no tracing."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from orbitgp import orbits
from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant
from orbitgp.likelihoods import IndependentGroups, PolyaGammaBernoulli, RecognitionNetwork, TiltTable
from orbitgp.models import InvariantSVGP
from orbitgp.optimizers.recipe import NaturalRate, Recipe
from orbitgp.schemes import FullOrbit

N, D, M = 15, 9, 6


@pytest.fixture(scope="session")
def smooth_loss():
    """A smooth function of an array, with a weight of its own for each entry."""

    def loss(drawn):
        weights = np.random.default_rng(7).normal(size=drawn.shape)
        return tf.reduce_sum(weights * tf.sin(2 * drawn))

    return loss


@pytest.fixture(scope="session")
def assert_slopes_match():
    """Gradients against differences along one random direction for each variable: a wrong entry anywhere shows."""

    def check(loss, variables, rtol, atol, step=1e-6):
        rng = np.random.default_rng(0)
        with tf.GradientTape() as tape:
            value = loss()
        for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
            here, direction, ends = variable.numpy(), rng.normal(size=variable.shape), []
            for sign in (1, -1):
                variable.assign(here + sign * step * direction)
                ends.append(loss().numpy())
            variable.assign(here)
            slope, expected = np.sum(direction * tf.convert_to_tensor(gradient)), (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(slope, expected, rtol=rtol, atol=atol, err_msg=variable.name)

    return check


@pytest.fixture(scope="session")
def exact_twin():
    """GPflow's own SVGP with the same q, whose kernel evaluates the orbit's average exactly."""

    def make(model):
        return gpflow.models.SVGP(
            model.kernel,
            model.likelihood,
            model.inducing_variable,
            mean_function=model.mean_function,
            num_latent_gps=model.num_latent_gps,
            whiten=model.whiten,
            num_data=model.num_data,
            q_mu=model.q_mu.numpy(),
            q_sqrt=np.tile(model.q_sqrt, (model.num_latent_gps // len(model.q_sqrt.numpy()), 1, 1)),
        )

    return make


@pytest.fixture(scope="session")
def regression():
    """Inputs [N, D], and targets [N, 2] of a function that right angles leave alone, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    Y = np.stack([np.sin(X.sum(1)), np.square(X).mean(1)], axis=1) + 0.1 * rng.normal(size=(N, 2))
    return X, Y


@pytest.fixture(scope="session")
def signs(regression):
    """The same inputs, and labels [N, 1]."""
    X, Y = regression
    return X, np.sign(Y[:, :1])


@pytest.fixture(scope="session")
def make_model():
    """A model of 3 × 3 images under right angles, with a q that is not the prior."""
    tilts = {"network": lambda: RecognitionNetwork(D, (4,)), "table": lambda: TiltTable(N), "groups": IndependentGroups}

    def make(likelihood="gaussian", orbit=None, seed=1, jitter=1e-6, **settings):
        rng = np.random.default_rng(seed)
        kernel = Invariant(
            gpflow.kernels.SquaredExponential(1.3, 2.0), orbits.RightAngles((3, 3)) if orbit is None else orbit
        )
        gaussian = likelihood == "gaussian"
        model = InvariantSVGP(
            kernel,
            gpflow.likelihoods.Gaussian(0.3) if gaussian else PolyaGammaBernoulli(tilts[likelihood]()),
            BasePoints(rng.normal(size=(M, D))),
            num_latent_gps=2 if gaussian else 1,
            num_data=N,
            **{"scheme": FullOrbit(), "jitter": jitter, **settings},
        )
        model.q_mu.assign(rng.normal(size=model.q_mu.shape))
        model.q_sqrt.assign(0.2 * np.tril(rng.normal(size=model.q_sqrt.shape)) + 0.6 * np.eye(M))
        return model

    return make


@pytest.fixture(scope="session")
def recipe():
    """Of a short training, with changes."""

    def make(kind="natural", **changes):
        names = ("inducing", "kernel", "likelihood", "orbit") + ("variational",) * (kind == "adam")
        defaults = {
            "steps": 20,
            "batch": N,
            "rates": dict.fromkeys(names, 0.02),
            "natural": NaturalRate(0.5, 0.1),
            "warmup": 0.1,
            "floor": 0.1,
        }
        return Recipe(kind, **{**defaults, **changes})

    return make
