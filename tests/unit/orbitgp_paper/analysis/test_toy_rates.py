"""Statements about the toy, as rates."""

import numpy as np
import pandas as pd
import pytest

from orbitgp_paper.analysis.toy_rates import STATEMENTS, toy_rates_table

EVIDENCE = "log_marginal_likelihood"
TRUE = {
    "invariant": {EVIDENCE: 0, "train_rmse": 0.02, "test_rmse": 0.1, "noise": 0.05, "coverage": 0.95},
    "plain": {EVIDENCE: -10, "train_rmse": 0.01, "test_rmse": 0.2, "noise": 0.04, "coverage": 0.94},
    "antisymmetric": {EVIDENCE: -30, "train_rmse": 0.3, "test_rmse": 0.6, "noise": 0.3, "coverage": 0.5},
    "augmented": {EVIDENCE: 5, "train_rmse": 0.02, "test_rmse": 0.1, "noise": 0.05, "coverage": 0.9},
    "doubled": {EVIDENCE: 90, "train_rmse": 0.0, "test_rmse": 0.3, "noise": 0.001, "coverage": 0.8},
}
LABELS = ("elbo_polya_gamma", "elbo_logistic", "log_p_labels")
HALVES = {"invariant": (0.1, 0.3, 2.0), "plain": (0.5, 0.9, -5.0), "antisymmetric": (0.9, 0.9, -9.0)}


def draw(number: int, *changes: tuple[str, str, float]) -> pd.DataFrame:
    """A draw of which every statement is true, but for the changes (model, quantity, value)."""
    rows = []
    for model, numbers in TRUE.items():
        row = {"draw": number, "model": model, **numbers}
        for side in ("above", "below"):
            rmse, ratio, second = HALVES.get(model, (np.nan,) * 3)
            row |= {f"rmse_{side}": rmse, f"std_ratio_{side}": ratio, f"second_{side}": second}
        height = {"invariant": -20.0, "plain": -25.0}.get(model, -28.0)
        row |= {name: height + 0.1 * i for i, name in enumerate(LABELS)}
        row |= {quantity: value for name, quantity, value in changes if name == model}
        rows.append(row)
    return pd.DataFrame(rows)


def test_rates_are_shares_with_their_standard_errors_and_the_first_draw_is_the_figures():
    draws = [draw(0, ("plain", "train_rmse", 0.03)), draw(1), draw(2), draw(3)]
    table = toy_rates_table(pd.concat(draws, ignore_index=True)).set_index("statement")
    own = table.loc["plain_fits_better"]
    assert (own["rate"], own["n_draws"], own["in_figure"]) == (75.0, 4, False)
    assert own["rate_std_error"] == pytest.approx(100 * np.std([0, 1, 1, 1], ddof=1) / 2)
    others = table.drop("plain_fits_better")
    assert (others["rate"] == 100).all() and others["in_figure"].all() and (others["rate_std_error"] == 0).all()
    assert np.isnan(toy_rates_table(draw(0))["rate_std_error"]).all()


#: a change that makes a statement false, and which others it makes false too
FALSE = {
    "both_fit": [("plain", "train_rmse", 0.045)],
    "plain_fits_better": [("plain", "train_rmse", 0.02)],
    "generalises": [("invariant", "test_rmse", 0.15)],
    "identified": [("invariant", "test_rmse", 0.25)],
    "much_higher": [("invariant", EVIDENCE, -5.1)],
    "close_to_prior": [("plain", "std_ratio_below", 0.4)],
    "confident": [("invariant", "std_ratio_above", 0.6)],
    "correct": [("invariant", "rmse_below", 0.6)],
    "denser": [("invariant", "second_above", -6.0)],
    "antisymmetric_poor": [("antisymmetric", EVIDENCE, -14.0)],
    "antisymmetric_incorrect": [("antisymmetric", "second_below", -4.0)],
    "doubled_overconfident": [("doubled", "coverage", 0.96)],
    "augmented_overconfident": [("augmented", "coverage", 0.95)],
    "doubled_misleads": [("doubled", "test_rmse", 0.05)],
    "polya_gamma_gap": [("plain", "elbo_logistic", -26.0)],
    "polya_gamma_same_choice": [("plain", "log_p_labels", -1.0)],
}
FOLLOWS = {"both_fit": {"plain_fits_better"}, "identified": {"generalises"}}


@pytest.mark.parametrize("name", STATEMENTS)
def test_each_statement_can_be_false_by_itself(name):
    table = toy_rates_table(draw(0, *FALSE[name]))
    assert set(table.loc[table["rate"] == 0, "statement"]) == {name} | FOLLOWS.get(name, set())
