import numpy as np
import pytest
import tensorflow as tf

from orbitgp import orbits
from orbitgp.posteriors import PREDICTED_TOGETHER
from orbitgp.schemes import FullOrbit, Groups

SHAPE, D = (3, 3), 9


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(PREDICTED_TOGETHER + 44, D)).cumsum(axis=1) / 4


ORBITS = {
    "affine": lambda: orbits.Affine(SHAPE, spread=0.3),
    "deformation": lambda: orbits.LocalDeformation(SHAPE, 0.1),
    "noise": lambda: orbits.GaussianNoise(D, 0.5),
}


@pytest.mark.parametrize(("kind", "sampler"), [("affine", "sobol"), ("deformation", "iid"), ("noise", "sobol")])
def test_f_is_a_function_of_x(kind, sampler, X, make_model):
    """Alone or in a batch, in any row, in either block, in a graph, jointly or not: the same input, the same answer."""
    model = make_model(orbit=ORBITS[kind](), scheme=Groups(2, 2, sampler), prediction_samples=8)
    mean, variance = model.predict_f(X)
    graph = tf.function(model.predict_f, input_signature=[tf.TensorSpec([None, D], tf.float64)])
    rows = [3, 290, 3, 255, 256, 3]
    joint_mean, joint = model.predict_f(X[rows], full_cov=True)
    assert np.abs(mean[3] - mean[290]).max() > 1e-3
    for found in (
        model.predict_f(X[rows]),
        graph(X[rows]),
        (joint_mean, tf.transpose(tf.linalg.diag_part(joint))),
        [tf.gather(part, rows) for part in graph(X)],
        [tf.concat(part, 0) for part in zip(*(model.predict_f(X[i : i + 1]) for i in rows), strict=True)],
        model.posterior().predict_f(X[rows]),
    ):
        np.testing.assert_allclose(found[0], tf.gather(mean, rows), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found[1], tf.gather(variance, rows), rtol=1e-9, atol=1e-11)
    assert np.linalg.eigvalsh(joint).min() > -1e-9  # covariances of one process, copies of an input among them


def test_a_seed_decides_the_draws(X, make_model):
    model = make_model(orbit=ORBITS["affine"](), scheme=Groups(2, 2), prediction_samples=4)
    first, again, other = (model.predict_f(X[:5], seed=seed)[0].numpy() for seed in ([1, 2], [1, 2], [1, 3]))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-4


def test_one_input_costs_one_input(X, make_model):
    """No input is filled up to a block: as many draws are made as there are inputs."""
    seen = []

    class Counting(orbits.GaussianNoise):
        def apply(self, X, U):
            seen.append(X.shape[0])
            return super().apply(X, U)

    model = make_model(orbit=Counting(D, 0.5), scheme=Groups(2, 2))
    model.predict_f(X[:1])
    model.predict_f(X)
    assert seen[0] == 1 and sum(seen[1:]) == len(X)


def test_predictions_come_close_to_the_exact_ones_as_samples_grow(X, make_model, exact_twin):
    model = make_model(orbit=ORBITS["noise"](), scheme=Groups(2, 2))
    exact, errors = exact_twin(model).predict_f(X[:12]), []
    for samples in (4, 512):
        ours = model.predict_f(X[:12], samples=samples)
        assert np.all(ours[1] >= 0)
        errors.append([np.abs(mine - theirs).max() for mine, theirs in zip(ours, exact, strict=True)])
    assert np.all(np.array(errors[1]) < 0.25 * np.array(errors[0]))


@pytest.mark.parametrize("whiten", [True, False])
def test_the_difference_agrees_with_the_joint_prediction(whiten, X, make_model):
    for orbit, scheme in ((orbits.QuantisedRotation(SHAPE, 3), FullOrbit()), (ORBITS["affine"](), Groups(2, 2))):
        model = make_model(orbit=orbit, scheme=scheme, whiten=whiten, prediction_samples=8)
        mean, variance = model.posterior().difference(X[:5], X[5:10])
        joint_mean, joint = model.predict_f(X[:10], full_cov=True)
        np.testing.assert_allclose(mean, joint_mean[:5] - joint_mean[5:], rtol=1e-8, atol=1e-10)
        own = np.diagonal(joint, axis1=1, axis2=2)
        across = np.stack([np.diagonal(covariance[:5, 5:]) for covariance in joint.numpy()])
        np.testing.assert_allclose(variance, (own[:, :5] + own[:, 5:] - 2 * across).T, rtol=1e-6, atol=1e-9)
        for nothing in model.posterior().difference(X[:5], X[:5]):
            np.testing.assert_allclose(nothing, 0.0, atol=1e-12)
