from collections import Counter
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
import tensorflow as tf

from orbitgp.orbits import FiniteOrbit, GaussianNoise, Identity, Orbit, Permutation, RightAngles, Rotation
from orbitgp.schemes import (
    FullOrbit,
    Groups,
    PairWeights,
    Scheme,
    WithoutReplacement,
    all_pairs,
    distinct_pairs,
    independent_pairs,
    paper_scheme,
    variance_of_average,
)

CYCLE = [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]]  # the first coordinate tells which point it is

# scheme, and the groups and draws in each that it makes from an orbit of four points
FINITE = {
    "two groups": (Groups(2, 3), 2, 3),
    "independent groups": (Groups(3, 2, "iid"), 3, 2),
    "the paper's": (paper_scheme(5), 5, 1),
    "the whole orbit": (FullOrbit(), 1, 4),
    "two of four": (WithoutReplacement(2), 2, 1),
    "all of four": (WithoutReplacement(4), 4, 1),
}


def cycle() -> Permutation:
    return Permutation(CYCLE)


@pytest.mark.parametrize("case", FINITE)
def test_shapes_of_draws_from_a_finite_orbit(case: str) -> None:
    scheme, groups, size = FINITE[case]
    assert scheme.draw(cycle(), np.zeros((7, 4)), [0, 0]).shape == (7, groups, size, 4)
    assert scheme.group_count == groups


@pytest.mark.parametrize("scheme", [Groups(), Groups(3, 5, "iid"), paper_scheme(4)])
@pytest.mark.parametrize("orbit", [GaussianNoise(9), Rotation((3, 3))], ids=["noise", "rotation"])
def test_shapes_of_draws_from_a_continuous_orbit(scheme: Groups, orbit: Orbit) -> None:
    drawn = scheme.draw(orbit, np.ones((2, 9)), [0, 0])
    assert drawn.shape == (2, scheme.groups, scheme.size, 9)
    assert scheme.group_count == scheme.groups


@pytest.mark.parametrize("case", FINITE)
def test_number_of_groups_is_known_before_the_number_of_inputs(case: str) -> None:
    scheme, groups, _ = FINITE[case]
    orbit = cycle()

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float64)])
    def traced(X: tf.Tensor) -> tf.Tensor:
        drawn = scheme.draw(orbit, X, [0, 0])
        assert drawn.shape[1] == groups
        return drawn

    X = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_array_equal(traced(X), scheme.draw(orbit, X, [0, 0]))


@pytest.mark.parametrize("case", FINITE)
def test_draws_are_points_of_the_orbit_of_their_input(case: str) -> None:
    scheme, _, _ = FINITE[case]
    X = np.arange(12.0).reshape(3, 4)
    drawn = scheme.draw(cycle(), X, [1, 2]).numpy()
    for n in range(3):
        orbit = [X[n][table].tolist() for table in CYCLE]
        assert all(point.tolist() in orbit for point in drawn[n].reshape(-1, 4))


@pytest.mark.parametrize("case", ["two groups", "independent groups", "two of four"])
def test_the_seed_decides_the_draws_and_each_input_has_its_own(case: str) -> None:
    scheme, _, _ = FINITE[case]
    X = np.tile(np.arange(4.0), (50, 1))
    first, again, other = (scheme.draw(cycle(), X, seed).numpy() for seed in ([0, 1], [0, 1], [0, 2]))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(first.reshape(50, -1), axis=0)) > 3


def test_groups_are_independent_and_sobol_draws_of_one_group_are_not() -> None:
    N = 4000
    drawn = Groups(2, 2).draw(GaussianNoise(1, 1.0), np.zeros((N, 1)), [0, 0]).numpy()[..., 0]
    assert abs(np.corrcoef(drawn[:, 0, 0], drawn[:, 1, 0])[0, 1]) < 4 / np.sqrt(N)
    assert abs(np.corrcoef(drawn[:, 0, 0], drawn[:, 1, 1])[0, 1]) < 4 / np.sqrt(N)
    assert np.corrcoef(drawn[:, 0, 0], drawn[:, 0, 1])[0, 1] < -0.2


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_choice_without_replacement_is_equally_likely(count: int) -> None:
    N = 6000
    drawn = WithoutReplacement(count).draw(cycle(), np.tile(np.arange(4.0), (N, 1)), [5, 5])
    found = Counter(tuple(int(i) for i in row) for row in drawn.numpy()[:, :, 0, 0])
    possible = list(permutations(range(4), count))
    assert set(found) == set(possible)
    share = 1 / len(possible)
    assert all(abs(found[choice] - N * share) < 4 * np.sqrt(N * share * (1 - share)) for choice in possible)


def test_the_whole_orbit_is_drawn_in_order() -> None:
    X = np.arange(8.0).reshape(2, 4)
    expected = np.array([[[x[table] for table in CYCLE]] for x in X])
    np.testing.assert_array_equal(FullOrbit().draw(cycle(), X, [0, 0]), expected)


@pytest.mark.parametrize(
    ("scheme", "orbit", "expected"),
    [
        (Groups(2, 8), GaussianNoise(1), independent_pairs(2)),
        (Groups(4, 1), Permutation(CYCLE), independent_pairs(4)),
        (paper_scheme(6), GaussianNoise(1), independent_pairs(6)),
        (FullOrbit(), Permutation(CYCLE), all_pairs(1)),
        (WithoutReplacement(3), Permutation(CYCLE), distinct_pairs(4, 3)),
        (WithoutReplacement(2), Permutation([[0, 1], [1, 0]]), distinct_pairs(2, 2)),
        (WithoutReplacement(1), Identity(), PairWeights(same=1.0, different=0.0)),
    ],
)
def test_weights(scheme: Scheme, orbit: Orbit, expected: PairWeights) -> None:
    assert scheme.weights(orbit) == expected


