"""
What a newcomer waits for: README's commands on a fresh clone, one after another, with nothing in pip's cache.

    python3 benchmarks/newcomer.py            # all of them, three quarters of an hour
    python3 benchmarks/newcomer.py --short    # without `make run` and `make test`

Clones the repository that it lies in, as it was last committed, into an empty folder, which is removed in the end
unless --clone names one. It needs only Python, git and make, and writes benchmarks/newcomer.csv, a row after each
command. A command that fails ends it, with the end of what the command said.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

#: README's first example, and 600 digits as PNG files in a folder for each class; both lie outside the clone
PREPARE = """
import re
from pathlib import Path
import numpy as np
from PIL import Image
from orbitgp import datasets

example = re.search(r"```python\\n(.*?)```", Path("README.md").read_text(encoding="utf-8"), re.S)[1]
Path("../example.py").write_text(example)
digits = datasets.mnist().train
for number in range(600):
    folder = Path("../photos") / str(digits.labels[number])
    folder.mkdir(parents=True, exist_ok=True)
    pixels = np.round(255 * np.reshape(digits.images[number], (28, 28))).astype(np.uint8)
    Image.fromarray(pixels).save(folder / f"{number}.png")
"""

#: what stands in the table: the command that is run in the clone
SHORT = {
    "`make .venv/.stamp`, the environment, once": "make .venv/.stamp",
    "README's first example, with its start and 10,000 predictions": "python ../example.py",
    "`orbitgp fit photos/ -o photos.orbitgp --orbit affine`, 600 PNG files of digits": (
        "orbitgp fit ../photos -o ../photos.orbitgp --orbit affine"
    ),
    "`orbitgp predict photos.orbitgp photos/ -o predictions.csv`": (
        "orbitgp predict ../photos.orbitgp ../photos -o ../predictions.csv"
    ),
    "`orbitgp show photos.orbitgp photos/ -o orbit.png`": "orbitgp show ../photos.orbitgp ../photos -o ../orbit.png",
    "`snakemake --cores all --config tier=paper`, everything that is drawn, without training": (
        "snakemake --cores all --config tier=paper"
    ),
    "`make run TIER=smoke`": "make run TIER=smoke",
}
LONG = {"`make run`": "make run", "`make test`": "make test"}


def run(command: str, clone: Path) -> float:
    """:return: seconds that the command took, with the clone's environment activated, as README says."""
    path = os.pathsep.join([str(clone / ".venv" / "bin"), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PIP_NO_CACHE_DIR": "1"}
    print(command, file=sys.stderr, flush=True)
    start = time.perf_counter()
    done = subprocess.run(command.split(), cwd=clone, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    return time.perf_counter() - start


def main() -> None:
    """Runs one command after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="leave out what takes ten minutes and more")
    parser.add_argument("--clone", type=Path, help="an empty folder for the clone, which is kept")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    machine = f"{len(os.sched_getaffinity(0))} cores ({platform.machine()})"
    with tempfile.TemporaryDirectory() as folder:
        clone = (given.clone or Path(folder)).absolute() / "orbitgp"
        subprocess.run(["git", "clone", "--quiet", str(HERE.parent), str(clone)], check=True)
        commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=clone, text=True).strip()
        rows = []
        for what, command in (SHORT if given.short else SHORT | LONG).items():
            if "../" in command and not (clone.parent / "example.py").exists():
                subprocess.run([str(clone / ".venv/bin/python"), "-c", PREPARE], cwd=clone, check=True)
            rows.append((what, readable(run(command, clone)), commit, machine))
            with open(given.folder / "newcomer.csv", "w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([("what", "time", "commit", "machine"), *rows])


def readable(seconds: float) -> str:
    """As 54 s, 2 min 22 s or 25 min."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{rest} s" if not minutes else f"{minutes} min {rest} s" if minutes < 10 else f"{round(seconds / 60)} min"


if __name__ == "__main__":
    main()
