"""Trains one variant from one seed: a bar on the terminal, lines in the log, the run's files in its folder."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from orbitgp import load_gpflow
from orbitgp.fitting.lock import FolderInUse, NoLocks, beside
from orbitgp_paper.runs.attempts import attempt


def main() -> None:
    """Trains, and has the log end with the reason if that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, help="the run's specification, as JSON")
    parser.add_argument("--images", type=Path, required=True, help="the data set")
    parser.add_argument("--folder", type=Path, required=True, help="where the run's files go")
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder for the checkpoints of trainings")
    parser.add_argument("--checkpoint-every", type=float, default=60.0, help="seconds between two checkpoints")
    parser.add_argument("--log", type=Path, required=True, help="log file; lines are appended")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gpus", type=int, default=0, help="number of GPUs requested")
    parser.add_argument("--tensorboard", type=Path)
    given = parser.parse_args()
    try:
        with attempt(given.log, beside(given.checkpoints, given.folder, "attempts")) as (log, say):
            run(given, log, say)
    except (FolderInUse, NoLocks) as error:
        sys.exit(str(error))


def run(given: argparse.Namespace, log: TextIO, say: Callable[[str], None]) -> None:
    """Trains. TensorFlow is loaded here, so that errors in loading it go to the log."""
    with errors_into(log):
        load_gpflow()
        from orbitgp.fitting import devices
        from orbitgp_paper.config import RunSpec
        from orbitgp_paper.experiments.images import read_dataset
        from orbitgp_paper.runs.train import train

        device = devices.prepare(given.threads)
    said = devices.announce(device, given.threads, given.gpus)
    if device == devices.CPU:
        print(f"{'/'.join(given.folder.parts[-3:])}: {said}", file=sys.stderr)
    say(said)
    train(
        RunSpec.model_validate_json(given.spec),
        read_dataset(given.images),
        given.folder,
        given.checkpoints,
        say,
        checkpoint_every=given.checkpoint_every,
        tensorboard=given.tensorboard,
    )


@contextmanager
def errors_into(log: TextIO) -> Iterator[None]:
    """Sends TensorFlow's messages while it is loaded, which no setting silences, to the log."""
    terminal = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


if __name__ == "__main__":
    main()
