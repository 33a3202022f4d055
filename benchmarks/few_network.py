"""
A small convolutional network on few images: the other side of `few_*` in config/beyond.yaml.

    python benchmarks/few_network.py --sizes 312 1250 5000    # an hour on two cores

The training images are the same, and so is the network of benchmarks/instead.py: without augmentation, and with images
that are moved at random in every epoch, by affine maps of three strengths of which held-out training images choose one.
Digits that were turned, or shifted and scaled, are first moved so in every epoch too. It writes
benchmarks/few_network.csv, .md and .png; the same command goes on where it was stopped. The picture has the processes
of results/beyond beside the networks.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cells import measure_all
from instead import HERE, judge, network, random_copies, spread

from orbitgp.files import write_text

DATA = ("mnist", "turned", "moved", "fashion")  # of config/beyond.yaml, before the number of images
STRENGTHS = (0.25, 0.5, 1.0)
# the largest angle in degrees, changes of scale, shears and shifts of half a side
LARGEST = np.array([30, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1])  # of strength 1
OF_THE_DATA = {"turned": np.array([180, 0, 0, 0, 0, 0, 0]), "moved": np.array([0, 0.3, 0.3, 0, 0, 0.3, 0.3])}
#: what a run calls what a network measures
OF_RUNS = {
    "test_error": "error",
    "test_class_nll": "nll",
    "test_calibration_error": "calibration_error",
    "wall_s": "fit_s",
}
#: title, column and digits of a table
MEASURES = {
    "Test error, %": ("test_error", 2),
    "Test NLL, nats": ("test_class_nll", 3),
    "Calibration error, %": ("test_calibration_error", 1),
    "Seconds: of the processes on an H200, ten trainings at a time; of the networks as above, with all strengths": (
        "wall_s",
        0,
    ),
}


def mover(shape: tuple[int, int, int], strength: float, name: str) -> Callable[[np.ndarray, int], np.ndarray]:
    """
    :param shape: (H, W, C) of the images.
    :param name: of the data, whose own movement comes first.
    :return: moves each image at random, given a seed.
    """
    from orbitgp import orbits

    middle, own = np.array([0, 1, 1, 0, 0, 0, 0]), OF_THE_DATA.get(name)
    steps = [strength * LARGEST] if own is None else [own, strength * LARGEST]
    parts = [orbits.InterpretableAffine(shape, lower=middle - step, upper=middle + step) for step in steps]
    return random_copies(orbits.Composed(parts))


def measure(name: str, count: int, seed: int, *, test: int | None) -> list[dict[str, Any]]:
    """Two rows: the network as it is, and with the augmentation of the strength that held-out images choose."""
    from orbitgp_paper.config import load
    from orbitgp_paper.experiments.images import make_dataset

    data = make_dataset(load("beyond").datasets[f"{name}_{count}"])
    tested = data.test if test is None else data.test.take(test)
    # the network holds the first tenth out; some data sets have their classes in order there
    order = np.random.default_rng(seed).permutation(len(data.train))
    images, labels = data.train.images[order], data.train.labels[order]
    held = len(images) // 10
    rows = []
    for kind, strengths in {"network": (0.0,), "network, augmented": STRENGTHS}.items():
        start, found = time.perf_counter(), []
        for strength in strengths:
            moved = mover(images.shape[1:], strength, name) if strength else lambda images, seed: images
            model = network(images, labels, moved, seed)
            loss = model.test_on_batch(images[:held], labels[:held])
            found.append((loss, strength, model))
        _, strength, model = min(found, key=lambda row: row[:2])
        seconds = time.perf_counter() - start
        scores, _ = judge(model.predict(tested.images, batch_size=1000, verbose=0), tested.labels)
        rows.append({"data": name, "images": count, "model": kind, "seed": seed, "strength": strength})
        rows[-1] |= {**scores, "fit_s": seconds}
    return rows


def beside_processes(networks: pd.DataFrame, results: Path) -> pd.DataFrame:
    """The networks and the runs of ``few_*`` in one frame, with the columns of the runs."""
    from orbitgp_paper.config import load
    from orbitgp_paper.runs.reading import read_runs

    folders = [
        run.folder(results) for run in load("beyond").all_runs() if (run.folder(results) / "final.json").exists()
    ]
    rows = networks.rename(
        columns={"model": "label", "images": "originals"} | {old: new for new, old in OF_RUNS.items()}
    )
    rows["experiment"] = "few_" + rows["data"]
    every = pd.concat([read_runs(folders).finals if folders else pd.DataFrame(), rows])
    return every[every["experiment"].isin(rows["experiment"])]


def table(every: pd.DataFrame, column: str, digits: int) -> str:
    """A row for each data set and model, a column for each number of images; nothing where a seed is missing."""
    from orbitgp_paper.analysis.formats import markdown_table

    sizes, rows = sorted(every.originals.unique()), []
    for experiment, own in every.groupby("experiment", sort=False):
        for label, group in own.groupby("label", sort=False):
            values = [group.loc[group.originals == size, column].dropna() for size in sizes]
            cells = [spread(found, digits) if len(found) == every.seed.nunique() else "" for found in values]
            rows.append([str(experiment).removeprefix("few_"), str(label), *cells])
    return markdown_table(["data", "model", *(f"{size:,}" for size in sizes)], rows, [False] * 2 + [True] * len(sizes))


def page(networks: pd.DataFrame, every: pd.DataFrame) -> str:
    """Markdown with the picture and a table for each measure."""
    parts = [
        "# Few images: networks beside Gaussian processes\n",
        f"`python benchmarks/few_network.py {networks.command.iloc[0]}` trained the networks, on "
        f"{networks.device.iloc[0]}. The processes are those of `config/beyond.yaml`. Columns are numbers of training "
        f"images. Means of {networks.seed.nunique()} seeds ± their standard deviations; seeds share their images.\n",
        "![Test error and NLL over the number of images](few_network.png)\n",
    ]
    for title, (column, digits) in MEASURES.items():
        parts.append(f"## {title}\n\n{table(every, column, digits)}")
    return "\n".join(parts)


def main() -> None:
    """Reads the arguments and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--sizes", type=int, nargs="+", default=[312, 1250, 5000, 20000, 60000], help="images")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--test", type=int, help="test images, instead of all")
    parser.add_argument("--results", type=Path, default=HERE.parent / "results" / "beyond", help="of the processes")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    cells = [(name, size, seed) for size in given.sizes for name in given.data for seed in range(given.seeds)]
    file, command = given.folder / "few_network.csv", shlex.join(sys.argv[1:])
    frame = measure_all(file, command, ["data", "images", "seed"], cells, partial(measure, test=given.test))
    from orbitgp_paper.figures.sizes import draw

    every = beside_processes(frame, given.results)
    draw(every).savefig(given.folder / "few_network.png", dpi=150)
    write_text(given.folder / "few_network.md", page(frame, every))


if __name__ == "__main__":
    main()
