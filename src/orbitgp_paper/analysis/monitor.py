"""Can the bound on the training data stand in for the test error? Rank correlations of the two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

ACROSS = "across models"


def monitor_table(finals: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """
    Spearman's ρ of bound and test error: −1 where a higher bound always goes with a lower error.

    :param finals: a row for each run: experiment, variant, label, seed, dataset, elbo and test_error.
    :param metrics: the runs' curves, with step, elbo and test_error.
    :return: for each experiment and variant, ``rank_mean`` and ``rank_std`` over seeds of ρ along a run's curve; then
        for each data set of an experiment, ρ across the means of its models. ``points`` are those of one curve, or the
        models.
    """
    rows: list[dict[str, Any]] = []
    for (experiment, variant), group in metrics.groupby(["experiment", "variant"], sort=False):
        curves = [curve.dropna(subset=["elbo", "test_error"]) for _, curve in group.groupby("seed", sort=False)]
        found = np.array([rank_correlation(curve) for curve in curves])
        label = group["label"].iloc[0]
        rows.append(_row(experiment, variant, f"{label}, along the curve", found, max(map(len, curves))))
    for (experiment, dataset), group in finals.groupby(["experiment", "dataset"], sort=False):
        models = group.groupby("variant", sort=False)[["elbo", "test_error"]].mean()
        if len(models) > 1:
            found = np.array([rank_correlation(models)])
            rows.append(_row(experiment, f"across_{dataset}", f"{ACROSS} of {dataset}", found, len(models)))
    return pd.DataFrame(rows)


def rank_correlation(pairs: pd.DataFrame) -> float:
    """Spearman's ρ of the columns elbo and test_error; NaN where one of them does not vary."""
    if min(pairs["elbo"].nunique(), pairs["test_error"].nunique()) < 2:
        return float("nan")
    from scipy.stats import spearmanr  # here, as it takes a second to load, and other tables do without

    return float(spearmanr(pairs["elbo"], pairs["test_error"]).statistic)


def _row(experiment: Any, variant: Any, label: str, found: np.ndarray, points: int) -> dict[str, Any]:
    spread = float(np.std(found, ddof=1)) if len(found) > 1 else float("nan")
    return {
        "experiment": experiment,
        "variant": variant,
        "label": label,
        "rank_mean": float(np.mean(found)),
        "rank_std": spread,
        "n_seeds": len(found),
        "points": points,
    }
