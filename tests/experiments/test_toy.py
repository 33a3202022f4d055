import numpy as np
import pytest

from orbitgp.datasets import symmetric
from orbitgp.experiments.toy import fit_toy


@pytest.fixture(scope="module")
def result():
    return fit_toy(symmetric(0, train=40, test=9))


def test_the_invariant_surface_is_symmetric_and_the_plain_one_is_not(result):
    invariant, plain = (result.means[name].reshape(9, 9) for name in ("invariant", "plain"))
    np.testing.assert_allclose(invariant, invariant.T, atol=1e-10)
    assert np.abs(plain - plain.T).max() > 0.01


def test_numbers_are_those_of_the_surfaces(result):
    data = symmetric(0, train=40, test=9)
    assert list(result.metrics.model) == ["invariant", "plain"]
    for row in result.metrics.itertuples():
        error = np.sqrt(np.mean((result.means[row.model] - data.test.Y) ** 2))
        assert row.test_rmse == pytest.approx(error, rel=1e-12)
        assert np.isfinite(row.log_marginal_likelihood)


def test_the_fit_is_reproducible(result):
    again = fit_toy(symmetric(0, train=40, test=9))
    np.testing.assert_array_equal(again.means["plain"], result.means["plain"])
