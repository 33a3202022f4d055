import numpy as np
import pytest
import tensorflow as tf
from scipy.integrate import quad
from scipy.stats import norm

from orbitgp import orbits
from orbitgp.calibration import expected_calibration_error
from orbitgp.fitting.scores import Tester, WholeBound, named_parameters
from orbitgp.likelihoods import OneHotGaussian
from orbitgp.schemes import FullOrbit, Groups


def parts(quadratic):
    return [part.numpy() for part in (quadratic.linear, quadratic.precision, quadratic.constant, quadratic.ceiling)]


# -- test data -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["mixed", "float64"])
def test_the_score_of_classes_is_that_of_plain_numpy(precision, make_model, regression, eagerly):
    model = make_model(orbit=orbits.GaussianNoise(9, 0.5), scheme=Groups(2, 2), precision=precision)
    X, values = regression
    labels = (values[:, 0] > 0).astype(int)
    Y = np.eye(2)[labels]
    score = Tester(model, X, Y)()
    mean, variance = (tensor.numpy() for tensor in model.predict_f(X))
    wrong = [np.argmax(row) != label for row, label in zip(mean, labels, strict=True)]
    assert 0 < sum(wrong) < len(wrong)
    noise = model.likelihood.variance.numpy()
    log_densities = [
        sum(norm.logpdf(y, m, np.sqrt(v + noise)) for y, m, v in zip(*rows, strict=True))
        for rows in zip(Y, mean, variance, strict=True)
    ]
    assert score.error == pytest.approx(100 * sum(wrong) / len(wrong), rel=1e-12)
    assert score.nll == pytest.approx(-np.mean(log_densities), rel=1e-9)


def test_probabilities_of_two_classes_are_scored_as_their_closed_form(make_model, regression, eagerly):
    model = make_model(orbit=orbits.GaussianNoise(9, 0.5), scheme=Groups(2, 2))
    X, values = regression
    labels = (values[:, 0] > 0).astype(int)
    assert np.isnan(Tester(model, X, np.eye(2)[labels], probabilities=True)().class_nll)  # none with real targets
    model.likelihood = OneHotGaussian(0.3)
    score = Tester(model, X, np.eye(2)[labels], probabilities=True)()
    mean, variance = (tensor.numpy() for tensor in model.predict_f(X))
    second = norm.cdf((mean[:, 1] - mean[:, 0]) / np.sqrt(variance.sum(1) + 2 * 0.3))
    probabilities = np.stack([1 - second, second], axis=1)
    assert score.class_nll == pytest.approx(-np.mean(np.log(probabilities[np.arange(len(X)), labels])), rel=1e-6)
    assert score.calibration_error == pytest.approx(100 * expected_calibration_error(probabilities, labels), rel=1e-6)


def test_the_score_of_signs_is_that_of_plain_numpy(make_model, signs, eagerly):
    model = make_model("groups")
    model.q_mu.assign(0.4 * model.q_mu)
    X, Y = signs
    score = Tester(model, X, Y)()
    mean, variance = (tensor.numpy()[:, 0] for tensor in model.predict_f(X))
    wrong = [(m > 0) != (y > 0) for m, y in zip(mean, Y[:, 0], strict=True)]
    assert 0 < sum(wrong) < len(wrong)
    probabilities = [
        quad(lambda f, m=m, v=v, y=y: norm.pdf(f, m, np.sqrt(v)) / (1 + np.exp(-y * f)), m - 9, m + 9)[0]
        for m, v, y in zip(mean, variance, Y[:, 0], strict=True)
    ]
    assert score.error == pytest.approx(100 * sum(wrong) / len(wrong), rel=1e-12)
    assert score.nll == pytest.approx(-np.mean(np.log(probabilities)), abs=1e-3)


def test_a_compiled_score_is_the_eager_one(make_model, regression):
    model = make_model(orbit=orbits.GaussianNoise(9, 0.5), scheme=Groups(2, 2))
    tester = Tester(model, *regression)
    found = [tester()]
    assert tester() == found[0]  # the same draws at each call
    model.kernel.base.variance.assign(2.0)  # compiled once, with the values of the moment
    found.append(tester())
    tf.config.run_functions_eagerly(True)
    expected = tester()
    tf.config.run_functions_eagerly(False)
    assert found[1].nll == pytest.approx(expected.nll, rel=1e-10)
    assert found[0].nll != found[1].nll


