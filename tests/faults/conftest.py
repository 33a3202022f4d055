"""What the tests of faults share: a training, and one like it that nobody disturbs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults.trainings import Training

from orbitgp_paper.experiments.images import write_dataset

STEPS = 120


@pytest.fixture(scope="session")
def make_training(small_spec: Callable[..., Any], small_images: Any) -> Callable[..., Training]:
    """
    Trainings, each in a folder of its own, of a specification with changes: in graphs as the workflow's are, with a
    row of metrics and a checkpoint every five steps.
    """

    def make(base: Path, **changes: Any) -> Training:
        base.mkdir(parents=True, exist_ok=True)
        changes = {"optimiser": {"steps": STEPS}, "evaluation": {"count": STEPS // 5}} | changes
        training = Training(base, small_spec(**changes))
        write_dataset(training.images, small_images)
        return training

    return make


@pytest.fixture
def training(make_training: Callable[..., Training], tmp_path: Path) -> Training:
    return make_training(tmp_path / "training")


@pytest.fixture(scope="session")
def undisturbed(make_training: Callable[..., Training], tmp_path_factory: pytest.TempPathFactory) -> Training:
    """What every other must end with."""
    made = make_training(tmp_path_factory.mktemp("undisturbed"))
    assert made.run() == 0, made.told()
    return made
