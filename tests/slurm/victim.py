"""
The training that workflow/scripts/train.py starts, as a victim: slow enough to be hit, for as long as ``slow/VARIANT``
is there; says which GPU it was given; and takes once what it was not given, if there is ``greedy/VARIANT``.
"""

import os
import time
from pathlib import Path

import numpy as np

from orbitgp_paper.runs import train as run

GREED = 1500 * 2**20  # bytes: too much for the first attempt, and within what the second is given


def train(spec, data, folder, checkpoints, log, **options):
    greedy, rows, taken = Path("greedy", spec.variant), 0, []

    def slow_log(line):
        nonlocal rows
        log(line)
        rows += line.startswith("step ")
        if rows == 5 and greedy.exists():
            greedy.unlink()
            taken.append(np.ones(GREED, np.uint8))
            time.sleep(60)  # Slurm looks once a second
        if Path("slow", spec.variant).exists():
            time.sleep(1.0)

    log(f"CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES')}")
    # what exceeds its memory is killed without a warning, and all that is left is a checkpoint of before; the others
    # have none but that which they save when they are told to stop
    options["checkpoint_every"] = 0.0 if greedy.exists() else float("inf")
    run.train(spec, data, folder, checkpoints, slow_log, **options)
