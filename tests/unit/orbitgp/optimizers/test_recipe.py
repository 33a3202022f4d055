import subprocess
import sys

import pytest

from orbitgp.optimizers.recipe import NaturalRate, Recipe

RATES = {"inducing": 0.1, "kernel": 0.1, "likelihood": 0.1, "orbit": 0.1}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Recipe("sgd"), "kind must be one of 'natural', 'adam', got 'sgd'"),
        (lambda: Recipe(steps=0), "steps must be an integer of at least 1, got 0"),
        (lambda: Recipe(batch=2.0), "batch must be an integer of at least 1, got 2.0"),
        (lambda: Recipe(batches="sorted"), "batches must be one of 'drawn', 'shuffled', 'hard', got 'sorted'"),
        (lambda: Recipe(inducing_scale="column"), "inducing_scale must be one of 'element', 'row', got 'column'"),
        (lambda: Recipe(warmup=-0.1), "warmup must be .*, got -0.1"),
        (lambda: Recipe(floor=1.5), "floor must be .*, got 1.5"),
        (lambda: Recipe("adam", rates=RATES), "rates must be those of .*variational, got inducing"),
        (lambda: Recipe(rates={"kernel": 0.1}), "rates must be those of .*, got kernel"),
        (lambda: Recipe(rates=RATES | {"orbit": -1.0}), r"rates\['orbit'\] must be .*, got -1.0"),
        (lambda: NaturalRate(0.1, 0.2), r"natural.last must be .*\[0, 0.1\], got 0.2"),
        (lambda: NaturalRate(1.5), r"natural.first must be .*, got 1.5"),
        (lambda: NaturalRate(scale="mean"), "natural.scale must be one of 'ceiling', 'precision', got 'mean'"),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_a_recipe_loads_no_tensorflow():
    code = "import sys, orbitgp.optimizers.recipe; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
