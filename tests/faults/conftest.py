"""What the tests of faults share: a training, and one like it that nobody disturbs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.trainings import Server, Training

from orbitgp_paper.experiments.images import write_dataset


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def long_spec(small_spec: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """Of a training of a second or two, in graphs as the workflow's are, with a checkpoint every ten steps."""
    return small_spec(optimiser={"steps": 400}, evaluation={"count": 40})


@pytest.fixture(scope="session")
def make_training(server: Server, long_spec: dict[str, Any], small_images: Any) -> Callable[[Path], Training]:
    """Trainings of one specification, each in a folder of its own."""

    def make(base: Path) -> Training:
        base.mkdir(parents=True, exist_ok=True)
        training = Training(base, long_spec, server)
        write_dataset(training.images, small_images)
        return training

    return make


@pytest.fixture
def training(make_training: Callable[[Path], Training], tmp_path: Path) -> Training:
    return make_training(tmp_path / "training")


@pytest.fixture(scope="session")
def undisturbed(make_training: Callable[[Path], Training], tmp_path_factory: pytest.TempPathFactory) -> Training:
    """What every other must end with."""
    made = make_training(tmp_path_factory.mktemp("undisturbed"))
    assert made.run() == 0, made.told()
    return made
