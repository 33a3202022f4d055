"""What every orbit promises, and what every finite orbit adds to it."""

import math
from itertools import combinations

import numpy as np
import pytest
import tensorflow as tf
from check_shapes.exceptions import ShapeMismatchError
from scipy import stats

from orbitgp.orbits import (
    Affine,
    Composed,
    GaussianNoise,
    Identity,
    InterpretableAffine,
    LocalDeformation,
    Permutation,
    QuantisedRotation,
    RightAngles,
    Rotation,
)
from orbitgp.orbits.sampling import uniforms

SEED = [3, 5]


def rolls(count):
    """All cyclic permutations of ``count`` coordinates."""
    return Permutation([np.roll(np.arange(count), shift) for shift in range(count)])


ORBITS = {
    "identity": lambda shape: Identity(),
    "permutation": lambda shape: Permutation(
        [np.random.default_rng(p).permutation(math.prod(shape)) for p in range(3)]
    ),
    "right angles": RightAngles,
    "quantised rotation": lambda shape: QuantisedRotation(shape, 7),
    "rotation": lambda shape: Rotation(shape, alpha=50.0),
    "affine": lambda shape: Affine(shape, spread=0.3),
    "interpretable affine": lambda shape: InterpretableAffine(shape, spread=0.3),
    "warped deformation": lambda shape: LocalDeformation(shape, 0.2, [0.1, 0.15, 0.2, 0.25, 0.3, 0.35], 0.1),
    "tangent deformation": lambda shape: LocalDeformation(
        shape, 0.2, [0.1, 0.15, 0.2, 0.25, 0.3, 0.35], 0.1, mode="tangent"
    ),
    "noise": lambda shape: GaussianNoise(math.prod(shape), scale=0.2),
    "composed": lambda shape: Composed([Rotation(shape, 50.0), GaussianNoise(math.prod(shape)), Affine(shape)]),
}

# the parameters with which an orbit leaves an image alone
STILL = {
    **ORBITS,
    "permutation": lambda shape: Permutation([np.arange(math.prod(shape))]),
    "rotation": lambda shape: Rotation(shape, alpha=0.0),
    "affine": lambda shape: Affine(shape, spread=0.0),
    "interpretable affine": lambda shape: InterpretableAffine(shape, spread=0.0),
    "warped deformation": lambda shape: LocalDeformation(shape, 0.0, np.zeros(6), 0.0),
    "tangent deformation": lambda shape: LocalDeformation(shape, 0.0, np.zeros(6), 0.0, mode="tangent"),
    "noise": lambda shape: GaussianNoise(math.prod(shape), scale=1e-30),
    "composed": lambda shape: Composed(
        [
            RightAngles(shape) if shape[0] == shape[1] else Identity(),
            Rotation(shape, 0.0),
            LocalDeformation(shape, 0.0, np.zeros(6), 0.0),
            InterpretableAffine(shape, spread=0.0),
        ]
    ),
}


