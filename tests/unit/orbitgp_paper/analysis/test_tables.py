"""Frames of runs to tables."""

import numpy as np
import pandas as pd
import pytest

from orbitgp_paper.analysis import tables

PAPER = {"mnist/rbf/error": {"value": 2.15, "std": 0.03}, "mnist/affine/error": {"value": 1.35, "std": 0.07}}


# ---- experiments ----


def test_scores_of_probabilities_have_columns_where_there_are_any(finals):
    plain = finals("mnist", {"rbf": [2.0], "affine": [1.0]})
    frame = plain.assign(test_class_nll=np.nan, test_calibration_error=np.nan)
    assert list(tables.experiment_table(frame, "mnist")) == list(tables.experiment_table(plain, "mnist"))
    frame.loc[frame["variant"] == "rbf", "test_class_nll"] = 0.25
    table = tables.experiment_table(frame, "mnist").set_index("variant")
    assert table.loc["rbf", "class_nll_mean"] == 0.25 and np.isnan(table.loc["affine", "class_nll_mean"])
    assert "calibration_error_mean" not in table


def test_means_and_standard_deviations(finals):
    table = tables.experiment_table(finals("mnist", {"rbf": [2.0, 4.0], "affine": [1.0], "own": [3.04] * 3}), "mnist")
    expected = {"variant": ["rbf", "affine", "own"], "label": ["RBF", "AFFINE", "OWN"], "n_seeds": [2, 1, 3]}
    expected |= {"n_diverged": [0] * 3, "train_size": [4000] * 3}
    assert {name: list(table[name]) for name in expected} == expected
    np.testing.assert_allclose(table["error_mean"], [3.0, 1.0, 3.04])
    np.testing.assert_allclose(table["elbo_mean"], [997.0, 999.0, 996.96])
    np.testing.assert_allclose(table["error_std"], [np.sqrt(2), np.nan, 0.0])
    assert np.std([3.04] * 3, ddof=1) > 0 == table["error_std"][2]  # the mean is rounded


def test_diverged_runs_are_counted_and_never_dropped(finals):
    frame = finals("mnist", {"rbf": [2.0, 4.0, 90.0], "affine": [1.0, 1.0]})
    frame.loc[2, "diverged"] = True
    frame.loc[4, ["diverged", "test_error", "elbo"]] = [True, np.nan, np.nan]
    table = tables.experiment_table(frame, "mnist").set_index("variant")
    assert table.loc["rbf", "error_mean"] == 32.0
    assert table.loc["rbf", "n_diverged"] == 1
    # a mean of what is left would hide the failure
    assert np.isnan(table.loc["affine", "error_mean"])
    assert (table.loc["affine", "n_seeds"], table.loc["affine", "n_diverged"]) == (2, 1)


def test_only_the_experiments_own_runs(finals):
    frame = pd.concat([finals("mnist", {"rbf": [2.0]}), finals("rotated", {"rbf": [9.0]})], ignore_index=True)
    assert list(tables.experiment_table(frame, "rotated")["error_mean"]) == [9.0]
    with pytest.raises(ValueError, match="no run of 'parity', only of mnist, rotated"):
        tables.experiment_table(frame, "parity")


def test_mnist_stands_beside_the_paper(finals):
    table = tables.mnist_table(finals("mnist", {"rbf": [2.0, 2.2], "own": [1.0, 1.1]}), PAPER)
    needed = {"variant", "paper_error", "paper_std", "error_mean", "error_std", "n_seeds", "elbo_mean", "elbo_std"}
    assert needed <= set(table)
    assert (table["paper_error"][0], table["paper_std"][0]) == (2.15, 0.03)
    assert np.isnan(table["paper_error"][1])
    assert table["paper_error"].dtype == float


def test_rotated_digits_have_true_start_and_learned_angle(finals):
    errors = {"rbf_90": [9.0, 9.0], "rotation_90_from_20": [3.0, 4.0]}
    frame = finals("own", errors, alpha_true=90.0).assign(start=[np.nan, np.nan, 20.0, 20.0])
    frame["orbit.alpha"] = [np.nan, np.nan, 80.0, 100.0]
    table = tables.angle_table(frame, "own").set_index("variant")
    assert list(table)[1:3] == ["alpha_true", "start"]
    row = table.loc["rotation_90_from_20"]
    assert (row["alpha_true"], row["start"]) == (90.0, 20.0)
    assert (row["angle_mean"], row["angle_min"], row["angle_max"]) == (90.0, 80.0, 100.0)
    assert np.isnan(table.loc["rbf_90", "start"])
    assert np.isnan(table.loc["rbf_90", "angle_mean"])
    alone = tables.angle_table(frame[:2].drop(columns="orbit.alpha"), "own")
    assert np.isnan(alone["angle_mean"][0])  # no model of them has an angle


# ---- the toy and the appendix ----


def test_the_bounds_have_their_gap():
    bounds = pd.DataFrame({"model": "plain", "inducing": [4, 8], "elbo": [-3.5, -2.0], "log_marginal_likelihood": -1.5})
    assert list(tables.toy_bounds_table(bounds)["gap"]) == [2.0, 0.5]
    assert "gap" not in bounds


@pytest.fixture()
def insensitivity():
    """As measured: one variant, two views, ten classes."""
    rows = [
        {"variant": "rbf", "view": view, "label": label, "threshold": 0.01, "probability": 0.01 * label}
        | {"bound": 0.01 * label + 0.02, "expected_square": 0.1, "images": 1 + label}
        for view in ("prior", "posterior")
        for label in range(10)
    ]
    return pd.DataFrame(rows)


def test_insensitivity_weighs_classes_by_their_images(insensitivity):
    table = tables.insensitivity_table(insensitivity)
    assert len(table) == 2
    row = table.iloc[0]
    assert (row["variant"], row["view"], row["threshold"], row["images"]) == ("rbf", "prior", 0.01, 55)
    assert row["probability"] == pytest.approx(np.average(0.01 * np.arange(10), weights=np.arange(1, 11)))
    assert (row["probability_6"], row["probability_9"], row["classes_above_bound"]) == (0.06, 0.09, 0)
    few = tables.insensitivity_table(insensitivity[insensitivity["label"] < 6])
    assert few[["probability_6", "probability_9"]].isna().all(axis=None)


def test_classes_above_the_bound_are_counted_but_rounding_is_not(insensitivity):
    for factor, above in ((1 - 1e-12, 0), (0.9, 9)):
        frame = insensitivity.assign(bound=insensitivity["probability"] * factor)
        assert (tables.insensitivity_table(frame)["classes_above_bound"] == above).all()


def test_bias_in_standard_errors():
    names = ("estimator", "shared", "samples", "quantity", "exact", "mean", "std", "cost", "repeats")
    frame = pd.DataFrame({"bias": [0.0, 0.1, -0.02], "bias_std_error": [0.0, 0.0, 0.01], **dict.fromkeys(names, 1)})
    # exact; wrong, and always by as much; two standard errors
    assert list(tables.estimators_table(frame)["z"]) == [0.0, np.inf, 2.0]
