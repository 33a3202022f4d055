import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from orbitgp.orbits.sampling import SAMPLERS, sobol_integers, split, uniforms

SEED = [11, 13]
every_sampler = pytest.mark.parametrize("sampler", SAMPLERS)


@every_sampler
def test_every_single_draw_is_uniform_over_images_and_over_seeds(sampler):
    U = uniforms(3000, 2, 5, 3, SEED, sampler).numpy()
    assert U.shape == (3000, 2, 5, 3)
    for column in U.reshape(3000, -1).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    seeds = tf.stack([tf.range(400, dtype=tf.int64), tf.zeros(400, tf.int64)], axis=1)
    one = tf.function(lambda seed: uniforms(1, 1, 3, 1, seed, sampler)[0, 0, 2, 0], autograph=False)
    drawn = np.array([one(seed) for seed in seeds])
    assert stats.kstest(drawn, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 4 / np.sqrt(400)


def test_sobol_sets_fill_every_bin_and_every_box_of_two_coordinates():
    for size in (1, 2, 8, 32):
        U = uniforms(7, 3, size, 6, SEED).numpy()
        assert np.array_equal(np.sort(np.floor(U * size), axis=2), np.broadcast_to(np.arange(size)[:, None], U.shape))
    U = uniforms(5, 2, 16, 2, SEED).numpy()
    for rows, columns in ((2, 8), (4, 4), (8, 2)):
        boxes = np.floor(U[..., 0] * rows) * columns + np.floor(U[..., 1] * columns)
        assert np.array_equal(np.sort(boxes, axis=2), np.broadcast_to(np.arange(16), boxes.shape))
    # a part of a set is its beginning
    assert np.array_equal(uniforms(3, 2, 5, 4, SEED), uniforms(3, 2, 8, 4, SEED)[:, :, :5])


@every_sampler
@pytest.mark.parametrize("function", [np.asarray, lambda u: np.cos(2 * np.pi * u)], ids=["linear", "periodic"])
def test_groups_images_and_coordinates_are_independent(sampler, function):
    images, groups, size, num_uniforms = 4000, 2, 4, 3
    U = uniforms(images, groups, size, num_uniforms, SEED, sampler).numpy()
    chance = 4.5 / np.sqrt(images)  # standard errors; some 300 correlations are looked at
    between = np.corrcoef(function(U.reshape(images, -1)), rowvar=False)
    group, draw, coordinate = np.indices((groups, size, num_uniforms)).reshape(3, -1)
    other_group = group[:, None] != group[None, :]
    other_coordinate = coordinate[:, None] != coordinate[None, :]
    same_place = ~other_group & ~other_coordinate & (draw[:, None] != draw[None, :])
    assert np.all(np.abs(between[other_group | other_coordinate]) < chance)
    if sampler == "iid":
        assert np.all(np.abs(between[same_place]) < chance)
    else:  # products are biased inside a group
        assert np.abs(between[same_place]).max() > 0.4
    neighbours = np.concatenate([U[:-1:2], U[1::2]], axis=1).reshape(images // 2, -1)
    half = groups * size * num_uniforms
    between = np.corrcoef(function(neighbours), rowvar=False)[:half, half:]
    assert np.all(np.abs(between) < 4.5 / np.sqrt(images / 2))


def test_means_of_sobol_groups_vary_much_less_and_are_unbiased():
    weights = np.array([1.0, -0.5, 0.3])
    exact = np.prod((np.exp(weights) - 1) / weights)
    variance = {}
    for sampler in SAMPLERS:
        means = np.exp(uniforms(800, 1, 16, 3, SEED, sampler).numpy() @ weights).mean(axis=(1, 2))
        variance[sampler] = means.var()
        assert abs(means.mean() - exact) < 4 * means.std() / np.sqrt(800)
    assert variance["iid"] > 10 * variance["sobol"]  # 100 or so


@every_sampler
def test_single_precision_sees_the_same_numbers_inside_the_open_interval(sampler):
    single = uniforms(2000, 2, 16, 3, SEED, sampler, tf.float32).numpy()
    double = uniforms(2000, 2, 16, 3, SEED, sampler, tf.float64).numpy()
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    assert np.array_equal(single.astype(np.float64), double)
    # odd multiples of 2⁻²⁴: 0, ½ and 1 are not among them
    scaled = double * 2**24
    assert np.all(scaled % 2 == 1) and scaled.min() > 0 and scaled.max() < 2**24


@every_sampler
def test_the_seed_decides_every_draw(sampler):
    first = uniforms(3, 2, 4, 2, SEED, sampler)
    for same in (tuple(SEED), np.array(SEED), tf.constant(SEED, tf.int32), tf.constant(SEED, tf.int64)):
        assert np.array_equal(first, uniforms(3, 2, 4, 2, same, sampler))
    for other in ([12, 13], [11, 14], [13, 11]):
        assert not np.any(first == uniforms(3, 2, 4, 2, other, sampler))


@pytest.mark.parametrize("jit", [True, False], ids=["xla", "graph"])
def test_compiled_draws_are_the_eager_ones_from_any_seed(jit):
    def draw(seed):
        return uniforms(3, 2, 5, 3, seed, "sobol"), uniforms(3, 2, 5, 3, split(split(seed, 0), 7), "iid")

    compiled = tf.function(draw, jit_compile=jit, autograph=False)
    for seed in ([3, 5], [0, -1], [2**31 + 5, 1], [-(2**50), 2**40 + 3]):
        seed = tf.constant(seed, tf.int64)
        for found, expected in zip(compiled(seed), draw(seed), strict=True):
            assert np.array_equal(found, expected)


def test_split_gives_independent_streams_that_the_seed_decides():
    seeds = [split(SEED, stream).numpy() for stream in range(30)]
    assert len({tuple(seed) for seed in [*seeds, np.array(SEED)]}) == 31
    assert np.array_equal(split(tf.constant(SEED, tf.int32), 3), seeds[3])
    assert not np.array_equal(split([11, 14], 3), seeds[3])
    drawn = np.stack([uniforms(2000, 1, 1, 1, seed).numpy().ravel() for seed in [SEED, *seeds]])
    between = np.corrcoef(drawn)[np.triu_indices(31, 1)]
    assert np.all(np.abs(between) < 4.5 / np.sqrt(2000))
    assert stats.kstest(drawn[1:, 0], "uniform").pvalue > 1e-3


def test_sobol_integers_are_the_leading_bits_of_the_sequence():
    integers = sobol_integers(61, 5)
    assert integers.shape == (61, 5) and integers.dtype == np.int32 and not np.any(integers[0])
    # by its recursion: in Gray-code order, point n is point n − 1 with one direction number flipped, and all the
    # direction numbers of the first coordinate are 2^(bits − k)
    expected = [0]
    for n in range(1, 61):
        expected.append(expected[-1] ^ 2 ** (23 - (n & -n).bit_length()))
    assert integers[:, 0].tolist() == expected
