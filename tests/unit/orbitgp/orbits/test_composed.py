import numpy as np
import pytest
import tensorflow as tf

from orbitgp import orbits
from orbitgp.orbits import Affine, Composed, GaussianNoise, LocalDeformation, Rotation
from orbitgp.orbits.sampling import uniforms

SEED = [8, 4]


def draws(orbit, images, count):
    return uniforms(images, 1, count, orbit.num_uniforms, SEED).numpy()[:, 0]


@pytest.mark.parametrize("shape", [(6, 5), (5, 5, 3)])
def test_steps_follow_each_other_with_uniforms_of_their_own(shape, noise_images):
    steps = [Rotation(shape, 60.0), GaussianNoise(int(np.prod(shape)), 0.1), Affine(shape, spread=0.2)]
    orbit, X = Composed(steps), noise_images(2, shape)
    assert orbit.num_uniforms == sum(step.num_uniforms for step in steps)
    U = draws(orbit, 2, 3)
    drawn = orbit.transform(X, U)
    for n in range(2):
        for s in range(3):
            image, used = X[n : n + 1], 0
            for step in steps:
                image = step.transform(image, U[n : n + 1, s : s + 1, used : used + step.num_uniforms])[:, 0]
                used += step.num_uniforms
            np.testing.assert_allclose(drawn[n, s], image[0], atol=1e-13)


def test_the_first_step_comes_first():
    shift = Affine((4, 4), *[[1.0, 0.0, 2 / 3, 0.0, 1.0, 0.0]] * 2)  # one pixel
    quarter = orbits.RightAngles((4, 4))
    X, U = np.arange(16.0).reshape(1, 16), np.full((1, 1, 7), 0.3)  # 0.3: the first quarter turn
    turned, pixels = np.rot90(X.reshape(4, 4)), X.reshape(4, 4)
    expected = np.pad(turned[:, 1:], ((0, 0), (0, 1)))
    np.testing.assert_allclose(Composed([quarter, shift]).transform(X, U).numpy().reshape(4, 4), expected, atol=1e-12)
    expected = np.rot90(np.pad(pixels[:, 1:], ((0, 0), (0, 1))))
    np.testing.assert_allclose(Composed([shift, quarter]).transform(X, U).numpy().reshape(4, 4), expected, atol=1e-12)


def test_one_step_is_that_orbit_and_nesting_changes_nothing(noise_images):
    X, first, second, third = noise_images(2, (6, 5)), Rotation((6, 5)), Affine((6, 5)), LocalDeformation((6, 5))
    U = draws(first, 2, 3)
    assert np.array_equal(Composed([first]).transform(X, U), first.transform(X, U))
    flat, nested = Composed([first, second, third]), Composed([first, Composed([second, third])])
    U = draws(flat, 2, 3)
    np.testing.assert_allclose(flat.transform(X, U), nested.transform(X, U), atol=1e-14)


@pytest.mark.parametrize(
    "steps",
    [
        lambda shape: [Rotation(shape, 40.0), Affine(shape, spread=0.2)],
        lambda shape: [orbits.InterpretableAffine(shape, spread=0.2), Rotation(shape, 40.0)],
        lambda shape: [Rotation(shape, 40.0), LocalDeformation(shape, 0.1, [0.1] * 6, 0.2)],
        lambda shape: [LocalDeformation(shape, 0.1, [0.1] * 6, 0.2, mode="tangent"), Rotation(shape, 40.0)],
        lambda shape: [Rotation(shape, 40.0), LocalDeformation(shape, 0.1, [0.1] * 6, 0.2, mode="tangent")],
        lambda shape: [GaussianNoise(60, 0.2), Rotation(shape, 40.0), orbits.Identity()],
    ],
    ids=[
        "rotation affine",
        "affine rotation",
        "rotation warp",
        "tangent rotation",
        "rotation tangent",
        "noise rotation",
    ],
)
def test_gradients_reach_the_parameters_of_every_step(steps, smooth_images, smooth_loss, assert_gradients_match):
    shape = (6, 5, 2)
    orbit = Composed(steps(shape))
    X, U = smooth_images(2, shape), draws(orbit, 2, 2)
    variables = [variable for step in orbit.orbits for variable in step.trainable_variables]
    assert len(orbit.trainable_variables) == len(variables)
    assert_gradients_match(lambda: smooth_loss(orbit.transform(X, U)), variables)


def test_gradients_reach_the_images(smooth_images, smooth_loss, assert_gradients_match):
    shape = (4, 3)
    orbit = Composed([Rotation(shape, 30.0), LocalDeformation(shape, 0.1, [0.1] * 6, 0.2)])
    X, U = tf.Variable(smooth_images(1, shape)), draws(orbit, 1, 2)
    assert_gradients_match(lambda: smooth_loss(orbit.transform(X, U)), [X])


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "orbits must name at least one orbit, got none"),
        ([orbits.Identity(), "rotation"], r"orbits\[1\] must be an Orbit, got str"),
        ([None], r"orbits\[0\] must be an Orbit, got NoneType"),
        # one orbit without its list
        (orbits.Identity(), "orbits must .*Identity"),
        (3, "orbits must .*(3|int)"),
    ],
)
def test_bad_arguments_are_named(steps, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Composed(steps)
