"""
Makes of a trained run of MNIST one file that ``orbitgp.load`` and the command ``orbitgp`` read.

    python workflow/scripts/model_file.py results/paper_build/runs/mnist/affine/seed0 affine.orbitgp
"""

from __future__ import annotations

import argparse
from pathlib import Path

from orbitgp import datasets
from orbitgp_paper.experiments.model_files import write_model_file


def main() -> None:
    """Reads the arguments and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a run that has ended, with its params.npz")
    parser.add_argument("file", type=Path, help="the file to write")
    given = parser.parse_args()
    given.file.parent.mkdir(parents=True, exist_ok=True)
    write_model_file(given.run, datasets.mnist(), given.file)


if __name__ == "__main__":
    main()
