import numpy as np
import pytest

from orbitgp.estimators.orbit_names import NAMED, make_orbit
from orbitgp.orbits import Orbit

SHAPE = (6, 5, 3)


@pytest.mark.parametrize("name", NAMED)
def test_every_name_makes_an_orbit_that_starts_near_the_image(name):
    ramp = np.linspace(0, 1, 6)[:, None, None] * np.ones(SHAPE)  # brighter downwards
    X = ramp.reshape(1, -1)
    orbit = make_orbit(name, SHAPE)
    drawn = orbit.sample(X, 1, 4, [0, 1]).numpy()
    assert drawn.shape == (1, 1, 4, 90) and np.abs(drawn - X[:, None, None]).mean() < 0.1
    assert (name == "none") == (not orbit.trainable_variables)


def test_an_orbit_is_copied_and_a_function_is_called():
    mine = make_orbit("rotation", SHAPE)
    made = make_orbit(mine, SHAPE)
    assert isinstance(made, Orbit) and made is not mine and made.alpha is not mine.alpha
    assert make_orbit(lambda shape: mine, SHAPE) is mine


def test_settings_go_to_what_makes_it_and_must_fit():
    assert make_orbit("orbitgp.orbits:Rotation", SHAPE, alpha=20.0).alpha.numpy() == pytest.approx(20)
    with pytest.raises(ValueError, match=r"cannot be made of shape \(6, 5, 3\) and settings {'angle': 20.0}"):
        make_orbit("orbitgp.orbits:Rotation", SHAPE, angle=20.0)
