import numpy as np
import pytest
from estimators.conftest import SMALL

import orbitgp
from orbitgp import Component, InvariantClassifier, InvariantRegressor, SumPoints
from orbitgp.files import DamagedFile

COMPONENTS = [{"patch": 3, "stride": 2, "inducing": 20}, {"inducing": 25}]
FEW = SMALL | {"inducing": None, "steps": 30}


@pytest.fixture(scope="module")
def summed(digits):
    """Of ten digits, by patches and whole images under affine maps."""
    return InvariantClassifier("affine", components=COMPONENTS, **FEW).fit(*digits[0])


def test_a_sum_learns_and_says_what_it_is(summed, digits):
    assert np.mean(summed.predict(digits[1][0]) == digits[1][1]) > 0.8
    assert isinstance(summed.model_.inducing_variable, SumPoints) and summed.sizes_.inducing == 45
    assert summed.describe()["sizes"]["inducing"] == 45


def test_a_sum_comes_back_from_its_file_and_serves(summed, digits, tmp_path):
    new = digits[1][0][:10]
    summed.save(tmp_path / "sum.orbitgp")
    loaded = orbitgp.load(tmp_path / "sum.orbitgp")
    np.testing.assert_array_equal(loaded.predict_proba(new), summed.predict_proba(new))
    assert [Component.make(part) for part in loaded.components] == [Component.make(part) for part in COMPONENTS]
    summed.export(tmp_path / "served")
    assert (tmp_path / "served" / "saved_model.pb").is_file()


def test_a_file_whose_points_do_not_fit_its_components_is_refused(summed, tmp_path):
    larger, fewer = [{"patch": 4, "inducing": 20}, {"inducing": 25}], COMPONENTS[:1]
    other = InvariantClassifier("affine", components=COMPONENTS, **FEW)
    other.__dict__.update(vars(summed))
    other.set_params(components=larger).save(tmp_path / "patch.orbitgp")
    with pytest.raises(DamagedFile, match=r"whole model: .* 11 values each, but g takes 18"):
        orbitgp.load(tmp_path / "patch.orbitgp")
    other.set_params(components=fewer).save(tmp_path / "fewer.orbitgp")
    with pytest.raises(DamagedFile, match="SumPoints of 2 processes"):
        orbitgp.load(tmp_path / "fewer.orbitgp")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"components": []}, ValueError, "components must be a list of one or more"),
        ({"components": "5:2"}, TypeError, "a component must be a mapping"),
        ({"components": [{"patch": 3}]}, ValueError, "a component has inducing"),
        ({"components": COMPONENTS, "inducing": 5}, ValueError, "give one of them"),
        ({"components": [{"patch": 9, "inducing": 5}]}, ValueError, "size must be .* at most 8, got 9"),
        ({"components": [{"inducing": 601}]}, ValueError, "count must be .* at most 600, got 601"),
    ],
)
def test_components_that_cannot_be_are_refused_before_training(settings, error, message, digits):
    with pytest.raises(error, match=message):
        InvariantClassifier("affine", **FEW | settings).fit(*digits[0])


def test_a_regressor_takes_components_too(digits):
    images, labels = (part[:80] for part in digits[0])
    settings = FEW | {"steps": 3, "batch": 40}
    model = InvariantRegressor("none", components=[Component(10, patch=4)], **settings).fit(images, labels / 9)
    assert model.predict(images[:2]).shape == (2,)
