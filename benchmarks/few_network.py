"""
A small convolutional network on few images: the other side of `few_*` in config/beyond.yaml.

    python benchmarks/few_network.py --sizes 312 1250 5000    # half an hour on two cores

The training images are the same, and so is the network of benchmarks/instead.py: without augmentation, and with batches
that are moved at random, by affine maps of three strengths of which held-out training images choose one. Digits that
were turned, or shifted and scaled, are first moved so in the batches too. It writes benchmarks/few_network.csv and
few_network.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from instead import HERE, judge, network, spread, transformed

from orbitgp.files import write_text

DATA = ("mnist", "turned", "moved", "fashion")  # of config/beyond.yaml, before the number of images
STRENGTHS = (0.25, 0.5, 1.0)
# the largest angle in degrees, changes of scale, shears and shifts of half a side
LARGEST = np.array([30, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1])  # of strength 1
OF_THE_DATA = {"turned": np.array([180, 0, 0, 0, 0, 0, 0]), "moved": np.array([0, 0.3, 0.3, 0, 0, 0.3, 0.3])}
COLUMNS = {"error": 2, "nll": 3, "calibration_error": 1, "fit_s": 0}


def mover(shape: tuple[int, int, int], strength: float, name: str) -> Callable[[np.ndarray, int], np.ndarray]:
    """
    :param shape: (H, W, C) of the images.
    :param name: of the data, whose own movement comes first.
    :return: moves each image of a batch at random, given a seed.
    """
    from orbitgp import orbits

    middle, own = np.array([0, 1, 1, 0, 0, 0, 0]), OF_THE_DATA.get(name)
    steps = [strength * LARGEST] if own is None else [own, strength * LARGEST]
    parts = [orbits.InterpretableAffine(shape, lower=middle - step, upper=middle + step) for step in steps]
    return lambda images, seed: transformed(orbits.Composed(parts), images, 1, seed)


def measure(name: str, count: int, seed: int, test: int | None) -> list[dict[str, Any]]:
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
            loss = model.evaluate(images[:held], labels[:held], batch_size=1000, verbose=0)
            found.append((loss, strength, model))
        _, strength, model = min(found, key=lambda row: row[:2])
        seconds = time.perf_counter() - start
        scores, _ = judge(model.predict(tested.images, batch_size=1000, verbose=0), tested.labels)
        rows.append({"data": name, "images": count, "model": kind, "seed": seed, "strength": strength})
        rows[-1] |= {**scores, "fit_s": seconds}
    return rows


def main() -> None:
    """Reads the arguments and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--sizes", type=int, nargs="+", default=[312, 1250, 5000, 20000, 60000], help="images")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--test", type=int, help="test images, instead of all")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    from orbitgp.fitting.devices import describe

    cells = [(name, size, seed) for size in given.sizes for name in given.data for seed in range(given.seeds)]
    frame = pd.DataFrame([row for cell in cells for row in measure(*cell, given.test)])
    write_text(given.folder / "few_network.csv", frame.to_csv(index=False, float_format="%.6g"))
    lines = [
        "# A small network on few images",
        "",
        f"`{' '.join(['python benchmarks/few_network.py', *sys.argv[1:]])}` on {describe()}. Means of {given.seeds} "
        "seeds ± their standard deviations; seconds of all strengths that were tried.",
        "",
        "| data | images | model | test error, % | NLL | calibration error, % | fit, s |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for (name, size, model), group in frame.groupby(["data", "images", "model"], sort=False):
        numbers = [spread(group[column], digits) for column, digits in COLUMNS.items()]
        lines.append(f"| {name} | {size:,} | {model} | {' | '.join(numbers)} |")
    write_text(given.folder / "few_network.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
