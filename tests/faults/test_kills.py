"""Killed outright, at any moment and again and again, a training ends with the bytes of one that was left alone."""

import json
import random
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from faults.trainings import Training

# a training that never gives this file its name: however late its killer comes, it finds it no further than there
HELD = """
import os, time
replace = os.replace
os.replace = lambda source, target: time.sleep(600) if str(target).endswith("{file}") else replace(source, target)
"""


class Moment(NamedTuple):
    """When a training is killed: so many seconds after something happened, at the latest when it writes a file."""

    name: str
    happened: Callable[[str], Any]  #: of what this attempt has logged so far
    delay: float
    held_at: str


def step(said: str) -> int:
    """The last one that an attempt tells of."""
    return max(map(int, re.findall(r"^step (\d+) of 400", said, flags=re.M)), default=0)


def resumed_at(said: str) -> int:
    """Where an attempt went on; zero if it began from the start."""
    found = re.search(r"^resumed at step (\d+) of 400$", said, flags=re.M)
    return int(found[1]) if found else 0


def halves(training: Training) -> list[Path]:
    return [*training.checkpoints.glob("*/.checkpoint-*.part")]


def kill_while_loading(training: Training, delay: float) -> None:
    """Before TensorFlow is there, which this process loads for itself."""
    process = training.start_anew()
    end = time.monotonic() + delay
    while time.monotonic() < end and "training on " not in training.logged():
        time.sleep(0.0005)
    process.kill()
    assert process.wait() == -signal.SIGKILL, training.told()


def kill_at(training: Training, moment: Moment) -> str:
    """:return: what the attempt has logged"""
    before = len(training.logged())
    child = training.start(HELD.format(file=moment.held_at))
    training.wait_for(child, lambda: moment.happened(training.logged()[before:]))
    time.sleep(moment.delay)
    child.kill()
    assert child.wait() == -signal.SIGKILL, (moment, training.told())
    return training.logged()[before:]


def test_ten_kills_lose_nothing(training: Training, undisturbed: Training) -> None:
    seed = random.SystemRandom().randrange(2**32)
    dice = random.Random(seed)
    story = [f"seed {seed}"]
    # one in each part of the training, and two rows apart at least, so that each attempt has a checkpoint to go on
    # from and trains on from there
    steps = [dice.randrange(first, first + 40) for first in (30, 120, 210, 300)]
    limits = [f"checkpoint-{first:09d}.npz" for first in (90, 180, 270, 360)]
    moments = [
        Moment("building and tracing", lambda said: True, dice.uniform(0.0, 3.0), "checkpoint-000000010.npz"),
        *[
            Moment(f"after step {at}", lambda said, at=at: step(said) >= at, dice.uniform(0.0, 0.02), limit)
            for at, limit in zip(steps[:2], limits[:2], strict=True)
        ],
        *[
            Moment(
                f"writing a checkpoint after step {at}",
                lambda said, at=at: step(said) >= at and halves(training),
                0.0,
                limit,
            )
            for at, limit in zip(steps[2:], limits[2:], strict=True)
        ],
        *[
            Moment(
                "in the last pass",
                lambda said: step(said) == 400 or resumed_at(said) == 400,
                dice.uniform(0.0, 1.0),
                "seed3/metrics.csv",
            )
            for _ in range(2)
        ],
        Moment("writing results", lambda said: "\nended: bound " in said, dice.uniform(0.0, 0.01), "seed3/final.json"),
    ]
    for _ in range(2):
        story.append(f"loading TensorFlow, {(delay := dice.uniform(0.0, 6.0)):.3f} s")
        kill_while_loading(training, delay)
    began = []
    for moment in moments:
        said = kill_at(training, moment)
        began.append(resumed_at(said))
        story.append(f"{moment.name}, {moment.delay:.3f} s: from step {began[-1]} to {step(said)}")
    assert len(story) == 1 + 10
    # what was not saved, or not brought back, shows only in an attempt that goes on in the middle and trains further
    in_the_middle = began[2:6]
    assert in_the_middle == sorted(set(in_the_middle)) and in_the_middle[0] > 0 and in_the_middle[-1] < 400, story
    assert training.run() == 0, (story, training.told())
    assert training.results() == undisturbed.results(), story
    assert json.loads((training.folder / "provenance.json").read_text())["resumed"] >= len(in_the_middle), story
    assert not [*training.base.rglob(".*.part")], story
    assert training.logged().count("the attempt before has no last line: it was killed") >= 7, (story, training.told())


def test_a_kill_loses_nothing_of_a_step_that_xla_compiles(
    make_training: Callable[[Path], Training], tmp_path: Path
) -> None:
    """As the paper's size has it: every attempt compiles its step anew."""
    trainings = [make_training(tmp_path / name) for name in ("killed", "undisturbed")]
    for training in trainings:
        training.spec = training.spec | {"compile": True}
    killed, undisturbed = trainings
    at = random.SystemRandom().randrange(30, 340)
    said = kill_at(killed, Moment(f"after step {at}", lambda said: step(said) >= at, 0.0, "checkpoint-000000380.npz"))
    assert 0 < step(said) < 400
    assert [training.run() for training in trainings] == [0, 0], (at, *(training.told() for training in trainings))
    assert 0 < resumed_at(killed.logged()) < 400, (at, killed.told())
    assert killed.results() == undisturbed.results(), at
