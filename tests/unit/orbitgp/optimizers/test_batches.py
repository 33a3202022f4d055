"""Which images a step takes: each as likely, and of an epoch each once; or by how wrong the model is, with weights."""

import numpy as np
import pytest
import tensorflow as tf

from orbitgp.optimizers.batches import KINDS, HardBatches, make_batches

STREAM = 3


def make(count, size, kind):
    return make_batches(count, {"batch": size, "batches": kind})


def rows(batches, seed, step):
    return batches.rows(tf.constant([seed, step], tf.int64), STREAM).numpy()


@pytest.mark.parametrize("kind", ["drawn", "shuffled"])
def test_each_row_is_as_likely_in_each_place(kind):
    """Of 600 first batches, by seeds; four standard deviations of a binomial variable."""
    count, size, seeds = 10, 3, 600
    batches = make(count, size, kind)
    found = np.stack([rows(batches, seed, 0) for seed in range(seeds)])
    assert found.shape == (seeds, size)
    deviation = np.sqrt(seeds / count * (1 - 1 / count))
    for place in found.T:
        assert np.all(np.abs(np.bincount(place, minlength=count) - seeds / count) < 4 * deviation)
    assert len(np.unique(found, axis=0)) > 250


@pytest.mark.parametrize("size", [1, 4, 5, 19])
def test_an_epoch_has_each_row_once_and_leaves_out_what_makes_no_batch(size):
    count = 20
    batches = make(count, size, "shuffled")
    in_epoch = count // size
    left_out, orders = set(), set()
    for epoch in range(12):
        order = np.concatenate([rows(batches, 5, epoch * in_epoch + place) for place in range(in_epoch)])
        assert len(order) == in_epoch * size == len(set(order)) and set(order) <= set(range(count))
        left_out |= set(range(count)) - set(order)
        orders.add(tuple(order))
    assert len(orders) == 12
    assert (len(left_out) > 5) == (size == 19)


def test_drawn_rows_come_back_within_an_epoch():
    batches = make(20, 5, "drawn")
    assert any(len(set(np.concatenate([rows(batches, 0, 4 * e + i) for i in range(4)]))) < 20 for e in range(5))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [7, 8])
def test_a_batch_as_large_as_the_data_is_the_data(kind, size):
    batches = make(7, size, kind)
    assert batches.whole and batches.size == 7
    np.testing.assert_array_equal(rows(batches, 0, 3), np.arange(7))
    assert batches.weights(tf.range(7)) is None


@pytest.mark.parametrize("kind", ["drawn", "shuffled"])
def test_rows_depend_on_seed_and_step_and_on_nothing_else(kind):
    first, second = make(50, 10, kind), make(50, 10, kind)
    later = rows(first, 1, 8)
    np.testing.assert_array_equal(rows(second, 1, 8), later)
    for seed, step in ((2, 8), (1, 9), (1, 13)):
        assert not np.array_equal(rows(second, seed, step), later)


def test_where_nothing_is_said_rows_are_drawn():
    unsaid = make_batches(50, {"batch": 10})
    np.testing.assert_array_equal(rows(unsaid, 1, 8), rows(make(50, 10, "drawn"), 1, 8))
    assert unsaid.weights(tf.range(10)) is None


def test_another_kind_is_named():
    with pytest.raises(ValueError, match=r"optimiser.batches must be one of 'drawn', 'shuffled', 'hard', got 'sorted'"):
        make(5, 2, "sorted")


# -- hard ones -----------------------------------------------------------------------------------------------------

HARDNESS = np.array([0.0, 0.01, 5.0, 0.3, 0.0, 1.0, 0.02, 0.5, 0.1, 0.0, 2.0])


def hard(size=4, share=0.6, hardness=HARDNESS):
    batches = HardBatches(len(hardness), size, share=share)
    batches.weigh(tf.constant(hardness))
    return batches


def test_hard_rows_depend_on_seed_step_and_hardness():
    later = rows(hard(), 1, 8)
    np.testing.assert_array_equal(rows(hard(), 1, 8), later)
    for batches, seed, step in ((hard(), 2, 8), (hard(), 1, 9), (hard(hardness=HARDNESS[::-1]), 1, 8)):
        assert not np.array_equal(rows(batches, seed, step), later)


def test_each_place_draws_from_a_part_of_its_own():
    batches = HardBatches(8, 4)  # no look yet: all are as likely
    found = np.stack([rows(batches, 0, step) for step in range(60)])
    for place, column in enumerate(found.T):
        assert set(column) == {2 * place, 2 * place + 1}


def test_probability_and_weight_of_a_row():
    batches, N = hard(), len(HARDNESS)
    weights = batches.weights(tf.range(N)).numpy()
    for row in range(N):
        p = 0.4 / N + 0.6 * HARDNESS[row] / sum(HARDNESS)
        np.testing.assert_allclose(batches.probability[row], p, rtol=1e-12)
        np.testing.assert_allclose(weights[row], 1 / (N * p), rtol=1e-12)
    np.testing.assert_allclose(np.sum(batches.probability), 1, rtol=1e-12)
    np.testing.assert_allclose(weights.max(), 1 / 0.4, rtol=1e-12)  # of a row that pulls at nothing


@pytest.mark.parametrize("hardness", [np.zeros(11), np.full(11, 1e-300), np.ones(11)])
def test_rows_that_are_equally_hard_are_as_likely(hardness):
    np.testing.assert_allclose(hard(hardness=hardness).probability, np.full(11, 1 / 11), rtol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.6, 0.99])
def test_rows_come_as_often_as_their_probability_says(share):
    """Of 1,000 batches; at most four standard deviations of a binomial variable, which drawing in parts narrows."""
    batches, times = hard(share=share), 1000
    found = np.stack([rows(batches, 7, step) for step in range(times)])
    assert found.shape == (times, 4) and np.all(np.diff(found, axis=1) >= 0)
    p = batches.probability.numpy()
    counts = np.bincount(found.ravel(), minlength=len(p))
    assert np.all(np.abs(counts - 4 * times * p) < 4 * np.sqrt(4 * times * p * (1 - p)) + 1e-9)


def test_sums_of_batches_are_unbiased_and_less_noisy_where_the_hard_rows_have_the_sum():
    values, N, times = HARDNESS * np.array([1, -1] * 5 + [1]) + 0.05, len(HARDNESS), 1000
    noise = {}
    for share in (0.0, 0.6):
        batches = hard(share=share)
        sums = []
        for step in range(times):
            taken = rows(batches, 3, step)
            sums.append(N / 4 * np.sum(batches.weights(taken).numpy() * values[taken]))
        noise[share] = np.std(sums, ddof=1)
        assert abs(np.mean(sums) - values.sum()) < 4 * noise[share] / np.sqrt(times)
    assert noise[0.6] < 0.5 * noise[0.0]


def test_a_probability_that_is_not_a_number_gives_rows_that_are_there():
    """A training that is not finite goes back; until then, it must not end."""
    batches = hard(hardness=np.full(11, np.nan))
    assert set(rows(batches, 0, 0)) <= set(range(11))


@pytest.mark.parametrize("share", [1.0, -0.1, np.nan])
def test_a_bad_share_is_named(share):
    with pytest.raises(ValueError, match=r"share must be a finite number in \[0, 0.99\]"):
        HardBatches(5, 2, share=share)
