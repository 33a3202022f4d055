"""Rank correlations of bound and test error."""

import numpy as np
import pandas as pd
import pytest

from orbitgp_paper.analysis.monitor import monitor_table, rank_correlation


def ranks(values: np.ndarray) -> np.ndarray:
    """From 1 on, the mean of its ranks for each of equal values, by a slow loop."""
    return np.array([np.sum(values < v) + (np.sum(values == v) + 1) / 2 for v in values])


@pytest.mark.parametrize("seed", range(5))
def test_it_is_pearsons_correlation_of_ranks(seed):
    rng = np.random.default_rng(seed)
    elbo, error = rng.integers(0, 6, (2, 12)).astype(float)
    pairs = pd.DataFrame({"elbo": elbo, "test_error": error})
    assert rank_correlation(pairs) == pytest.approx(np.corrcoef(ranks(elbo), ranks(error))[0, 1], abs=1e-12)
    assert np.isnan(rank_correlation(pairs.assign(elbo=1.0)))


def test_along_curves_and_across_the_models_of_a_data_set():
    def curve(variant: str, seed: int, elbo: list[float], error: list[float]) -> pd.DataFrame:
        identity = {"experiment": "e", "variant": variant, "label": variant.upper(), "seed": seed}
        return pd.DataFrame({**identity, "step": range(len(elbo)), "elbo": elbo, "test_error": error})

    metrics = pd.concat(
        [
            curve("a", 0, [np.nan, 1, 2, 3], [9, 3, 2, 1]),  # before the first step there is no bound
            curve("a", 1, [np.nan, 1, 2, 3], [9, 3, 1, 2]),
            curve("b", 0, [1, 2, 3, 4], [1, 2, 3, 4]),
        ]
    )
    rows = [("a", 0, "x", 5.0, 1.0), ("a", 1, "x", 7.0, 1.2), ("b", 0, "x", 2.0, 3.0), ("c", 0, "y", 9.0, 9.0)]
    finals = pd.DataFrame(rows, columns=["variant", "seed", "dataset", "elbo", "test_error"]).assign(experiment="e")
    table = monitor_table(finals, metrics).set_index("variant")
    assert list(table.index) == ["a", "b", "across_x"]  # y has one model only
    assert list(table["rank_mean"]) == pytest.approx([-0.75, 1.0, -1.0])
    assert table.loc["a", "rank_std"] == pytest.approx(np.std([-1.0, -0.5], ddof=1))
    assert list(table["n_seeds"]) == [2, 1, 1] and list(table["points"]) == [3, 4, 2]
