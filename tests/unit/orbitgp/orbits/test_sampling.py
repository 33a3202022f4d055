import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from orbitgp.orbits.sampling import SAMPLERS, sobol_integers, split, uniforms

SEED = [11, 13]
every_sampler = pytest.mark.parametrize("sampler", SAMPLERS)


def correlations(U, function):
    """The correlation over images between function(u) of every two numbers of one image's draws."""
    columns = function(U.reshape(len(U), -1))
    return np.corrcoef(columns, rowvar=False)


@every_sampler
def test_every_single_draw_is_uniform(sampler):
    U = uniforms(3000, 2, 5, 3, SEED, sampler).numpy()
    assert U.shape == (3000, 2, 5, 3)
    for column in U.reshape(3000, -1).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


@every_sampler
def test_draws_are_uniform_over_seeds(sampler):
    drawn = np.array([uniforms(1, 1, 3, 1, [seed, 0], sampler).numpy()[0, 0, 2, 0] for seed in range(400)])
    assert stats.kstest(drawn, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 4 / np.sqrt(400)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 32])
def test_sobol_puts_one_draw_of_a_group_in_every_bin(size):
    U = uniforms(7, 3, size, 6, SEED).numpy()
    assert np.array_equal(np.sort(np.floor(U * size), axis=2), np.broadcast_to(np.arange(size)[:, None], U.shape))


@pytest.mark.parametrize(("rows", "columns"), [(2, 8), (4, 4), (8, 2)])
def test_sobol_puts_one_of_sixteen_draws_in_every_box_of_two_coordinates(rows, columns):
    U = uniforms(5, 2, 16, 2, SEED).numpy()
    boxes = np.floor(U[..., 0] * rows) * columns + np.floor(U[..., 1] * columns)
    assert np.array_equal(np.sort(boxes, axis=2), np.broadcast_to(np.arange(16), boxes.shape))


def test_a_part_of_a_sobol_set_is_its_beginning():
    assert np.array_equal(uniforms(3, 2, 5, 4, SEED), uniforms(3, 2, 8, 4, SEED)[:, :, :5])


@every_sampler
@pytest.mark.parametrize("function", [np.asarray, lambda u: np.cos(2 * np.pi * u)], ids=["linear", "periodic"])
def test_groups_images_and_coordinates_are_independent(sampler, function):
    images, groups, size, num_uniforms = 4000, 2, 4, 3
    U = uniforms(images, groups, size, num_uniforms, SEED, sampler).numpy()
    chance = 4.5 / np.sqrt(images)  # standard errors; some 300 correlations are looked at
    between = correlations(U, function)
    group, draw, coordinate = np.indices((groups, size, num_uniforms)).reshape(3, -1)
    other_group = group[:, None] != group[None, :]
    other_coordinate = coordinate[:, None] != coordinate[None, :]
    same_place = ~other_group & ~other_coordinate & (draw[:, None] != draw[None, :])
    assert np.all(np.abs(between[other_group]) < chance)
    assert np.all(np.abs(between[other_coordinate]) < chance)
    if sampler == "iid":
        assert np.all(np.abs(between[same_place]) < chance)
    else:
        assert np.abs(between[same_place]).max() > 0.4
    neighbours = np.concatenate([U[:-1:2], U[1::2]], axis=1)
    between = correlations(neighbours, function)
    half = groups * size * num_uniforms
    assert np.all(np.abs(between[:half, half:]) < 4.5 / np.sqrt(images / 2))


def test_means_of_sobol_groups_vary_much_less_and_are_unbiased():
    weights, exact = np.array([1.0, -0.5, 0.3]), None
    exact = np.prod((np.exp(weights) - 1) / weights)
    variance = {}
    for sampler in SAMPLERS:
        means = np.exp(uniforms(800, 1, 16, 3, SEED, sampler).numpy() @ weights).mean(axis=(1, 2))
        variance[sampler] = means.var()
        assert abs(means.mean() - exact) < 4 * means.std() / np.sqrt(800)
    assert variance["iid"] > 10 * variance["sobol"]  # 100 or so


