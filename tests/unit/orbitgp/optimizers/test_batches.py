"""Which images a step takes: each as likely, and of an epoch each once; or by how wrong the model is, with weights."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from orbitgp.optimizers.batches import HardBatches, _count_up_to, make_batches
from orbitgp.optimizers.recipe import BATCHES, Recipe

STREAM = 3
HARDNESS = np.array([0.0, 0.01, 5.0, 0.3, 0.0, 1.0, 0.02, 0.5, 0.1, 0.0, 2.0])


def make(count, size, kind):
    return make_batches(count, Recipe(batch=size, batches=kind))


def hard(size=4, share=0.6, hardness=HARDNESS):
    batches = HardBatches(len(hardness), size, share=share)
    batches.weigh(tf.constant(hardness))
    return batches


def rows(batches, seed, step):
    return batches.rows(tf.constant([seed, step], tf.int64), STREAM).numpy()


def many(batches, seeds):
    """[len(seeds), size], in one graph."""

    @tf.function(autograph=False)
    def draw(seeds):
        return tf.map_fn(lambda seed: batches.rows(seed, STREAM), seeds, fn_output_signature=tf.int32)

    return draw(tf.constant(seeds, tf.int64)).numpy()


@pytest.mark.parametrize("kind", ["drawn", "shuffled"])
def test_each_row_is_as_likely_in_each_place(kind):
    found = many(make(10, 3, kind), [(seed, 0) for seed in range(600)])
    assert found.shape == (600, 3)
    for place in found.T:
        assert stats.chisquare(np.bincount(place, minlength=10)).pvalue > 1e-3
    assert len(np.unique(found, axis=0)) > 250


@pytest.mark.parametrize("size", [5, 19])
def test_an_epoch_has_each_row_once_and_leaves_out_what_makes_no_batch(size):
    in_epoch, left_out, orders = 20 // size, set(), set()
    found = many(make(20, size, "shuffled"), [(5, step) for step in range(12 * in_epoch)])
    for order in found.reshape(12, -1):
        assert len(order) == in_epoch * size == len(set(order)) and set(order) <= set(range(20))
        left_out |= set(range(20)) - set(order)
        orders.add(tuple(order))
    assert len(orders) == 12
    assert (len(left_out) > 5) == (size == 19)
    drawn = many(make(20, size, "drawn"), [(5, step) for step in range(12 * in_epoch)])
    assert min(len(set(order)) for order in drawn.reshape(12, -1)) < in_epoch * size


@pytest.mark.parametrize("kind", BATCHES)
def test_a_batch_as_large_as_the_data_is_the_data(kind):
    for size in (7, 8):
        batches = make(7, size, kind)
        assert batches.whole and batches.size == 7
        np.testing.assert_array_equal(rows(batches, 0, 3), np.arange(7))
        assert batches.weights(tf.range(7)) is None


@pytest.mark.parametrize("kind", BATCHES)
def test_rows_depend_on_seed_and_step_and_hardness_and_on_nothing_else(kind):
    first, second = (hard() if kind == "hard" else make(50, 10, kind) for _ in range(2))
    later = rows(first, 1, 8)
    np.testing.assert_array_equal(rows(second, 1, 8), later)
    for seed, step in ((2, 8), (1, 9), (1, 13)):
        assert not np.array_equal(rows(second, seed, step), later)
    if kind == "hard":
        assert not np.array_equal(rows(hard(hardness=HARDNESS[::-1]), 1, 8), later)
    else:
        assert second.weights(later) is None


# -- hard ones -----------------------------------------------------------------------------------------------------


def test_each_place_draws_from_a_part_of_its_own():
    found = many(HardBatches(8, 4), [(0, step) for step in range(60)])  # no look yet: all are as likely
    for place, column in enumerate(found.T):
        assert set(column) == {2 * place, 2 * place + 1}


def test_probability_and_weight_of_a_row():
    batches, N = hard(), len(HARDNESS)
    weights = batches.weights(tf.range(N)).numpy()
    for row in range(N):
        p = 0.4 / N + 0.6 * HARDNESS[row] / sum(HARDNESS)
        np.testing.assert_allclose(batches.probability[row], p, rtol=1e-12)
        np.testing.assert_allclose(weights[row], 1 / (N * p), rtol=1e-12)
    np.testing.assert_allclose(weights.max(), 1 / 0.4, rtol=1e-12)  # of a row that pulls at nothing
    for hardness in (np.zeros(11), np.full(11, 1e-300), np.ones(11)):
        np.testing.assert_allclose(hard(hardness=hardness).probability, np.full(11, 1 / 11), rtol=1e-12)


def test_rows_come_as_often_as_their_probability_says_and_sums_are_unbiased():
    """At most four standard deviations of a binomial variable, which drawing in parts narrows; four standard errors."""
    values, N, times, noise = HARDNESS * np.array([1, -1] * 5 + [1]) + 0.05, len(HARDNESS), 1000, {}
    for share in (0.0, 0.6, 0.99):
        batches = hard(share=share)
        found = many(batches, [(7, step) for step in range(times)])
        assert found.shape == (times, 4) and np.all(np.diff(found, axis=1) >= 0)
        p = batches.probability.numpy()
        counts = np.bincount(found.ravel(), minlength=N)
        assert np.all(np.abs(counts - 4 * times * p) < 4 * np.sqrt(4 * times * p * (1 - p)) + 1e-9)
        sums = N / 4 * np.sum(batches.weights(tf.range(N)).numpy()[found] * values[found], axis=1)
        noise[share] = np.std(sums, ddof=1)
        assert abs(np.mean(sums) - values.sum()) < 4 * noise[share] / np.sqrt(times)
    assert noise[0.6] < 0.5 * noise[0.0]  # where the hard rows have the sum


def test_a_probability_that_is_not_a_number_gives_rows_that_are_there():
    """A training that is not finite goes back; until then, it must not end."""
    assert set(rows(hard(hardness=np.full(11, np.nan)), 0, 0)) <= set(range(11))


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 1000])
def test_what_is_found_in_two_stages_is_what_a_search_finds(count):
    rng = np.random.default_rng(count)
    numbers = np.cumsum(rng.integers(0, 3, size=count)).astype(float)  # with ties
    levels = np.concatenate([numbers, rng.uniform(-1, numbers[-1] + 1, size=50)])
    found = _count_up_to(tf.constant(levels), tf.constant(numbers))
    np.testing.assert_array_equal(found, np.searchsorted(numbers, levels, side="right"))
