"""Counts of kernel evaluations."""

import numpy as np
import pytest

from orbitgp.datasets import mnist
from orbitgp_paper.analysis.tables import costs_table
from orbitgp_paper.experiments.costs import measure


@pytest.fixture(scope="module")
def measured():
    return measure({"sizes": [2, 4], "images": 3, "inducing": 5}, mnist())


def test_counts_are_the_papers(measured):
    """Ñ = 3, M = 5: in g ÑP² + ÑMP + M², in f ÑP² + (ÑM + M²)P²."""
    counts = measured.set_index(["quantity", "size"])["evaluations"]
    for size in (2, 4):
        assert counts["in_g", size] == 3 * size**2 + 3 * 5 * size + 5**2
        assert counts["in_f", size] == (3 + 3 * 5 + 5**2) * size**2
        assert counts["k_ff", size] == 3 * size**2
        assert counts["k_fu", size] == 3 * 5 * size


def test_growth_is_the_exponent(measured):
    growth = costs_table(measured.sample(frac=1, random_state=0)).set_index(["quantity", "size"])["growth"]
    assert growth["k_ff", 4] == 2 and growth["k_fu", 4] == 1
    assert growth["in_g", 4] == pytest.approx(np.log2((3 * 16 + 3 * 5 * 4 + 25) / (3 * 4 + 3 * 5 * 2 + 25)))
    assert growth.isna().sum() == 4  # before the smallest there is none
