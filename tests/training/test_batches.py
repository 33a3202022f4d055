"""Which images a step takes: each as likely, and of an epoch each once."""

import numpy as np
import pytest
import tensorflow as tf

from orbitgp.training.batches import KINDS, Batches

STREAM = 3


def rows(batches, seed, step):
    return batches.rows(tf.constant([seed, step], tf.int64), STREAM).numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_is_as_likely_in_each_place(kind):
    """Of 600 first batches, by seeds; four standard deviations of a binomial variable."""
    count, size, seeds = 10, 3, 600
    batches = Batches(count, size, kind)
    found = np.stack([rows(batches, seed, 0) for seed in range(seeds)])
    assert found.shape == (seeds, size)
    deviation = np.sqrt(seeds / count * (1 - 1 / count))
    for place in found.T:
        assert np.all(np.abs(np.bincount(place, minlength=count) - seeds / count) < 4 * deviation)
    assert len(np.unique(found, axis=0)) > 250


@pytest.mark.parametrize("size", [1, 4, 5, 19])
def test_an_epoch_has_each_row_once_and_leaves_out_what_makes_no_batch(size):
    count = 20
    batches = Batches(count, size, "shuffled")
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
    batches = Batches(20, 5, "drawn")
    assert any(len(set(np.concatenate([rows(batches, 0, 4 * e + i) for i in range(4)]))) < 20 for e in range(5))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [7, 8])
def test_a_batch_as_large_as_the_data_is_the_data(kind, size):
    batches = Batches(7, size, kind)
    assert batches.whole and batches.size == 7
    np.testing.assert_array_equal(rows(batches, 0, 3), np.arange(7))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_depend_on_seed_and_step_and_on_nothing_else(kind):
    first, second = Batches(50, 10, kind), Batches(50, 10, kind)
    later = rows(first, 1, 8)
    np.testing.assert_array_equal(rows(second, 1, 8), later)
    for seed, step in ((2, 8), (1, 9), (1, 13)):
        assert not np.array_equal(rows(second, seed, step), later)


def test_another_kind_is_named():
    with pytest.raises(ValueError, match=r"optimiser.batches must be one of 'drawn', 'shuffled', got 'sorted'"):
        Batches(5, 2, "sorted")
