"""What every orbit promises, and what every finite orbit adds to it."""

import math
from itertools import permutations

import numpy as np
import pytest
import tensorflow as tf
from check_shapes.exceptions import ShapeMismatchError
from scipy import stats

from orbitgp import orbits
from orbitgp.orbits.sampling import uniforms

SEED = [3, 5]
AMPLITUDES = 0.2, [0.1, 0.15, 0.2, 0.25, 0.3, 0.35], 0.1
STILL_AMPLITUDES = 0.0, np.zeros(6), 0.0


def rolls(count):
    """All cyclic permutations of ``count`` coordinates."""
    return orbits.Permutation([np.roll(np.arange(count), shift) for shift in range(count)])


# the orbits, and with the parameters that leave an image alone
ORBITS = {
    "identity": lambda shape: orbits.Identity(),
    "permutation": lambda shape: orbits.Permutation(
        [np.random.default_rng(p).permutation(math.prod(shape)) for p in range(3)]
    ),
    "right angles": orbits.RightAngles,
    "quantised rotation": lambda shape: orbits.QuantisedRotation(shape, 7),
    "rotation": lambda shape: orbits.Rotation(shape, alpha=50.0),
    "affine": lambda shape: orbits.Affine(shape, spread=0.3),
    "interpretable affine": lambda shape: orbits.InterpretableAffine(shape, spread=0.3),
    "translation": lambda shape: orbits.Translation(shape, spread=0.3),
    "scaling": lambda shape: orbits.Scaling(shape, spread=0.3),
    "warped deformation": lambda shape: orbits.LocalDeformation(shape, *AMPLITUDES),
    "tangent deformation": lambda shape: orbits.LocalDeformation(shape, *AMPLITUDES, mode="tangent"),
    "noise": lambda shape: orbits.GaussianNoise(math.prod(shape), scale=0.2),
    "composed": lambda shape: orbits.Composed(
        [orbits.Rotation(shape, 50.0), orbits.GaussianNoise(math.prod(shape)), orbits.Affine(shape)]
    ),
}
STILL = {
    **ORBITS,
    "permutation": lambda shape: orbits.Permutation([np.arange(math.prod(shape))]),
    "rotation": lambda shape: orbits.Rotation(shape, alpha=0.0),
    "affine": lambda shape: orbits.Affine(shape, spread=0.0),
    "interpretable affine": lambda shape: orbits.InterpretableAffine(shape, spread=0.0),
    "translation": lambda shape: orbits.Translation(shape, spread=0.0),
    "scaling": lambda shape: orbits.Scaling(shape, spread=0.0),
    "warped deformation": lambda shape: orbits.LocalDeformation(shape, *STILL_AMPLITUDES),
    "tangent deformation": lambda shape: orbits.LocalDeformation(shape, *STILL_AMPLITUDES, mode="tangent"),
    "noise": lambda shape: orbits.GaussianNoise(math.prod(shape), scale=1e-30),
    "composed": lambda shape: orbits.Composed(
        [orbits.Rotation(shape, 0.0), orbits.LocalDeformation(shape, *STILL_AMPLITUDES)]
    ),
}
every_orbit = pytest.mark.parametrize("kind", ORBITS)


@every_orbit
def test_identity_parameters_return_the_image_bit_by_bit(kind, noise_images):
    for shape, dtype in (((5, 5, 3), np.float32), ((5, 5, 3) if kind == "right angles" else (6, 5), np.float64)):
        orbit, X = STILL[kind](shape), noise_images(3, shape, dtype)
        # below one over the order of every finite orbit here, so that they take their first point
        U = np.random.default_rng(1).uniform(0.01, 0.14, (3, 4, orbit.num_uniforms)).astype(dtype)
        drawn = orbit.transform(X, U).numpy()
        assert drawn.dtype == dtype
        assert drawn.tobytes() == np.repeat(X[:, None], 4, axis=1).tobytes()


@every_orbit
def test_samples_are_transforms_of_the_uniforms_in_their_order(kind, noise_images):
    shape = (5, 5, 3) if kind == "right angles" else (5, 6, 3)
    orbit, X = ORBITS[kind](shape), np.repeat(noise_images(1, shape), 8, axis=0)
    for sampler in ("sobol", "iid"):
        drawn = orbit.sample(X, 2, 3, SEED, sampler).numpy()
        U = uniforms(8, 2, 3, orbit.num_uniforms, SEED, sampler).numpy()
        each_alone = orbit.transform(np.repeat(X, 6, axis=0), U.reshape(48, 1, -1))  # as 48 images, with one draw each
        np.testing.assert_allclose(drawn, tf.reshape(each_alone, drawn.shape), atol=1e-14)
    assert np.all(np.isfinite(drawn))
    if kind != "identity":  # the same image: draws of its own each time, and for each seed
        assert len(np.unique(drawn.reshape(8, -1), axis=0)) > 3
        assert not np.array_equal(drawn, orbit.sample(X, 2, 3, [4, 5], "iid"))


@every_orbit
def test_single_precision_and_graphs_of_unknown_size_see_the_same_draws(kind, noise_images):
    shape = (5, 5)
    orbit, X = ORBITS[kind](shape), noise_images(4, shape, np.float32)
    double = orbit.sample(X.astype(np.float64), 2, 3, SEED)
    compiled = tf.function(
        lambda X: orbit.sample(X, 2, 3, SEED), [tf.TensorSpec([None, None], tf.float32)], autograph=False
    )
    for found in (orbit.sample(X, 2, 3, SEED), compiled(X)):
        assert found.dtype == tf.float32
        np.testing.assert_allclose(found, double, atol=1e-5)


