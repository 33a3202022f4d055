import gpflow
import numpy as np
import pytest
import tensorflow as tf

from orbitgp._ops.draw_kernels import DrawKernels
from orbitgp.datasets import ImageData
from orbitgp.kernels import orbit_Kff_diag, orbit_Kfu
from orbitgp.models import InvariantSVGP
from orbitgp.orbits.sampling import sobol_integers, split
from orbitgp.schemes import FullOrbit, average, square_norm_of_average, square_of_average, variance_of_average
from orbitgp_paper.experiments import spread as estimators
from orbitgp_paper.experiments.spread import ESTIMATORS, QUANTITIES, compare, estimates, make_problem

ORDER, IMAGES, M, REPEATS = 8, 6, 7, 1500
SETTINGS = {"samples": [2, 4, 8], "repeats": REPEATS, "images": IMAGES, "inducing": M, "order": ORDER, "seed": 0}
COLUMNS = ["estimator", "shared", "samples", "quantity", "exact", "mean", "bias", "bias_std_error", "std", "cost"]
UNBIASED = ["iid", "iid_groups", "sobol_groups", "without_replacement"]


@pytest.fixture(scope="module")
def data(mnist_data):
    return ImageData("some", mnist_data.train.take(100), mnist_data.test.take(10))


@pytest.fixture(scope="module")
def problem(data):
    return make_problem(SETTINGS, data)


@pytest.fixture(scope="module")
def frame(data):
    return compare(SETTINGS, data)


def rows(frame, estimator=None, quantity=None, samples=None, shared=None):
    for column, value in (("estimator", estimator), ("quantity", quantity), ("samples", samples), ("shared", shared)):
        frame = frame if value is None else frame[frame[column] == value]
    return frame


def tables(problem):
    """[N, A, A] for each product of averages: r(x_a, x_a') at all pairs of points of each image's orbit."""
    phi, spread, means = np.split(problem.features.numpy(), [M, 2 * M], axis=2)
    return {
        "k_ff": problem.kernels.numpy(),
        "square_norm": phi @ phi.transpose(0, 2, 1),
        "posterior": spread @ spread.transpose(0, 2, 1),
        "means": means @ means.transpose(0, 2, 1),  # summed over outputs
    }


def sobol_sets(size):
    """Of eight points, a set is decided by its three leading bits, and the shift by its own: eight, equally likely."""
    first = sobol_integers(size, 1)[:, 0] >> 20
    return [first ^ shift for shift in range(ORDER)]


def bias_of_bound(parts):
    """The bound is linear in these; all outputs have the same variance."""
    outputs = 10
    variance = parts["k_ff"] - parts["square_norm"] + parts["posterior"]
    return -(parts["means"] + outputs * variance) / (2 * estimators.NOISE_VARIANCE)


def test_every_estimator_size_and_quantity_has_its_row(frame):
    assert list(frame) == [*COLUMNS, "repeats"]
    found = set(frame[["estimator", "shared", "samples", "quantity"]].itertuples(index=False, name=None))
    expected = {(e, s, n, q) for e in ESTIMATORS for s in (False, True) for n in (2, 4, 8) for q in QUANTITIES}
    assert found == expected and len(frame) == len(expected)
    assert set(frame.repeats) == {REPEATS}
    assert frame.shared.dtype == bool
    np.testing.assert_allclose(frame["mean"] - frame.exact, frame.bias, atol=1e-12)
    np.testing.assert_allclose(frame.bias_std_error * np.sqrt(REPEATS), frame["std"], rtol=1e-12)


