import re
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from orbitgp import checks

count, rate = partial(checks.integer, "count", least=2, most=5), partial(checks.number, "rate", least=0.0, most=1.0)


def lower(value):
    return checks.vector("lower", value, 3)


def mode(value):
    return checks.one_of("mode", value, ("warp", "tangent"))


def items(value):
    return checks.instance("items", value, list)


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        *((count, value, int(value)) for value in (2, 5, np.int8(3), np.int64(4))),
        *((rate, value, float(value)) for value in (0, 1, 0.5, np.float32(0.25), np.int32(1), Fraction(1, 2))),
        (partial(checks.integer, "count", least=0), 10**30, 10**30),
        (partial(checks.number, "rate", least=0.0), 1e300, 1e300),
        *((checks.image_shape, value, (6, 5, 1)) for value in ((6, 5), [6, 5, 1], (np.int64(6), 5, 1))),
        (mode, "warp", "warp"),
        (items, [1], [1]),
    ],
)
def test_what_is_allowed_comes_back_as_one_type(check, value, expected):
    result = check(value)
    assert result == expected and type(result) is type(expected)


@pytest.mark.parametrize("value", [[1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3], np.float32)])
def test_vectors_come_back_in_double_precision(value):
    assert lower(value).dtype == np.float64 and np.array_equal(lower(value), [1, 2, 3])


def refusals(check, allowed, values):
    return [(check, value, f"{allowed}, got {re.escape(repr(value))}") for value in values]


COUNT = "count must be an integer of at least 2 and at most 5"
RATE = r"rate must be a finite number in \[0, 1\]"


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        *refusals(count, COUNT, [1, 6, -10, 3.0, "3", None, True, np.bool_(True), np.float64(3), [3], np.array([3])]),
        *refusals(rate, RATE, [-1e-9, 1.001, np.nan, np.inf, "0.5", None, True, 0.5 + 0j, [0.5], np.array(0.5)]),
        *refusals(mode, "mode must be one of 'warp', 'tangent'", ["Warp", "war", "", None, 3, ["warp"]]),
        (lambda value: checks.number("rate", value, least=0.0), np.inf, r"rate must be .* in \[0, inf\], got inf"),
        (lower, [1, 2], r"lower must have shape \(3,\), got \(2,\)"),
        (lower, [[1, 2, 3]], r"lower must have shape \(3,\), got \(1, 3\)"),
        (lower, 1.0, r"lower must have shape \(3,\), got \(\)"),
        (lower, [1, 2, np.nan], r"lower must be finite, got \[ 1.  2. nan\]"),
        (lower, [1, 2, "c"], r"lower must be 3 numbers, got \[1, 2, 'c'\]"),
        (lower, [1, [2], 3], r"lower must be 3 numbers, got \[1, \[2\], 3\]"),
        (lower, [1, 2, 3j], r"lower must be 3 numbers, got \[1, 2, 3j\]"),
        (items, (1,), "items must be a list, got tuple"),
        (items, list, "items must be a list, got type"),
        (checks.image_shape, (6,), r"shape must be \(H, W\) or \(H, W, C\), got \(6,\)"),
        (checks.image_shape, 28, r"shape must be \(H, W\) or \(H, W, C\), got 28"),
        (checks.image_shape, (1, 5), r"shape\[0\] must be an integer of at least 2, got 1"),
        (checks.image_shape, (6, 5, 0), r"shape\[2\] must be an integer of at least 1, got 0"),
        (checks.image_shape, (6, 5.0), r"shape\[1\] must be an integer of at least 2, got 5.0"),
        (checks.image_shape, "28", r"shape\[0\] must be an integer of at least 2, got '2'"),
    ],
)
def test_what_is_refused_is_named(check, value, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}$"):
        check(value)
