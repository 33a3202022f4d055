import numpy as np
import pytest

from orbitgp.optimizers.schedules import cosine, geometric

PROGRESS = np.linspace(0, 1, 401)


@pytest.mark.parametrize(("warmup", "floor"), [(0.0, 0.01), (0.02, 0.0), (0.25, 1.0), (0.9, 0.1)])
def test_the_rate_rises_and_falls_as_the_formula_says(warmup, floor):
    found = cosine(PROGRESS, warmup, floor).numpy()
    for progress, share in zip(PROGRESS, found, strict=True):
        rise = 1.0 if progress >= warmup else progress / warmup
        fall = max(0.0, (progress - warmup) / (1 - warmup))
        assert share == pytest.approx(rise * (floor + (1 - floor) * (1 + np.cos(np.pi * fall)) / 2), abs=1e-14)
    ends = cosine(np.array([0.0, warmup, (1 + warmup) / 2, 1.0]), warmup, floor)
    np.testing.assert_allclose(ends, [0.0 if warmup else 1.0, 1.0, (1 + floor) / 2, floor], atol=1e-14)


@pytest.mark.parametrize(("first", "last"), [(0.2, 0.004), (1.0, 1.0)])
def test_the_step_shrinks_by_the_same_factor(first, last):
    found = geometric(PROGRESS, first, last).numpy()
    np.testing.assert_allclose(found, first * (last / first) ** PROGRESS, rtol=1e-14)
    assert found[0] == first and found[-1] == pytest.approx(last, rel=1e-14)
