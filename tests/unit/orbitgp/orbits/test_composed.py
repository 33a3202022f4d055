import numpy as np
import pytest
import tensorflow as tf

from orbitgp.orbits import Affine, Composed, GaussianNoise, Identity, LocalDeformation, Rotation
from orbitgp.orbits.sampling import uniforms

SEED = [8, 4]


def draws(orbit, images, count):
    return uniforms(images, 1, count, orbit.num_uniforms, SEED).numpy()[:, 0]


def test_steps_follow_each_other_with_uniforms_of_their_own(noise_images):
    shape = (4, 5, 3)
    steps = [Rotation(shape, 60.0), GaussianNoise(60, 0.1), Affine(shape, spread=0.2)]
    orbit, X = Composed(steps), noise_images(2, shape)
    assert orbit.num_uniforms == sum(step.num_uniforms for step in steps)
    U = draws(orbit, 2, 3)
    drawn = orbit.transform(X, U)
    for n, s in np.ndindex(2, 3):
        image, used = X[n : n + 1], 0
        for step in steps:
            image = step.transform(image, U[n : n + 1, s : s + 1, used : used + step.num_uniforms])[:, 0]
            used += step.num_uniforms
        np.testing.assert_allclose(drawn[n, s], image[0], atol=1e-13)
    nested = Composed([steps[0], Composed(steps[1:])])
    np.testing.assert_allclose(nested.transform(X, U), drawn, atol=1e-14)


@pytest.mark.parametrize("tangent_first", [True, False])
def test_gradients_reach_the_parameters_of_every_step(
    tangent_first, smooth_images, smooth_loss, assert_gradients_match
):
    shape = (3, 4, 2)
    rotation = Rotation(shape, 40.0)
    if tangent_first:
        orbit = Composed([LocalDeformation(shape, 0.1, [0.1] * 6, 0.2, mode="tangent"), rotation])
    else:
        orbit = Composed([GaussianNoise(24, 0.2), rotation, LocalDeformation(shape, 0.1, [0.1] * 6, 0.2), Identity()])
    X, U = smooth_images(1, shape), draws(orbit, 1, 2)
    variables = [variable for step in orbit.orbits for variable in step.trainable_variables]
    assert len(orbit.trainable_variables) == len(variables)
    loss = tf.function(lambda: smooth_loss(orbit.transform(X, U)), autograph=False)
    assert_gradients_match(loss, variables)