@pytest.mark.parametrize("case", FINITE)
def test_draws_and_weights_together_estimate_the_variance_without_bias(case: str) -> None:
    scheme, groups, _ = FINITE[case]
    N, x = 4000, np.array([0.3, -1.2, 0.8, 2.0])
    points = [x[table] for table in CYCLE]
    truth = np.mean([[np.exp(-0.1 * (a - b) @ (a - b)) for a in points] for b in points])
    orbit = cycle()
    drawn = scheme.draw(orbit, np.tile(x, (N, 1)), [2, 3]).numpy().reshape(N, -1, 4)
    Kaa = np.exp(-0.1 * np.square(drawn[:, :, None] - drawn[:, None]).sum(-1))
    estimates = variance_of_average(Kaa, groups, scheme.weights(orbit)).numpy()
    if case in ("the whole orbit", "all of four"):
        np.testing.assert_allclose(estimates, truth, rtol=1e-12)
    else:
        assert np.std(estimates) > 1e-3
        assert abs(np.mean(estimates) - truth) < 4 * np.std(estimates) / np.sqrt(N)


def test_the_papers_scheme_is_one_independent_draw_a_group() -> None:
    assert paper_scheme(7) == Groups(groups=7, size=1, sampler="iid")


@pytest.mark.parametrize("samples", [1, 5])
@pytest.mark.parametrize("scheme", [FullOrbit(), WithoutReplacement(2)])
def test_a_prediction_uses_the_whole_orbit_where_it_can_be_listed(scheme: Scheme, samples: int) -> None:
    X = np.arange(8.0).reshape(2, 4)
    expected = np.array([[x[table] for table in CYCLE] for x in X])
    np.testing.assert_array_equal(scheme.draw_for_prediction(cycle(), X, samples, [0, 0]), expected)


@pytest.mark.parametrize("sampler", ["sobol", "iid"])
def test_a_prediction_with_groups_uses_as_many_draws_as_asked_for(sampler: str) -> None:
    scheme = Groups(2, 4, sampler)
    orbit = GaussianNoise(3, 0.5)
    X = np.array([[0.0, 1.0, 2.0], [5.0, 5.0, 5.0]])
    drawn = scheme.draw_for_prediction(orbit, X, 512, [0, 1]).numpy()
    assert drawn.shape == (2, 512, 3)
    np.testing.assert_allclose(drawn.mean(1), X, atol=4 * 0.5 / np.sqrt(512))
    np.testing.assert_allclose(drawn.std(1), 0.5, atol=0.1)
    np.testing.assert_array_equal(drawn, scheme.draw_for_prediction(orbit, X, 512, [0, 1]))
    assert not np.array_equal(drawn, scheme.draw_for_prediction(orbit, X, 512, [0, 2]))


# -- what cannot be drawn from, and bad input ----------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [FullOrbit(), WithoutReplacement(2)])
@pytest.mark.parametrize("orbit", [GaussianNoise(2), Rotation((3, 3))], ids=["noise", "rotation"])
def test_a_continuous_orbit_cannot_be_listed(scheme: Scheme, orbit: Orbit) -> None:
    message = f"{type(scheme).__name__} needs a finite orbit, {type(orbit).__name__} is not"
    with pytest.raises(TypeError, match=message):
        scheme.check(orbit)


@pytest.mark.parametrize(
    ("scheme", "orbit"),
    [
        (Groups(), GaussianNoise(2)),
        (Groups(), RightAngles((3, 3))),
        (FullOrbit(), RightAngles((3, 3))),
        (WithoutReplacement(4), RightAngles((3, 3))),
        (WithoutReplacement(2), RightAngles((3, 3))),
        (WithoutReplacement(1), Identity()),
    ],
)
def test_a_scheme_that_fits_passes_its_check(scheme: Scheme, orbit: Orbit) -> None:
    scheme.check(orbit)


@pytest.mark.parametrize(("count", "orbit"), [(5, RightAngles((3, 3))), (1, RightAngles((3, 3))), (2, Identity())])
def test_a_count_that_does_not_fit_the_orbit_is_named(count: int, orbit: FiniteOrbit) -> None:
    message = f"count must be an integer of at least {min(2, orbit.order)} and at most {orbit.order}, got {count}"
    with pytest.raises(ValueError, match=message):
        WithoutReplacement(count).check(orbit)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Groups(groups=1), ValueError, "groups must be an integer of at least 2, got 1"),
        (lambda: Groups(groups=2.0), TypeError, "groups .* got 2.0"),
        (lambda: Groups(size=0), ValueError, "size must be an integer of at least 1, got 0"),
        (lambda: Groups(size="8"), TypeError, "size .* got '8'"),
        (lambda: Groups(sampler="halton"), ValueError, "sampler must be one of 'sobol', 'iid', got 'halton'"),
        (lambda: WithoutReplacement(0), ValueError, "count must be an integer of at least 1, got 0"),
        (lambda: WithoutReplacement(1.5), TypeError, "count .* got 1.5"),
        (lambda: paper_scheme(1), ValueError, "at least 2, got 1"),
        (lambda: paper_scheme("all"), TypeError, "at least 2, got 'all'"),
        (lambda: Groups().draw_for_prediction(cycle(), np.zeros((1, 4)), 0, [0, 0]), ValueError, "1, got 0"),
    ],
)
def test_bad_arguments_are_named(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: paper_scheme(1),
        lambda: Groups().draw_for_prediction(cycle(), np.zeros((1, 4)), 0, [0, 0]),
    ],
)
def test_a_bad_number_of_samples_is_named(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="samples must be"):
        call()
