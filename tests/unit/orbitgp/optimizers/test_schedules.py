import numpy as np
import pytest
import tensorflow as tf

from orbitgp.optimizers.schedules import cosine, geometric

PROGRESS = np.linspace(0, 1, 401)


@pytest.mark.parametrize("warmup", [0.0, 0.02, 0.25, 0.9])
@pytest.mark.parametrize("floor", [0.0, 0.01, 1.0])
def test_the_rate_rises_and_falls_as_the_formula_says(warmup, floor):
    found = cosine(PROGRESS, warmup, floor).numpy()
    for progress, share in zip(PROGRESS, found, strict=True):
        rise = 1.0 if progress >= warmup else progress / warmup
        fall = max(0.0, (progress - warmup) / (1 - warmup))
        assert share == pytest.approx(rise * (floor + (1 - floor) * (1 + np.cos(np.pi * fall)) / 2), abs=1e-14)
    assert found[0] == (0.0 if warmup else 1.0)
    assert found[-1] == pytest.approx(floor, abs=1e-14)
    assert cosine(tf.constant(warmup, tf.float64), warmup, floor).numpy() == pytest.approx(1.0, abs=1e-14)
    rising = warmup >= PROGRESS
    assert np.all(np.diff(found[rising]) > 0)
    falls = np.diff(found[~rising])
    assert np.all(falls < 0) if floor < 1 else np.all(falls == 0)


def test_the_half_of_the_fall_is_half_way_down():
    assert cosine(tf.constant(0.6, tf.float64), 0.2, 0.1).numpy() == pytest.approx(0.55, abs=1e-14)


@pytest.mark.parametrize(("first", "last"), [(0.2, 0.004), (1.0, 1.0), (0.5, 0.1)])
def test_the_step_shrinks_by_the_same_factor(first, last):
    found = geometric(PROGRESS, first, last).numpy()
    np.testing.assert_allclose(found, first * (last / first) ** PROGRESS, rtol=1e-14)
    assert found[0] == first
    assert found[-1] == pytest.approx(last, rel=1e-14)
    np.testing.assert_allclose(found[1:] / found[:-1], (last / first) ** (1 / 400), rtol=1e-12)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_the_precision_is_that_of_the_progress_also_when_compiled(dtype):
    progress = tf.constant(0.3, dtype)
    for schedule in (lambda p: cosine(p, 0.1, 0.01), lambda p: cosine(p, 0.0, 0.01), lambda p: geometric(p, 0.2, 0.01)):
        eager, compiled = schedule(progress), tf.function(schedule)(progress)
        assert eager.dtype == dtype
        assert compiled.numpy() == pytest.approx(eager.numpy(), rel=1e-6)
