"""What is wrong with a configuration is said in one line, before anything is planned."""

import pytest


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("tier=smok", "tier is 'smok'; config has ablation, paper, quick, smoke"),
        ("steps=5", "--config steps=5 is not known. Allowed: tier (the name of a file in config); tensorboard"),
        ("tensorboard=maybe", "--config tensorboard='maybe' must be true or false"),
    ],
)
def test_on_the_command_line(bare, given: str, complaint: str):
    done = bare.snakemake("--dry-run", "--config", given, check=False)
    assert done.returncode == 1
    assert complaint in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("    steps: 6\n", "    steps: 1e1\n", "training.optimiser.steps"),
        ("    steps: 6\n", "    stepps: 6\n", "training.optimiser.stepps"),
        ("orbit: {kind: rotation, alpha: 45}", "orbit: {kind: spiral}", "experiments.rotated.variants.rotation.orbit"),
        (
            "  mnist: {kind: mnist,",
            "  mnist: {kind: mnist, folder: gone,",
            "datasets.mnist.folder = 'gone' is not there",
        ),
    ],
)
def test_in_the_file(bare, old: str, new: str, complaint: str):
    bare.replace("config/smoke.yaml", old, new)
    done = bare.snakemake("--dry-run", check=False)
    assert done.returncode == 1
    [line] = [line for line in done.stdout.splitlines() if line.startswith("config/smoke.yaml: ")]
    assert complaint in line
    assert "Traceback" not in done.stdout