def on_shapes(*shapes):
    """Every orbit on every shape that it can have."""
    return pytest.mark.parametrize(
        ("kind", "shape"),
        [(kind, shape) for kind in ORBITS for shape in shapes if kind != "right angles" or shape[0] == shape[1]],
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@on_shapes((6, 5), (5, 6, 3), (5, 5, 3))
def test_identity_parameters_return_the_image_bit_by_bit(kind, shape, dtype, noise_images):
    orbit, X = STILL[kind](shape), noise_images(3, shape, dtype)
    # below one over the order of every finite orbit here, so that they take their first point
    U = np.random.default_rng(1).uniform(0.01, 0.14, (3, 4, orbit.num_uniforms)).astype(dtype)
    drawn = orbit.transform(X, U).numpy()
    assert drawn.dtype == dtype
    assert drawn.tobytes() == np.repeat(X[:, None], 4, axis=1).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@on_shapes((6, 5), (5, 6, 3), (5, 5, 3))
def test_draws_have_the_documented_shape_and_the_precision_of_the_images(kind, shape, dtype, noise_images):
    drawn = ORBITS[kind](shape).sample(noise_images(3, shape, dtype), 2, 4, SEED)
    assert drawn.shape == (3, 2, 4, math.prod(shape))
    assert drawn.dtype == dtype
    assert np.all(np.isfinite(drawn))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@on_shapes((5, 5, 3))
def test_compiled_for_any_batch_gives_the_same_numbers(kind, shape, dtype, noise_images):
    orbit = ORBITS[kind](shape)

    @tf.function(input_signature=[tf.TensorSpec([None, math.prod(shape)], dtype)])
    def compiled(X):
        return orbit.sample(X, 2, 3, SEED)

    for count in (1, 4):
        X = noise_images(count, shape, dtype)
        # compiled sums may be in another order
        np.testing.assert_allclose(compiled(X), orbit.sample(X, 2, 3, SEED), atol=20 * np.finfo(dtype).eps, rtol=0)
    assert compiled.experimental_get_tracing_count() == 1


def test_compiled_without_any_known_size_gives_the_same_numbers(noise_images):
    shape, X = (6, 5), noise_images(2, (6, 5))
    orbit = ORBITS["composed"](shape)
    compiled = tf.function(
        lambda X: orbit.sample(X, 2, 3, SEED), input_signature=[tf.TensorSpec([None, None], X.dtype)]
    )
    np.testing.assert_allclose(compiled(X), orbit.sample(X, 2, 3, SEED), atol=1e-14)


@on_shapes((5, 5))
def test_both_precisions_see_the_same_draws(kind, shape, noise_images):
    orbit, X = ORBITS[kind](shape), noise_images(3, shape, np.float32)
    single, double = orbit.sample(X, 2, 3, SEED), orbit.sample(X.astype(np.float64), 2, 3, SEED)
    np.testing.assert_allclose(single, double, atol=1e-5)


@pytest.mark.parametrize("sampler", ["sobol", "iid"])
@on_shapes((5, 5))
def test_samples_are_transforms_of_the_uniforms_in_their_order(kind, shape, sampler, noise_images):
    orbit, X = ORBITS[kind](shape), noise_images(2, shape)
    drawn = orbit.sample(X, 2, 3, SEED, sampler).numpy()
    U = uniforms(2, 2, 3, orbit.num_uniforms, SEED, sampler)
    for n in range(2):
        for group in range(2):
            for draw in range(3):
                single = orbit.transform(X[n : n + 1], U[n : n + 1, group, draw : draw + 1])
                np.testing.assert_allclose(drawn[n, group, draw], single[0, 0], atol=1e-14)


@pytest.mark.parametrize("kind", [kind for kind in ORBITS if kind != "identity"])
def test_each_image_has_draws_of_its_own_and_each_seed_too(kind, noise_images):
    orbit, X = ORBITS[kind]((5, 5)), np.repeat(noise_images(1, (5, 5)), 8, axis=0)
    drawn = orbit.sample(X, 1, 2, SEED).numpy()
    assert not np.array_equal(drawn[0], drawn[1]) or not np.array_equal(drawn[1], drawn[2])
    assert np.array_equal(drawn, orbit.sample(X, 1, 2, SEED))
    assert not np.array_equal(drawn, orbit.sample(X, 1, 2, [4, 5]))


@pytest.mark.parametrize(
    "kind", ["rotation", "affine", "interpretable affine", "warped deformation", "tangent deformation", "noise"]
)
@pytest.mark.parametrize("shape", [(6, 5), (5, 6, 2)])
def test_gradients_reach_every_parameter(kind, shape, smooth_images, smooth_loss, assert_gradients_match):
    orbit, X = ORBITS[kind](shape), smooth_images(2, shape)
    U = uniforms(2, 2, 1, orbit.num_uniforms, SEED)[:, :, 0]
    assert_gradients_match(lambda: smooth_loss(orbit.transform(X, U)), orbit.trainable_variables)


@pytest.mark.parametrize("kind", ["rotation", "affine", "interpretable affine", "warped deformation", "noise"])
def test_parameters_can_be_held_fixed(kind):
    shape = (6, 5)
    fixed = {
        "rotation": Rotation(shape, trainable=False),
        "affine": Affine(shape, trainable=False),
        "interpretable affine": InterpretableAffine(shape, trainable=False),
        "warped deformation": LocalDeformation(shape, trainable=False),
        "noise": GaussianNoise(30, trainable=False),
    }
    assert fixed[kind].trainable_variables == ()
    assert ORBITS[kind](shape).trainable_variables != ()


@pytest.mark.parametrize("sampler", ["sobol", "iid"])
@pytest.mark.parametrize("orbit", [rolls(3), rolls(4), QuantisedRotation((4, 4), 5)], ids=["3", "4", "5 angles"])
def test_every_point_of_a_finite_orbit_is_equally_likely(orbit, sampler, noise_images):
    D = 16 if isinstance(orbit, QuantisedRotation) else orbit.order
    X = np.repeat(noise_images(1, (D,)), 2000, axis=0)
    points = orbit.full(X[:1])[0].numpy()
    drawn = orbit.sample(X, 1, 2, SEED, sampler).numpy()
    for draw in range(2):
        distance = np.abs(drawn[:, 0, draw, None] - points).max(axis=-1)
        assert np.all(distance.min(axis=1) < 1e-14)
        assert stats.chisquare(np.bincount(distance.argmin(axis=1), minlength=orbit.order)).pvalue > 1e-3


@pytest.mark.parametrize("order", [1, 2, 3, 5, 7, 8, 9, 33, 100])
def test_the_largest_uniform_of_single_precision_takes_the_last_point(order):
    X = np.arange(order, dtype=np.float32)[None]
    for u, point in ((1 - 2.0**-24, order - 1), (2.0**-24, 0)):
        drawn = rolls(order).transform(X, np.full((1, 1, 1), u, np.float32))
        assert np.array_equal(drawn[0, 0], np.roll(X[0], point))


def test_without_replacement_no_point_comes_twice_and_no_subset_is_favoured():
    X = np.tile([0.0, 1.0, 2.0, 3.0], (3000, 1))
    drawn = rolls(4).sample_without_replacement(X, 2, SEED).numpy()
    assert drawn.shape == (3000, 2, 4)
    points = (-drawn[:, :, 0].astype(int)) % 4  # a roll is known by its first coordinate
    for row, point in zip(drawn[:50, 0], points[:50, 0], strict=True):
        assert np.array_equal(row, np.roll(np.arange(4.0), point))
    assert np.all(points[:, 0] != points[:, 1])
    subsets = [tuple(sorted(pair)) for pair in points.tolist()]
    assert stats.chisquare([subsets.count(pair) for pair in combinations(range(4), 2)]).pvalue > 1e-3
    table = np.zeros((4, 4))  # the same point for neighbours in the batch
    np.add.at(table, (points[:-1:2, 0], points[1::2, 0]), 1)
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_without_replacement_the_seed_decides():
    X = np.tile(np.arange(5.0), (20, 1))
    first, again = (rolls(5).sample_without_replacement(X, 3, SEED).numpy() for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, rolls(5).sample_without_replacement(X, 3, [5, 3]))


def test_without_replacement_xla_draws_the_same_points():
    X = np.tile(np.arange(5.0), (20, 1))
    compiled = tf.function(lambda seed: rolls(5).sample_without_replacement(X, 3, seed), jit_compile=True)
    for seed in ([3, 5], [-3, 2**35]):
        seed = tf.constant(seed, tf.int64)
        assert np.array_equal(compiled(seed), rolls(5).sample_without_replacement(X, 3, seed))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("orbit", [rolls(5), QuantisedRotation((5, 2), 3), Identity()], ids=["5", "3", "1"])
def test_without_replacement_the_whole_orbit_is_the_listing(orbit, dtype, noise_images):
    X = noise_images(6, (10,) if isinstance(orbit, QuantisedRotation) else (5,), dtype)

    @tf.function(input_signature=[tf.TensorSpec([None, X.shape[1]], dtype)])
    def compiled(X):
        return orbit.sample_without_replacement(X, orbit.order, SEED)

    drawn, listed = orbit.sample_without_replacement(X, orbit.order, SEED).numpy(), orbit.full(X).numpy()
    assert drawn.dtype == dtype
    for n in range(6):
        assert np.array_equal(np.unique(drawn[n], axis=0), np.unique(listed[n], axis=0))
    # the same points; a batch of unknown size is warped in a loop, which may round the last bit in another way
    np.testing.assert_allclose(compiled(X), drawn, rtol=0, atol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("count", [0, 6, 2.0, True])
def test_without_replacement_the_count_must_fit_the_orbit(count):
    with pytest.raises(
        (ValueError, TypeError), match=f"count must be an integer of at least 1 and at most 5, got {count}"
    ):
        rolls(5).sample_without_replacement(np.zeros((1, 5)), count, SEED)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": 0}, "groups must be an integer of at least 1, got 0"),
        ({"size": -2}, "size must be an integer of at least 1, got -2"),
        ({"groups": 1.5}, "groups must be an integer of at least 1, got 1.5"),
        ({"sampler": "halton"}, "sampler must be one of 'sobol', 'iid', got 'halton'"),
        ({"X": np.zeros(30)}, r"Argument: X\s+Expected: .*\s+Actual: +\[30\]"),
    ],
)
def test_bad_arguments_of_sample_are_named(arguments, message):
    with pytest.raises((ValueError, TypeError, ShapeMismatchError), match=message):
        Rotation((6, 5)).sample(**{"X": np.zeros((1, 30)), "groups": 2, "size": 2, "seed": SEED, **arguments})


@pytest.mark.parametrize("kind", [kind for kind in ORBITS if kind not in ("identity", "noise")])
def test_images_of_another_size_are_refused(kind):
    with pytest.raises(ValueError, match=r"X has 24 columns.* 25 "):
        ORBITS[kind]((5, 5)).sample(np.zeros((2, 24)), 1, 1, SEED)


@pytest.mark.parametrize("kind", ORBITS)
@pytest.mark.parametrize("extra", [-1, 1])
def test_a_wrong_number_of_uniforms_is_refused(kind, extra):
    orbit = ORBITS[kind]((5, 5))
    # one uniform for all six of an affine map would be broadcast, and uniforms to spare would be left unused
    num_uniforms = 1 if "affine" in kind and extra < 0 else orbit.num_uniforms + extra
    with pytest.raises((ValueError, IndexError, ShapeMismatchError, tf.errors.InvalidArgumentError)):
        orbit.transform(np.zeros((2, 25)), np.full((2, 3, num_uniforms), 0.3))
