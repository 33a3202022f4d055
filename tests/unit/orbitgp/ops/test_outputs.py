"""One matrix for all outputs or one for each, against a loop."""

import numpy as np
import pytest

from orbitgp._ops.outputs import times_each


@pytest.mark.parametrize("matrices", [1, 3])
@pytest.mark.parametrize("transpose", [False, True])
def test_each_output_is_multiplied_by_its_matrix(matrices, transpose):
    rng = np.random.default_rng(0)
    A, v = rng.normal(size=(matrices, 4, 4)), rng.normal(size=(4, 3))
    expected = [(A[p % matrices].T if transpose else A[p % matrices]) @ v[:, p] for p in range(3)]
    np.testing.assert_allclose(times_each(A, v, transpose), np.stack(expected, axis=1), rtol=1e-12)
