import gpflow
import numpy as np
import pytest
import tensorflow as tf

from orbitgp._ops.bijectors import Reflect

DEGREES = {"upper": 180.0, "unit": 180.0 / np.pi}
# in the last, upper / unit · unit rounds to more than upper: clipping it there would cost the gradient
CASES = [DEGREES, {"upper": 2.0}, {"unit": 0.5}, {}, {"upper": 2.3, "unit": 1.1}, {"upper": 0.7, "unit": 0.3}]


def fold(x, upper=np.inf, unit=1.0):
    """The reference: walk from wall to wall."""
    y = abs(x) * unit
    while not 0 <= y <= upper:
        y = 2 * upper - y if y > upper else -y
    return y


def slope(bijector, x):
    x = tf.constant(x, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = bijector.forward(x)
    return tape.gradient(y, x).numpy()


@pytest.mark.parametrize("arguments", CASES, ids=str)
def test_it_folds_at_both_walls_with_a_slope_of_one_unit_everywhere(arguments):
    bijector, unit = Reflect(**arguments), arguments.get("unit", 1.0)
    wall = arguments.get("upper", 3.0) / unit
    x = np.random.default_rng(0).normal(0, 10, 200)
    y = bijector.forward(tf.constant(x)).numpy()
    np.testing.assert_allclose(y, [fold(value, **arguments) for value in x], atol=1e-11)
    assert y.min() >= 0 and y.max() <= arguments.get("upper", np.inf)
    np.testing.assert_allclose(np.abs(slope(bijector, np.append(x, wall * np.arange(-3, 4)))), unit, rtol=1e-14)
    inner = [0.0, 0.4, -0.4, 1.4, 2.4]  # times the wall: slopes have the sign of the side they are on
    signs = [1, 1, -1, -1, 1] if "upper" in arguments else [1, 1, -1, 1, 1]
    np.testing.assert_array_equal(slope(bijector, wall * np.array(inner)), unit * np.array(signs))
    jacobian = bijector.forward_log_det_jacobian(tf.constant(0.3, tf.float64), event_ndims=0)
    np.testing.assert_allclose(jacobian, np.log(unit), atol=1e-15)


@pytest.mark.parametrize("arguments", CASES, ids=str)
def test_the_inverse_takes_every_allowed_value_back(arguments):
    bijector, unit = Reflect(**arguments), arguments.get("unit", 1.0)
    y = np.linspace(0, arguments.get("upper", 100.0), 23)
    x = bijector.inverse(tf.constant(y)).numpy()
    np.testing.assert_allclose(x, y / unit, rtol=1e-14)
    # through numpy, since a bijector remembers what it inverted
    np.testing.assert_allclose(bijector.forward(tf.constant(x.copy())), y, rtol=1e-14)
    np.testing.assert_allclose(np.abs(slope(bijector, x.copy())), unit, rtol=1e-14)  # also on the walls


@pytest.mark.parametrize("value", [-1e-6, 180.001, np.nan, np.inf])
def test_values_outside_the_walls_are_refused(value):
    for attempt in (
        lambda: gpflow.Parameter(value, transform=Reflect(**DEGREES)),
        lambda: gpflow.Parameter(1.0, transform=Reflect(**DEGREES)).assign(value),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"the wall at (0|180)"):
            attempt()


def test_without_an_upper_wall_only_negative_values_are_refused():
    np.testing.assert_allclose(gpflow.Parameter(1e12, transform=Reflect()), 1e12)
    with pytest.raises(tf.errors.InvalidArgumentError, match="below the wall at 0"):
        gpflow.Parameter([1.0, -0.5], transform=Reflect())
