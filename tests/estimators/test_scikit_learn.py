"""
scikit-learn's own checks, twice: of the estimators, and of the same ones behind a table.

The checks fit tables [N, D], which the estimators refuse, as their tags say; so scikit-learn leaves out what fits data.
An adapter that takes each row for an image of one pixel's height lets it run those too: fit leaves parameters and data
alone, repeats itself and returns itself; predictions do not depend on the order of images; pickles work; and so on.
"""

import numpy as np
import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

from orbitgp import InvariantClassifier, InvariantRegressor
from orbitgp.fitting import loop

TINY = {"orbit": "none", "inducing": 3, "draws": 4, "steps": 1, "verbose": False}


class Rows:
    """Before an estimator: rows of a table in, images [N, 1, D] out, each column scaled to [0, 1]."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.positive_only = True, False
        for kind in (tags.classifier_tags, tags.regressor_tags):
            if kind is not None:
                kind.poor_score = True  # one step is no training
        return tags

    def fit(self, X, y):
        X, y = validate_data(self, X, y, y_numeric=isinstance(self, InvariantRegressor))
        self.scaler_ = MinMaxScaler(clip=True).fit(X)
        return super().fit(self.scaler_.transform(X)[:, None], y)

    def _predict_f(self, X):
        check_is_fitted(self)
        return super()._predict_f(self.scaler_.transform(validate_data(self, X, reset=False))[:, None])


class RowClassifier(Rows, InvariantClassifier):
    pass


class RowRegressor(Rows, InvariantRegressor):
    pass


@pytest.mark.parametrize("estimator", [InvariantClassifier, InvariantRegressor])
def test_tables_are_refused_and_the_tags_say_so(estimator):
    made = estimator(**TINY)
    with pytest.warns(SkipTestWarning, match="Can't test estimator"):
        assert [check["status"] for check in check_estimator(made)] == ["passed"]  # that it can be cloned
    assert not made.__sklearn_tags__().input_tags.two_d_array
    with pytest.raises(ValueError, match=r"images must be \[N, H, W\]"):
        made.fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("estimator", [RowClassifier, RowRegressor])
def test_behind_the_adapter_every_check_passes(estimator, eagerly, monkeypatch):
    """But for arrays that are not NumPy's, which scikit-learn itself has to be asked for by a variable."""
    monkeypatch.setattr(loop, "BOUND_PASSES", 2)  # some forty small fits, whose bounds say nothing
    found = {check["check_name"]: check["status"] for check in check_estimator(estimator(**TINY), on_skip=None)}
    assert {name for name, status in found.items() if status != "passed"} <= {"check_array_api_input"}
    assert len(found) > 40
