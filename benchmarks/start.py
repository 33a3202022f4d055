"""
What one waits for: the library's import, and a prediction of one image beside one of 256.

    python benchmarks/start.py    # two minutes; writes benchmarks/start.md
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
IMPORTS = {
    "TensorFlow": "import tensorflow",
    "GPflow": "import gpflow",
    "orbitgp, its names": "import orbitgp",
    "orbitgp, with the model": "import orbitgp; orbitgp.InvariantSVGP",
}


def import_seconds(code: str, turns: int) -> float:
    """The median, each in a process of its own, of which the interpreter's start is a part."""
    taken = []
    for _ in range(turns):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def prediction_ms(predict: Callable[[Any], Any], X: Any, turns: int) -> float:
    """The median of a prediction, after a first."""
    predict(X)[0].numpy()
    taken = []
    for _ in range(turns):
        start = time.perf_counter()
        predict(X)[0].numpy()
        taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken)


def main() -> None:
    """Measures, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--inducing", type=int, default=750)
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    imports = [[name, f"{import_seconds(code, given.turns):.1f}"] for name, code in IMPORTS.items()]

    import tensorflow as tf
    from step import Setting, build

    model, X, _ = build(Setting(batch=256, precision="mixed", inducing=given.inducing))
    eager = model.posterior().predict_f
    graph = tf.function(eager, input_signature=[tf.TensorSpec([None, X.shape[1]], X.dtype)])
    predictions = []
    for name, predict in (("op by op", eager), ("in a graph, as an exported model", graph)):
        one, all_ = (prediction_ms(predict, part, given.turns) for part in (X[:1], X))
        predictions.append([name, f"{one:.1f}", f"{all_:.0f}", f"1 / {all_ / one:.0f}"])
    lines = [
        "# What one waits for",
        "",
        f"Made by `python benchmarks/start.py` on {os.cpu_count()} cores ({platform.machine()}); medians.",
        "",
        markdown_table(["import, with the interpreter's start", "s"], imports, [False, True]).rstrip(),
        "",
        f"Predictions by one posterior, affine maps, {model.prediction_samples} draws, M = {given.inducing}:",
        "",
        markdown_table(["", "1 image, ms", "256 images, ms", "ratio"], predictions, [False, True, True, True]),
    ]
    (given.folder / "start.md").write_text("\n".join(lines).rstrip() + "\n")
    sys.stdout.write((given.folder / "start.md").read_text())


if __name__ == "__main__":
    main()
