import gpflow
import numpy as np
import pytest
import tensorflow as tf

from orbitgp import orbits
from orbitgp.inducing import BasePoints
from orbitgp.insensitivity import insensitivity
from orbitgp.kernels import Invariant
from orbitgp.models import InvariantSVGP
from orbitgp.orbits.sampling import split
from orbitgp.schemes import FullOrbit, Groups

D, THRESHOLDS = 2, np.array([0.05, 0.3, 1.0])
X = np.random.default_rng(0).normal(size=(5, D))


def make_model(orbit, **settings):
    rng = np.random.default_rng(1)
    kernel = Invariant(gpflow.kernels.SquaredExponential(1.7, 0.8), orbit)
    model = InvariantSVGP(
        kernel, gpflow.likelihoods.Gaussian(0.1), BasePoints(rng.normal(size=(6, D))), num_latent_gps=2, **settings
    )
    model.q_mu.assign(rng.normal(size=(6, 2)))
    model.q_sqrt.assign(0.5 * np.eye(6)[None])
    return model


def test_under_the_prior_against_sampled_functions():
    """An orbit that is no group: neighbours overlap but do not agree. Functions are drawn from the scaled kernel."""
    model = make_model(orbits.Permutation([[0, 1], [1, 0]]), scheme=FullOrbit())
    model.kernel.orbit = Neighbours()
    found = insensitivity(model, X, THRESHOLDS, view="prior", draws=64)
    moved = model.kernel.orbit.full(X).numpy()  # the draws are points of the orbit, each equally likely
    rng = np.random.default_rng(2)
    for x, candidates, probability in zip(X, moved, found.probability[:, 0], strict=True):
        points = np.concatenate([x[None], candidates])
        K = model.kernel(points).numpy()
        K /= np.sqrt(np.outer(np.diag(K), np.diag(K)))
        f = rng.multivariate_normal(np.zeros(len(points)), K, size=20_000, method="eigh")
        squares = (f[:, :1] - f[:, 1:]) ** 2
        sampled = (squares[..., None] > THRESHOLDS).mean(axis=(0, 1))
        np.testing.assert_allclose(probability, sampled, atol=0.01)


class Neighbours(orbits.FiniteOrbit):
    """x itself and two points beside it."""

    @property
    def order(self):
        return 3

    def full(self, X):
        X = tf.convert_to_tensor(X)
        return X[:, None, :] + tf.constant([[0.0, 0.0], [0.4, 0.0], [0.0, 0.7]], X.dtype)


def test_under_the_posterior_against_sampled_functions():
    model = make_model(Neighbours(), scheme=FullOrbit())
    found = insensitivity(model, X, THRESHOLDS, draws=64)
    assert found.probability.shape == (5, 2, 3)
    moved = model.kernel.orbit.full(X).numpy()
    for x, candidates, probability, square in zip(X, moved, found.probability, found.expected_square, strict=True):
        f = model.predict_f_samples(np.concatenate([x[None], candidates]), 20_000, full_cov=True).numpy()
        squares = (f[:, :1] - f[:, 1:]) ** 2
        np.testing.assert_allclose(probability, (squares[..., None] > THRESHOLDS).mean(axis=(0, 1)), atol=0.015)
        np.testing.assert_allclose(square, squares.mean(axis=(0, 1)), rtol=0.1)


@pytest.mark.parametrize("view", ["prior", "posterior"])
def test_the_expected_square_has_no_trend_in_the_number_of_draws(view, exact_twin):
    """Against its limit, from the closed forms of Gaussian noise: two draws a set are as unbiased as 32."""
    orbit = orbits.GaussianNoise(D, 0.5, trainable=False)
    model = make_model(orbit, scheme=Groups(2, 4, "iid"))
    twin = exact_twin(model)
    first, second = np.repeat(np.arange(len(X)), 8), len(X) + np.arange(8 * len(X))

    def exact(moved):
        """[P], E [f(x) − f(x_a)]² averaged over these x_a"""
        points = np.concatenate([X, moved])
        mean, K = np.zeros((len(points), 1)), model.kernel(points).numpy()[None]
        K = K / np.sqrt(K.diagonal(axis1=1, axis2=2)[:, :, None] * K.diagonal(axis1=1, axis2=2)[:, None])
        if view == "posterior":
            mean, K = (part.numpy() for part in twin.predict_f(points, full_cov=True))
        spread = K[:, first, first] + K[:, second, second] - 2 * K[:, first, second]
        return ((mean[first] - mean[second]) ** 2 + spread.T).mean(axis=0)

    for samples in (4, 64):
        errors = []
        for seed in range(12):
            found = insensitivity(model, X, THRESHOLDS, view=view, draws=8, samples=samples, seed=seed)
            moved = orbit.sample(X, 1, 8, split(tf.constant([seed, 0], tf.int64), 0))[:, 0].numpy().reshape(-1, D)
            errors.append(found.expected_square.mean(axis=0) / exact(moved) - 1)
        errors = np.array(errors)
        allowed = 4 * errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
        # under the prior it is a ratio of unbiased estimates, which few draws bias by a little
        assert np.all(np.abs(errors.mean(axis=0)) < allowed + (1 / samples if view == "prior" else 0)), errors


@pytest.mark.parametrize("view", ["prior", "posterior"])
def test_no_draw_tells_an_input_from_itself_nor_an_invariant_function_from_what_it_is_invariant_to(view):
    still = make_model(orbits.GaussianNoise(D, 0.5), scheme=Groups(2, 4))
    still.kernel.orbit = Still(D, 0.5)
    for model in (still, make_model(orbits.Permutation([[0, 1], [1, 0]]), scheme=FullOrbit())):
        found = insensitivity(model, X, [1e-6], view=view)
        np.testing.assert_allclose(found.expected_square, 0.0, atol=1e-12)
        np.testing.assert_allclose(found.probability, 0.0, atol=1e-12)


class Still(orbits.GaussianNoise):
    """x_a is x itself, though f is averaged over noise: only the draws behind f(x) and f(x_a) could differ."""

    def sample(self, X, *arguments, **settings):
        drawn = super().sample(X, *arguments, **settings)
        return tf.broadcast_to(tf.convert_to_tensor(X)[:, None, None], tf.shape(drawn))


@pytest.mark.parametrize("view", ["prior", "posterior"])
def test_the_lemma_holds_and_is_no_empty_word(view):
    model = make_model(orbits.GaussianNoise(D, 0.5), scheme=Groups(2, 4))
    found = insensitivity(model, X, THRESHOLDS, view=view)
    assert np.all(found.probability <= found.bound + 1e-12)
    assert np.any(found.bound < 1)
    assert np.all(np.diff(found.probability, axis=-1) <= 0)
