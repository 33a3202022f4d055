"""Trains one variant from one seed: a bar on the terminal, lines in the log, the run's files in its folder."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from arguments import settings


def main() -> None:
    """Trains, and has the log end with the traceback if that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=settings, required=True, help="of the run, as JSON")
    parser.add_argument("--images", type=Path, required=True, help="the data set")
    parser.add_argument("--folder", type=Path, required=True, help="where the run's files go")
    parser.add_argument("--checkpoints", type=Path, required=True, help="where a killed training is taken up again")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tensorboard", type=Path)
    given = parser.parse_args()
    given.log.parent.mkdir(parents=True, exist_ok=True)
    with open(given.log, "w", buffering=1) as log:
        try:
            run(given, log)
        except BaseException as error:
            if not isinstance(error, SystemExit):
                traceback.print_exc(file=log)
            else:
                print(error, file=log)
            raise


def run(given: argparse.Namespace, log: TextIO) -> None:
    """Loads TensorFlow, and with it what may fail, only when there is a log to tell it to."""
    with errors_into(log):
        from images import images_of

        from orbitgp.training.devices import prepare
        from orbitgp.training.run import train

        device = prepare(given.threads)
    said = f"training on {device}"
    if device == "CPU":
        said = f"no GPU was found: training on the CPU, {given.threads} thread{'s' * (given.threads != 1)}"
        print(f"{'/'.join(given.folder.parts[-3:])}: {said}", file=sys.stderr)
    print(said, file=log)
    train(
        given.spec,
        images_of(given.spec, given.images),
        given.folder,
        given.checkpoints,
        lambda line: print(line, file=log),
        tensorboard=given.tensorboard,
    )


@contextmanager
def errors_into(log: TextIO) -> Iterator[None]:
    """What TensorFlow tells of itself when it is loaded belongs into the log, and no setting silences it."""
    terminal = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


if __name__ == "__main__":
    main()
