"""Numbers in tables, by name."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbitgp_paper.analysis.references import ClaimError, NotThere, decided, look_up, matching, parse


@pytest.fixture()
def tables(toy_bounds):
    mnist = pd.DataFrame(
        {
            "variant": ["rbf", "rotation_90_from_20", "rotation_90_from_60"],
            "label": ["a", "b", "c"],
            "error_mean": [3.0, 2.0, np.nan],
            "good": [True, False, True],
        }
    )
    shared = pd.DataFrame(
        {"estimator": "iid", "shared": [False, True], "samples": 2.0, "quantity": "bound", "std": [1.0, 2.0]}
    )
    return {"mnist": mnist, "toy_bounds": toy_bounds, "estimators": shared}


def test_one_number(tables):
    assert look_up(parse("x", "mnist/rbf/error_mean"), tables)["error_mean"] == 3.0
    assert look_up(parse("x", "toy_bounds/plain:64/elbo"), tables)["inducing"] == 64


def test_numbers_and_truths_as_keys(tables):
    assert look_up(parse("x", "estimators/iid:False:2:bound/std"), tables)["std"] == 1.0
    assert look_up(parse("x", "estimators/iid:True:2:bound/std"), tables)["std"] == 2.0


def test_least_and_largest(tables):
    assert look_up(parse("x", "toy_bounds/invariant:max/elbo"), tables)["inducing"] == 64
    assert look_up(parse("x", "toy_bounds/invariant:min/elbo"), tables)["inducing"] == 4


def test_patterns(tables):
    assert matching(parse("x", "mnist/rbf/error_mean"), tables) == [("rbf",)]
    found = matching(parse("x", "mnist/rotation_90_*/error_mean"), tables)
    assert found == [("rotation_90_from_20",), ("rotation_90_from_60",)]
    assert len(matching(parse("x", "toy_bounds/*:*/elbo"), tables)) == 6
    assert matching(parse("x", "toy_bounds/*:max/elbo"), tables) == [("invariant", "max"), ("plain", "max")]


def test_each_row_has_its_own_extremes(toy_bounds):
    """The invariant model may have been given more inducing points than the plain one."""
    uneven = {"toy_bounds": toy_bounds[(toy_bounds["model"] == "invariant") | (toy_bounds["inducing"] < 64)]}
    reference = parse("x", "toy_bounds/*:max/elbo")
    rows = matching(reference, uneven)
    assert rows == [("invariant", "max"), ("plain", "max")]
    assert [look_up(reference.at(row), uneven)["inducing"] for row in rows] == [64, 8]


def test_pattern_on_both_sides_is_one_value():
    left, right = parse("x", "estimators/a:*:*:bound/std"), parse("x", "estimators/b:False:*:bound/std")
    assert decided(right, left, ("a", "True", "4", "bound")).row == ("b", "False", "4", "bound")


@pytest.mark.parametrize("right", ["mnist/r*/error_mean", "toy_bounds/plain:*/elbo"])
def test_pattern_that_the_other_side_does_not_decide(right):
    with pytest.raises(ClaimError, match="does not have in the same place"):
        decided(parse("x", right), parse("x", "mnist/*/error_mean"), ("rbf",))


@pytest.mark.parametrize(
    "text",
    ["", "mnist", "mnist/rbf", "mnist/rbf/error/mean", "/rbf/x", "mnist//x", "mnist/rbf/", 3, None, ["mnist/rbf/x"]],
)
def test_what_is_no_reference(text):
    with pytest.raises(ClaimError, match="here: expected table/row/column, got"):
        parse("here", text)


@pytest.mark.parametrize("text", ["toy_bounds/plain/elbo", "mnist/a:b/error", "toy_bounds/plain:/elbo"])
def test_row_of_the_wrong_number_of_keys(text):
    with pytest.raises(ClaimError, match=r"a row of .* is named by"):
        parse("here", text)


@pytest.mark.parametrize(
    "text", ["rotated/rbf/error_mean", "mnist/none/error_mean", "toy_bounds/plain:5/elbo", "mnist/rbf/orbit.alpha"]
)
def test_what_was_not_measured(tables, text):
    with pytest.raises(NotThere):
        look_up(parse("x", text), tables)


def test_pattern_that_fits_nothing(tables):
    with pytest.raises(NotThere, match="there is no mnist/x"):
        matching(parse("x", "mnist/x*/error_mean"), tables)
    with pytest.raises(NotThere, match="no table"):
        matching(parse("x", "none/*/error_mean"), tables)


def test_column_that_is_a_slip(tables):
    with pytest.raises(ClaimError, match="no column 'eror_mean', only variant, label"):
        look_up(parse("x", "mnist/rbf/eror_mean"), tables)


@pytest.mark.parametrize("column", ["label", "good"])
def test_column_without_numbers(tables, column):
    with pytest.raises(ClaimError, match="does not hold numbers"):
        look_up(parse("x", f"mnist/rbf/{column}"), tables)


def test_name_of_several_rows(tables):
    doubled = {"mnist": pd.concat([tables["mnist"], tables["mnist"]])}
    with pytest.raises(ClaimError, match="names 2 rows"):
        look_up(parse("x", "mnist/rbf/error_mean"), doubled)


@given(st.text())
def test_any_text_is_a_reference_or_an_error(text):
    try:
        reference = parse("x", text)
    except ClaimError:
        return
    assert str(reference) == text