def test_each_256_inputs_have_draws_of_their_own(make_model, regression):
    model = make_model(orbit=orbits.GaussianNoise(9, 0.5), scheme=Groups(2, 2))
    X, Y = (np.tile(part, (20, 1)) for part in regression)
    densities = [
        model.predict_log_density((X[first : first + 256], Y[first : first + 256]), seed=[model.seed, -1 - number])
        for number, first in enumerate((0, 256))
    ]
    assert Tester(model, X, Y)().nll == pytest.approx(-np.mean(np.concatenate(densities)), rel=1e-10)
    assert np.abs(densities[0][240:255] - densities[1][-15:]).max() > 1e-3  # the same images


# -- all training data ---------------------------------------------------------------------------------------------


def assert_close(found, expected):
    for mine, theirs in zip(parts(found), parts(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("batch", [4, 15, 99])
def test_parts_add_up_to_the_whole_also_without_a_number_of_data_and_with_a_table(
    batch, make_model, regression, signs, eagerly
):
    model, table = make_model(), make_model("table")
    table.likelihood._tilt.values.assign(np.random.default_rng(0).uniform(0.5, 2, (15, 1)))
    assert_close(WholeBound(model, *regression, batch)(seed=3, pass_number=0), model.quadratic(regression, [0, 0]))
    assert_close(WholeBound(table, *signs, batch)(0, 0), table.quadratic((*signs, np.arange(15)), [0, 0]))
    model.num_data = None
    assert_close(WholeBound(model, *regression, batch)(0, 0), model.quadratic(regression, [0, 0]))


def test_compiled_parts_of_two_sizes_are_the_eager_ones(make_model, regression):
    model = make_model(orbit=orbits.GaussianNoise(9, 0.5), scheme=Groups(2, 3))
    whole = WholeBound(model, *regression, 4)  # 4 + 4 + 4 + 3
    found = whole(1, 2)
    tf.config.run_functions_eagerly(True)
    expected = whole(1, 2)
    tf.config.run_functions_eagerly(False)
    assert_close(found, expected)


def test_passes_and_seeds_have_draws_of_their_own_and_are_unbiased(make_model, regression, eagerly):
    model = make_model(scheme=Groups(2, 2, "iid"))
    whole = WholeBound(model, *regression, 8)
    first = parts(whole(0, 0))
    for mine, again in zip(first, parts(whole(0, 0)), strict=True):
        np.testing.assert_array_equal(mine, again)
    assert not np.array_equal(first[1], parts(whole(0, 1))[1])
    assert not np.array_equal(first[1], parts(whole(1, 0))[1])
    constants = np.array([float(whole(0, number).constant) for number in range(1, 13)])
    model.scheme = FullOrbit()
    exact = float(model.quadratic(regression, [0, 0]).constant)
    error = constants.std(ddof=1) / np.sqrt(len(constants))
    assert error > 0
    assert abs(constants.mean() - exact) < 4 * error


# -- parameters by name --------------------------------------------------------------------------------------------


def test_the_numbers_of_a_model_have_names(make_model):
    names = {"kernel.variance": 1.3, "kernel.lengthscale": 2.0, "likelihood.variance": 0.3}
    for orbit, expected in (
        (orbits.Identity(), {}),
        (orbits.Rotation((3, 3), 180.0, trainable=False), {"orbit.alpha": 180.0}),
        (
            orbits.Affine((3, 3), spread=0.25),
            {
                f"orbit.{end}.{name}": identity + sign * 0.25
                for end, sign in (("lower", -1), ("upper", 1))
                for name, identity in zip(orbits.Affine.names, orbits.Affine.identity, strict=True)
            },
        ),
        (
            orbits.LocalDeformation((3, 3), 0.1, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 0.7),
            {"orbit.deformation": 0.1, **{f"orbit.generators.{i}": 0.1 * (i + 1) for i in range(6)}}
            | {"orbit.thickening": 0.7},
        ),
    ):
        found = named_parameters(make_model(orbit=orbit, scheme=Groups(2, 2)))
        assert found == pytest.approx(names | expected, rel=1e-10, abs=1e-12)
        assert list(found)[:3] == list(names)
        assert all(type(value) is float for value in found.values())


def test_a_logistic_likelihood_has_no_noise_and_composed_orbits_keep_their_parts_apart(make_model):
    orbit = orbits.Composed([orbits.Rotation((3, 3), 20.0), orbits.Rotation((3, 3), 30.0)])
    found = named_parameters(make_model("network", orbit=orbit, scheme=Groups(2, 2)))
    assert sorted(value for name, value in found.items() if name.startswith("orbit.")) == pytest.approx([20, 30])
    assert not [name for name in found if name.startswith("likelihood")]
