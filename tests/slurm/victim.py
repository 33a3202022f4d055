"""
The training that workflow/scripts/train.py starts, as a victim: slow enough to be hit, for as long as ``slow/VARIANT``
is there; says which GPU it was given; and, if its name is out_of_memory, takes what it was not given.
"""

import os
import time
from pathlib import Path

import numpy as np

from orbitgp_paper.runs import train as run

GREED = 1500 * 2**20  # bytes: too much for the first attempt, and within what the second is given
GREEDY_AT = "step 60 of"


def train(spec, data, folder, checkpoints, log, **options):
    greedy, taken = spec["variant"] == "out_of_memory", []

    def slow_log(line):
        log(line)
        if greedy and line.startswith(GREEDY_AT):
            taken.append(np.ones(GREED, np.uint8))
            time.sleep(5)  # Slurm looks once a second
        if Path("slow", spec["variant"]).exists():
            time.sleep(0.5)

    log(f"CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES')}")
    # what exceeds its memory is killed without a warning, and all that is left is a checkpoint of before; the others
    # have none but that which they save when they are told to stop
    options["checkpoint_every"] = 0.0 if greedy else float("inf")
    run.train(spec, data, folder, checkpoints, slow_log, **options)
