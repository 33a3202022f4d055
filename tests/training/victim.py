"""
Trainings that are killed, for test_run.py: a process that loads TensorFlow once, does nothing with it, and forks a
child for each attempt.
"""

import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

import tensorflow as tf

from orbitgp.experiments.datasets import read_dataset
from orbitgp.training.run import train


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def say(line):
    print(line, flush=True)  # a kill flushes nothing


def arm(death, duration):
    """
    :param death: None, or ``{"before": name}`` to die when a file is written but has not got that name yet, or
        ``{"seed": number}`` for a random moment.
    :param duration: seconds that a whole training takes.
    """
    if death is None:
        return
    if "seed" in death:
        threading.Timer(random.Random(death["seed"]).uniform(0.1, 1.0) * duration, die).start()
        return
    replace = os.replace

    def watched(source, target):
        if Path(target).name == death["before"]:
            die()
        replace(source, target)

    os.replace = watched


def attempt(base, name, death, duration):
    """Forks a training, and waits for its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            tf.config.run_functions_eagerly(True)  # so few steps take less time than tracing them
            arm(death, duration)
            spec, data = json.loads((base / "spec.json").read_text()), read_dataset(base / "data.npz")
            train(spec, data, base / name, base / f"{name}-work", say, checkpoint_every=0.0)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main():
    """Makes the attempts of plan.json, a list of [name, death], and writes what became of them to told.json."""
    base, told, duration = Path(sys.argv[1]), [], 0.0
    for name, death in json.loads((base / "plan.json").read_text()):
        begin = time.monotonic()
        code = attempt(base, name, death, duration)
        duration = max(duration, time.monotonic() - begin)
        halves = sorted(path.name for path in base.rglob(".*.part"))
        told.append({"code": code, "halves": halves})
    (base / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