def test_products_are_unbiased_between_sobol_groups_and_biased_inside_one():
    values = uniforms(4000, 2, 2, 1, SEED).numpy()[..., 0] - 0.5

    def z_score(product):
        return product.mean() / (product.std() / np.sqrt(len(product)))

    for first in range(2):
        for second in range(2):
            assert abs(z_score(values[:, 0, first] * values[:, 1, second])) < 4
    assert z_score(values[:, 0, 0] * values[:, 0, 1]) < -20


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


@every_sampler
def test_compiled_draws_are_the_eager_ones(sampler):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([2], tf.int64)])
    def compiled(images, seed):
        return uniforms(images, 2, 5, 3, seed, sampler, tf.float32)

    for images in (1, 6):
        assert np.array_equal(compiled(images, SEED), uniforms(images, 2, 5, 3, SEED, sampler, tf.float32))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_xla_makes_the_same_draws_from_any_seed(sampler):
    @tf.function(jit_compile=True)
    def compiled(seed):
        return uniforms(3, 2, 5, 3, seed, sampler), uniforms(3, 2, 5, 3, split(split(seed, 0), 7), sampler)

    for seed in ([3, 5], [0, -1], [-7, 2], [2**31 + 5, 1], [4, 2**40 + 3], [-(2**50), -2]):
        seed = tf.constant(seed, tf.int64)
        direct, of_stream = compiled(seed)
        assert np.array_equal(direct, uniforms(3, 2, 5, 3, seed, sampler))
        assert np.array_equal(of_stream, uniforms(3, 2, 5, 3, split(split(seed, 0), 7), sampler))


def test_split_gives_independent_streams_that_the_seed_decides():
    seeds = [split(SEED, stream).numpy() for stream in range(50)]
    assert all(seed.shape == (2,) for seed in seeds)
    assert len({tuple(seed) for seed in [*seeds, np.array(SEED)]}) == 51
    assert np.array_equal(split(tf.constant(SEED, tf.int32), 3), seeds[3])
    assert not np.array_equal(split([11, 14], 3), seeds[3])
    drawn = np.stack([uniforms(2000, 1, 1, 1, seed).numpy().ravel() for seed in [SEED, *seeds[:8]]])
    between = np.corrcoef(drawn)[np.triu_indices(9, 1)]
    assert np.all(np.abs(between) < 4 / np.sqrt(2000))
    streams = np.array([uniforms(1, 1, 1, 1, seed).numpy().item() for seed in seeds])
    assert stats.kstest(streams, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("size", [1, 3, 64])
def test_sobol_integers_are_the_leading_bits_of_the_sequence(size):
    integers = sobol_integers(size, 5)
    assert integers.shape == (size, 5) and integers.dtype == np.int32
    assert np.array_equal(integers[0], np.zeros(5))
    # by its recursion: in Gray-code order, point n is point n − 1 with one direction number flipped, and all the
    # direction numbers of the first coordinate are 2^(bits − k)
    expected = [0]
    for n in range(1, size):
        trailing = (n & -n).bit_length()
        expected.append(expected[-1] ^ 2 ** (23 - trailing))
    assert integers[:, 0].tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": 0}, "groups must be an integer of at least 1, got 0"),
        ({"size": 0}, "size must be an integer of at least 1, got 0"),
        ({"size": 2.0}, "size must be an integer of at least 1, got 2.0"),
        ({"num_uniforms": -1}, "num_uniforms must be an integer of at least 1, got -1"),
        ({"sampler": "latin"}, "sampler must be one of 'sobol', 'iid', got 'latin'"),
        ({"seed": [1, 2, 3]}, r"seed must have shape \[2\], not \[3\]"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises((ValueError, TypeError, tf.errors.InvalidArgumentError), match=message):
        uniforms(**{"images": 2, "groups": 2, "size": 2, "num_uniforms": 2, "seed": SEED, **arguments})


def test_split_refuses_a_seed_of_another_length():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"seed must have shape \[2\], not \[3\]"):
        split([1, 2, 3], 0)
