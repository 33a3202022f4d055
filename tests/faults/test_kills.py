"""Killed outright, at any moment and again and again, a training ends with the bytes of one that was left alone."""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.trainings import Training


def step(training: Training) -> int:
    """The last one that the log tells of."""
    told = [line for line in training.logged().splitlines() if line.startswith("step ")]
    return int(told[-1].split()[1]) if told else 0


def halves(training: Training) -> list[Path]:
    return [*training.checkpoints.glob("*/.checkpoint-*.part")]


def attempt(training: Training, happened: Callable[[], Any] | None, delay: float) -> int:
    """Starts a training and kills it so long after something happened; after its very start, if that is None."""
    child = training.start_anew() if happened is None else training.start()
    if happened is not None:
        training.wait_for(child, happened)
    time.sleep(delay)
    child.kill()
    return child.wait()


def test_ten_kills_lose_nothing(training: Training, undisturbed: Training) -> None:
    seed = random.SystemRandom().randrange(2**32)
    dice = random.Random(seed)
    story = [f"seed {seed}"]
    steps = sorted(dice.randrange(1, 380) for _ in range(4))
    moments: list[tuple[str, Callable[[], Any] | None, float]] = [
        *[("loading TensorFlow", None, dice.uniform(0.0, 6.0)) for _ in range(2)],
        ("building and tracing", lambda: True, dice.uniform(0.0, 3.0)),
        *[(f"after step {at}", lambda at=at: step(training) >= at, dice.uniform(0.0, 0.02)) for at in steps[:2]],
        *[
            (f"writing a checkpoint after step {at}", lambda at=at: step(training) >= at and halves(training), 0.0)
            for at in steps[2:]
        ],
        *[("in the last pass", lambda: step(training) == 400, dice.uniform(0.0, 1.0)) for _ in range(2)],
        ("writing results", lambda: training.folder.exists(), dice.uniform(0.0, 0.01)),
    ]
    assert len(moments) == 10
    for name, happened, delay in moments:
        for _ in range(3):
            code = attempt(training, happened, delay)
            story.append(f"{name}, {delay:.3f} s: {code}, at step {step(training)}")
            if code != 0:
                break
            assert training.results() == undisturbed.results(), story  # it was faster than its death: once more
        assert code == -signal.SIGKILL, (story, training.told())
    assert training.run() == 0, (story, training.told())
    assert training.results() == undisturbed.results(), story
    assert not [*training.base.rglob(".*.part")], story
    assert training.logged().count("the attempt before has no last line: it was killed") >= 6, (story, training.told())