def test_exact_values_are_those_of_the_model_without_sampling(problem, frame):
    model = InvariantSVGP(
        problem.kernel, problem.likelihood, problem.inducing_variable, num_latent_gps=10, scheme=FullOrbit()
    )
    model.q_mu.assign(problem.q_mu)
    model.q_sqrt.assign(problem.q_sqrt[None])
    bound = (model.elbo((problem.X, problem.Y)) + model.prior_kl()) / IMAGES

    base, Z = problem.kernel.base, problem.inducing_variable.Z
    k_ff = np.mean(orbit_Kff_diag(problem.orbit, base, problem.X))
    L = np.linalg.cholesky(base(Z) + gpflow.default_jitter() * np.eye(M))
    phi = np.linalg.solve(L, np.transpose(orbit_Kfu(problem.orbit, base, problem.X, Z)))
    for quantity, value in zip(QUANTITIES, (k_ff, np.square(phi).sum(0).mean(), bound), strict=True):
        np.testing.assert_allclose(rows(frame, quantity=quantity).exact, value, rtol=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimate_is_what_the_library_makes_of_its_draws(problem, name):
    """The same seed through the images themselves, instead of the numbers of orbit points."""
    scheme, seed = ESTIMATORS[name](4), tf.constant([5, 6], tf.int64)
    drawn = scheme.draw(problem.orbit, problem.X, split(seed, 0))
    weights = scheme.weights(problem.orbit)
    Z = problem.inducing_variable.Z
    Kaa, Kfu = DrawKernels(problem.kernel.base, Z)(drawn)
    k_ff = variance_of_average(Kaa, drawn.shape[1], weights).numpy()
    L = np.linalg.cholesky(problem.kernel.base(Z) + gpflow.default_jitter() * np.eye(M))
    phi = np.linalg.solve(L, Kfu.numpy().reshape(-1, M).T).T.reshape(IMAGES, -1, M)
    norm, posterior = (square_norm_of_average(v, weights).numpy() for v in (phi, phi @ problem.q_sqrt))
    mean, square = average(phi @ problem.q_mu).numpy(), square_of_average(phi @ problem.q_mu, weights).numpy()
    noise = estimators.NOISE_VARIANCE
    misfit = problem.Y**2 - 2 * problem.Y * mean + square + (k_ff - norm + posterior)[:, None]
    bound = (-0.5 * np.log(2 * np.pi * noise) - misfit / (2 * noise)).sum(1)
    expected = [part.mean() for part in (k_ff, norm, bound)]
    np.testing.assert_allclose(estimates(problem, scheme, 1, seed), [expected], rtol=1e-8)


@pytest.mark.parametrize("name", UNBIASED)
def test_unbiased_estimators_are_within_their_standard_error(frame, name):
    found = rows(frame, name)
    assert len(found) == 18
    assert np.all(np.abs(found.bias) <= 4 * found.bias_std_error)


@pytest.mark.parametrize(
    ("name", "samples", "shared"),
    [("naive", n, shared) for n in SETTINGS["samples"] for shared in (False, True)]
    + [("sobol_naive", n, False) for n in (2, 4)],
)
def test_pairs_of_a_draw_with_itself_have_the_bias_of_their_points(problem, frame, name, samples, shared):
    """E of all pairs of S independent draws is I + (E_a r(x_a, x_a) − I)/S; of a Sobol set, the mean over all sets."""
    parts = {}
    for quantity, table in tables(problem).items():
        exact = table.mean((1, 2))
        if name == "naive":
            parts[quantity] = (np.einsum("naa->na", table).mean(1) - exact).mean() / samples
        else:
            parts[quantity] = np.mean([table[:, s][:, :, s].mean((1, 2)) for s in sobol_sets(samples)]) - exact.mean()
    expected = parts | {"bound": bias_of_bound(parts)}
    for quantity in QUANTITIES:
        (row,) = rows(frame, name, quantity, samples, shared).itertuples()
        assert abs(row.bias - expected[quantity]) < 4 * row.bias_std_error + 1e-9 * abs(row.exact)
        if name == "naive" or quantity == "k_ff":
            assert abs(row.bias) > 8 * row.bias_std_error, "measurably biased"


@pytest.mark.parametrize("quantity", ["k_ff", "square_norm"])
@pytest.mark.parametrize(("name", "samples"), [("iid", 2), ("sobol_groups", 4), ("sobol_groups", 8)])
def test_spread_of_two_groups_has_a_closed_form(problem, frame, quantity, name, samples):
    """The estimate is a mean of r(x_a, x_a') over two sets: its variance is that of a table of pairs of sets."""
    sets = [[point] for point in range(ORDER)] if name == "iid" else sobol_sets(samples // 2)
    table = tables(problem)[quantity]
    pairs = np.array([[table[:, one][:, :, other].mean((1, 2)) for one in sets] for other in sets])
    own = np.sqrt(pairs.var(axis=(0, 1)).sum()) / IMAGES
    for shared, expected in ((False, own), (True, pairs.mean(-1).std())):
        (row,) = rows(frame, name, quantity, samples, shared).itertuples()
        assert row.std == pytest.approx(expected, rel=0.15)


def test_the_whole_orbit_without_replacement_has_no_spread(frame):
    found = rows(frame, "without_replacement", samples=ORDER)
    assert len(found) == 6
    assert np.all(found["std"] == 0) and np.all(found.bias == 0) and np.all(found["mean"] == found.exact)


def test_cost_counts_what_the_kernel_is_evaluated_at(problem, frame):
    for samples in SETTINGS["samples"]:
        drawn = tf.zeros([1, 2, samples // 2, 784], tf.float64)
        Kaa, _ = DrawKernels(problem.kernel.base, problem.inducing_variable.Z)(drawn)
        between, to_Z = int(np.prod(Kaa.shape)), samples * M
        for quantity, cost in (("k_ff", between), ("square_norm", to_Z), ("bound", between + to_Z)):
            assert set(rows(frame, quantity=quantity, samples=samples).cost) == {cost}


def test_a_row_depends_on_its_own_settings_and_the_seed_alone(data):
    settings = SETTINGS | {"repeats": 3, "samples": [2, 4]}
    both, one, other = (
        compare(settings | change, data) for change in ({}, {"samples": [4]}, {"samples": [4], "seed": 1})
    )
    assert rows(both, samples=4).reset_index(drop=True).equals(one)
    assert not np.any(one["mean"] == other["mean"])


def test_repeats_are_worked_through_in_parts(problem, monkeypatch):
    monkeypatch.setattr(estimators, "NUMBERS_TOGETHER", 3 * IMAGES * 4 * problem.features.shape[2])
    found = estimates(problem, ESTIMATORS["iid"](4), 8, [0, 1])
    assert found.shape == (8, 3)
    assert len(np.unique(found[:, 0])) == 8


def test_labels_need_not_be_counted_from_zero(data):
    part = data.train.take(20)
    part = type(part)(part.images, np.where(part.labels % 2, 1, -1))
    problem = make_problem(SETTINGS, ImageData("parity", part, part))
    np.testing.assert_array_equal(problem.Y, np.stack([part.labels == -1, part.labels == 1], axis=1)[:IMAGES])