@pytest.mark.parametrize(
    "kind", ["rotation", "affine", "interpretable affine", "warped deformation", "tangent deformation", "noise"]
)
def test_gradients_reach_every_parameter_and_the_images(kind, smooth_images, smooth_loss, assert_gradients_match):
    shape = (3, 4, 2)
    orbit, X, along = ORBITS[kind](shape), smooth_images(1, shape), tf.Variable(0.01, dtype=tf.float64)
    U, direction = uniforms(1, 1, 4, orbit.num_uniforms, SEED)[:, 0], smooth_images(1, shape, seed=1)
    loss = tf.function(lambda: smooth_loss(orbit.transform(X + along * direction, U)), autograph=False)
    assert_gradients_match(loss, [*orbit.trainable_variables, along])


def test_parameters_can_be_held_fixed():
    images = ("Rotation", "Affine", "InterpretableAffine", "Translation", "Scaling", "LocalDeformation")
    for name, of in (*((name, (6, 5)) for name in images), ("GaussianNoise", 30)):
        make = getattr(orbits, name)
        assert make(of).trainable_variables and not make(of, trainable=False).trainable_variables


# -- finite orbits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["sobol", "iid"])
@pytest.mark.parametrize(
    ("orbit", "D"), [(rolls(3), 3), (orbits.QuantisedRotation((4, 4), 5), 16)], ids=["3", "5 angles"]
)
def test_every_point_of_a_finite_orbit_is_equally_likely(orbit, D, sampler, noise_images):
    X = np.repeat(noise_images(1, (D,)), 2000, axis=0)
    points = orbit.full(X[:1])[0].numpy()
    drawn = orbit.sample(X, 1, 2, SEED, sampler).numpy()
    for draw in range(2):
        distance = np.abs(drawn[:, 0, draw, None] - points).max(axis=-1)
        assert np.all(distance.min(axis=1) < 1e-14)
        assert stats.chisquare(np.bincount(distance.argmin(axis=1), minlength=orbit.order)).pvalue > 1e-3


def test_single_precision_takes_the_same_point_also_next_to_where_one_begins():
    for order in (1, 2, 3, 33, 100):
        begins = np.floor(np.arange(order + 1) / order * 2**23)
        scaled = np.unique(np.clip(np.append(2 * begins - 1, 2 * begins + 1), 1, 2**24 - 1))  # odd, as all draws are
        U, X = (scaled / 2**24).reshape(1, -1, 1), np.arange(order, dtype=np.float32)[None]
        points = [int(n) * order // 2**24 for n in scaled]
        assert (points[0], points[-1]) == (0, order - 1)
        expected = [np.roll(X[0], point) for point in points]
        assert np.array_equal(rolls(order).transform(X, U.astype(np.float32))[0], expected)


def test_without_replacement_every_choice_is_equally_likely():
    X, orbit = np.tile(np.arange(4.0), (6000, 1)), rolls(4)
    drawn = orbit.sample_without_replacement(X, 2, SEED).numpy()
    assert drawn.shape == (6000, 2, 4)
    points = (-drawn[:, :, 0].astype(int)) % 4  # a roll is known by its first coordinate
    assert np.array_equal(drawn[:50], orbit.full(X[:1]).numpy()[0][points[:50]])
    found = [tuple(pair) for pair in points.tolist()]
    assert set(found) == set(permutations(range(4), 2))
    assert stats.chisquare([found.count(pair) for pair in permutations(range(4), 2)]).pvalue > 1e-3
    table = np.zeros((4, 4))  # the same point for neighbours in the batch
    np.add.at(table, (points[:-1:2, 0], points[1::2, 0]), 1)
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_without_replacement_the_seed_decides_on_every_device():
    X = np.tile(np.arange(5.0), (20, 1))
    compiled = tf.function(
        lambda seed: rolls(5).sample_without_replacement(X, 3, seed), jit_compile=True, autograph=False
    )
    found = [rolls(5).sample_without_replacement(X, 3, seed).numpy() for seed in ([3, 5], [-3, 2**35])]
    assert not np.array_equal(*found)
    for seed, drawn in zip(([3, 5], [-3, 2**35]), found, strict=True):
        assert np.array_equal(compiled(tf.constant(seed, tf.int64)), drawn)


# -- bad input -----------------------------------------------------------------------------------------------------


def test_inputs_that_do_not_fit_are_named():
    with pytest.raises(ShapeMismatchError, match=r"Argument: X\s+Expected: .*\s+Actual: +\[30\]"):
        orbits.Rotation((6, 5)).sample(np.zeros(30), 2, 2, SEED)
    for kind in ORBITS.keys() - {"identity"}:
        with pytest.raises((ValueError, ShapeMismatchError), match=r"X has 24 columns.* 25\b"):
            ORBITS[kind]((5, 5)).sample(np.zeros((2, 24)), 1, 1, SEED)


@every_orbit
def test_a_wrong_number_of_uniforms_is_refused(kind):
    orbit = ORBITS[kind]((5, 5))
    # one uniform for all six of an affine map would be broadcast, and uniforms to spare would be left unused
    for count in (1 if "affine" in kind else orbit.num_uniforms - 1, orbit.num_uniforms + 1):
        with pytest.raises((ValueError, IndexError, ShapeMismatchError, tf.errors.InvalidArgumentError)):
            orbit.transform(np.zeros((2, 25)), np.full((2, 3, count), 0.3))
