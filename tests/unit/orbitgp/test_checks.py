import re
from fractions import Fraction

import numpy as np
import pytest

from orbitgp import checks


@pytest.mark.parametrize("value", [2, 5, np.int8(3), np.int64(4)])
def test_integers_in_range_pass(value):
    result = checks.integer("count", value, least=2, most=5)
    assert result == value and type(result) is int


@pytest.mark.parametrize(
    ("value", "error"), [(1, ValueError), (6, ValueError), (-10, ValueError), (np.int64(7), ValueError)]
)
def test_integers_out_of_range_are_named(value, error):
    with pytest.raises(error, match=f"^count must be an integer of at least 2 and at most 5, got {value}$"):
        checks.integer("count", value, least=2, most=5)


@pytest.mark.parametrize("value", [3.0, "3", None, True, False, np.bool_(True), np.float64(3), [3], np.array([3])])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(TypeError, match=f"^count must be an integer of at least 0, got {re.escape(repr(value))}$"):
        checks.integer("count", value, least=0)


def test_without_a_limit_any_large_integer_passes():
    assert checks.integer("count", 10**30, least=0) == 10**30


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.25), np.int32(1), Fraction(1, 2)])
def test_numbers_in_range_pass(value):
    result = checks.number("rate", value, least=0.0, most=1.0)
    assert result == value and type(result) is float


@pytest.mark.parametrize("value", [-1e-9, 1.001, np.nan, np.inf, -np.inf, np.float32(2)])
def test_numbers_out_of_range_are_named(value):
    with pytest.raises(ValueError, match=rf"^rate must be a finite number in \[0, 1\], got {value}$"):
        checks.number("rate", value, least=0.0, most=1.0)


@pytest.mark.parametrize("value", ["0.5", None, True, np.bool_(False), 0.5 + 0j, [0.5], np.array(0.5)])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match=rf"^rate must be a finite number in \[0, 1\], got {re.escape(repr(value))}$"):
        checks.number("rate", value, least=0.0, most=1.0)


def test_infinity_is_not_a_number_even_without_a_limit():
    assert checks.number("rate", 1e300, least=0.0) == 1e300
    with pytest.raises(ValueError, match=r"^rate must be a finite number in \[0, inf\], got inf$"):
        checks.number("rate", np.inf, least=0.0)


@pytest.mark.parametrize("value", [[1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3], np.float32)])
def test_vectors_come_back_in_double_precision(value):
    result = checks.vector("lower", value, 3)
    assert result.dtype == np.float64 and np.array_equal(result, [1, 2, 3])


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1, 2], ValueError, r"lower must have shape \(3,\), got \(2,\)"),
        ([[1, 2, 3]], ValueError, r"lower must have shape \(3,\), got \(1, 3\)"),
        (1.0, ValueError, r"lower must have shape \(3,\), got \(\)"),
        ([1, 2, np.nan], ValueError, r"lower must be finite, got \[ 1.  2. nan\]"),
        ([1, 2, np.inf], ValueError, r"lower must be finite, got \[ 1.  2. inf\]"),
        ("abc", TypeError, "lower must be 3 numbers, got 'abc'"),
        ([1, 2, "c"], TypeError, r"lower must be 3 numbers, got \[1, 2, 'c'\]"),
        ([1, [2], 3], TypeError, r"lower must be 3 numbers, got \[1, \[2\], 3\]"),
        ([1, 2, 3j], TypeError, r"lower must be 3 numbers, got \[1, 2, 3j\]"),
    ],
)
def test_bad_vectors_are_named(value, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        checks.vector("lower", value, 3)


def test_one_of_the_words_passes():
    assert checks.one_of("mode", "warp", ("warp", "tangent")) == "warp"


@pytest.mark.parametrize("value", ["Warp", "war", "", None, 3, ["warp"]])
def test_any_other_word_is_refused(value):
    with pytest.raises(ValueError, match=f"^mode must be one of 'warp', 'tangent', got {re.escape(repr(value))}$"):
        checks.one_of("mode", value, ("warp", "tangent"))


def test_an_instance_is_handed_back():
    value = [1]
    assert checks.instance("items", value, list) is value


@pytest.mark.parametrize(("value", "name"), [(1, "int"), (None, "NoneType"), ((1,), "tuple"), (list, "type")])
def test_what_is_no_instance_is_refused(value, name):
    with pytest.raises(TypeError, match=f"^items must be a list, got {name}$"):
        checks.instance("items", value, list)


@pytest.mark.parametrize(
    ("value", "shape"), [((6, 5), (6, 5, 1)), ([6, 5, 3], (6, 5, 3)), ((np.int64(2), 2, 1), (2, 2, 1))]
)
def test_image_shapes_have_three_sides(value, shape):
    assert checks.image_shape(value) == shape


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((6,), r"shape must be \(H, W\) or \(H, W, C\), got \(6,\)"),
        ((6, 5, 3, 1), r"shape must be \(H, W\) or \(H, W, C\), got \(6, 5, 3, 1\)"),
        (28, r"shape must be \(H, W\) or \(H, W, C\), got 28"),
        (None, r"shape must be \(H, W\) or \(H, W, C\), got None"),
        ((1, 5), r"shape\[0\] must be an integer of at least 2, got 1"),
        ((6, -5), r"shape\[1\] must be an integer of at least 2, got -5"),
        ((6, 5, 0), r"shape\[2\] must be an integer of at least 1, got 0"),
        ((6, 5.0), r"shape\[1\] must be an integer of at least 2, got 5.0"),
        ("28", r"shape\[0\] must be an integer of at least 2, got '2'"),
    ],
)
def test_bad_image_shapes_are_named(value, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}$"):
        checks.image_shape(value)
