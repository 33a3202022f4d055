"""Numbers in tables, by name."""

import numpy as np
import pandas as pd
import pytest

from orbitgp_paper.analysis.references import NotThere, decided, look_up, matching, parse


@pytest.fixture()
def tables():
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
    # the invariant model was given more inducing points than the plain one
    inducing = {"model": ["invariant"] * 3 + ["plain"] * 2, "inducing": [4, 8, 64, 4, 8], "elbo": np.arange(5.0)}
    return {"mnist": mnist, "toy_bounds": pd.DataFrame(inducing), "estimators": shared}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mnist/rbf/error_mean", 3.0),
        ("toy_bounds/plain:8/elbo", 4.0),
        ("estimators/iid:False:2:bound/std", 1.0),
        ("toy_bounds/invariant:max/elbo", 2.0),
        ("toy_bounds/plain:min/elbo", 3.0),
    ],
)
def test_one_number(tables, text, value):
    reference = parse(text)
    assert str(reference) == text
    assert look_up(reference, tables)[reference.column] == value


def test_patterns(tables):
    assert matching(parse("mnist/rbf/error_mean"), tables) == [("rbf",)]
    found = matching(parse("mnist/rotation_90_*/error_mean"), tables)
    assert found == [("rotation_90_from_20",), ("rotation_90_from_60",)]
    assert len(matching(parse("toy_bounds/*:*/elbo"), tables)) == 5
    assert matching(parse("toy_bounds/*:max/elbo"), tables) == [("invariant", "max"), ("plain", "max")]
    for text, words in (("mnist/x*/error_mean", "there is no mnist/x"), ("none/*/error_mean", "no table")):
        with pytest.raises(NotThere, match=words):
            matching(parse(text), tables)


def test_pattern_on_both_sides_is_one_value():
    left, right = parse("estimators/a:*:*:bound/std"), parse("estimators/b:False:*:bound/std")
    assert decided(right, left, ("a", "True", "4", "bound")).row == ("b", "False", "4", "bound")
    for other in ("mnist/r*/error_mean", "toy_bounds/plain:*/elbo"):
        with pytest.raises(ValueError, match="does not have in the same place"):
            decided(parse(other), parse("mnist/*/error_mean"), ("rbf",))


@pytest.mark.parametrize(
    "text",
    ["rotated/rbf/error_mean", "mnist/none/error_mean", "estimators/none:False:2:bound/std", "mnist/rbf/orbit.alpha"],
)
def test_what_was_not_measured(tables, text):
    with pytest.raises(NotThere):
        look_up(parse(text), tables)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("toy_bounds/plain/elbo", "a row of toy_bounds is named by model:inducing"),
        ("mnist/rbf/eror_mean", "no column 'eror_mean', only variant, label"),
        ("mnist/rbf/label", "does not hold numbers"),
        ("mnist/rbf/good", "does not hold numbers"),
        ("estimators/iid:False:2:bound/std", "names 2 rows"),
    ],
)
def test_slips_are_named(tables, text, words):
    tables["estimators"] = tables["estimators"].assign(shared=False)
    with pytest.raises(ValueError, match=words):
        look_up(parse(text), tables)
