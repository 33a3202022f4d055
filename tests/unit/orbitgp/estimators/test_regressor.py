import numpy as np
import pytest

import orbitgp
from orbitgp import InvariantRegressor

from .conftest import SMALL


@pytest.fixture(scope="module")
def fitted(digits):
    (images, _), _ = digits
    return InvariantRegressor("none", **SMALL).fit(images, 100 + 10 * images[:, 2:5].mean((1, 2)))


def test_it_predicts_numbers_in_their_own_units_and_says_how_sure_it_is(fitted, digits, tmp_path):
    new = digits[1][0]
    truth = 100 + 10 * new[:, 2:5].mean((1, 2))
    mean, std = fitted.predict(new, return_std=True)
    assert mean.shape == std.shape == (300,) and fitted.score(new, truth) > 0.8
    assert 0.2 < np.sqrt(np.mean(((mean - truth) / std) ** 2)) < 3
    fitted.save(tmp_path / "a.orbitgp")
    np.testing.assert_array_equal(orbitgp.load(tmp_path / "a.orbitgp").predict(new), mean)


def test_evidence_is_of_the_targets_as_they_were_given(fitted, digits):
    (images, _), _ = digits
    targets = 100 + 10 * images[:, 2:5].mean((1, 2))
    smaller = InvariantRegressor("none", **SMALL).fit(images, targets / 10)
    assert smaller.evidence_ - fitted.evidence_ == pytest.approx(len(images) * np.log(10), rel=1e-6)


@pytest.mark.parametrize("targets", [["a"] * 600, np.ones(600), np.ones(3), np.full(600, np.nan)])
def test_bad_targets_are_named(targets, digits):
    with pytest.raises(ValueError, match="targets must be"):
        InvariantRegressor(verbose=False).fit(digits[0][0], targets)
