"""
A training step in the paper's size, part by part, against what the machine could do; and what each trick is worth.

    python benchmarks/gpu.py            # on a GPU, some minutes; writes benchmarks/gpu.csv and gpu.md

Ceilings (products, memory) are measured in the same run. A part's floor is what its operations and its bytes would
take at these ceilings, whichever is longer; bytes count what must be read and written once if nothing is kept in
between. Factorisations have no floor here: their time is that of a chain of small operations.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

HERE = Path(__file__).resolve().parent

#: what is changed in the settings of mnist/affine, one trick at a time
TRICKS: dict[str, dict[str, Any]] = {
    "all tricks": {},
    "no compiled kernel and warp": {"compile": False},
    "float64 throughout": {"precision": "float64"},
    "the paper's estimator, as many draws": {"scheme": {"kind": "paper", "samples": 16}},
    "independent draws in groups": {"scheme": {"kind": "groups", "groups": 2, "size": 8, "sampler": "iid"}},
    "Adam for q as well": {"optimiser": {"kind": "adam", "rates": {"variational": 0.003}}},
}


def specification(changes: dict[str, Any], batch: int, inducing: int) -> dict[str, Any]:
    """
    :return: of mnist/affine in the paper's size, with changes.
    """
    from orbitgp import configuration

    spec = configuration.run_spec(configuration.load("paper"), configuration.Run("mnist", "affine", 0))
    for key, value in changes.items():
        merged = isinstance(value, dict) and key != "scheme"
        spec[key] = _merged(spec[key], value) if merged else value
    spec["optimiser"]["batch"], spec["inducing"]["count"] = batch, inducing
    return spec


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return old | {key: _merged(old[key], value) if isinstance(value, dict) else value for key, value in new.items()}


def build(spec: dict[str, Any]) -> Any:
    """
    :return: an optimiser around the model, with MNIST on the device.
    """
    import numpy as np

    from orbitgp.datasets import mnist
    from orbitgp.experiments.supervised import build_model, targets
    from orbitgp.training.optimiser import Optimiser

    data = mnist()
    Z = data.train.take(range(spec["inducing"]["count"])).inputs()
    model = build_model(spec, data, Z)
    return Optimiser(model, (data.train.inputs(np.float32), targets(spec, data, data.train)), spec["optimiser"], 0)


def milliseconds(run: Callable[[], Any], repeats: int) -> float:
    """The median, after a first call that compiles."""
    import numpy as np
    import tensorflow as tf

    def finish() -> None:
        for tensor in tf.nest.flatten(run()):
            tensor.numpy().ravel()[:1]

    finish()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        finish()
        taken.append(1e3 * (time.perf_counter() - start))
    return float(np.median(taken))


def ceilings(size: int, repeats: int) -> dict[str, float]:
    """
    :param size: side of the matrices.
    :return: operations per second of products in either precision, and bytes per second of a sum of two arrays.
    """
    import tensorflow as tf

    found = {}
    for dtype in (tf.float32, tf.float64):
        a = tf.random.stateless_uniform([size, size], [0, 1], dtype=dtype)
        product = tf.function(lambda a=a: tf.matmul(a, a)[0, 0], autograph=False)
        found[f"{dtype.name} product"] = 2 * size**3 / milliseconds(product, repeats) * 1e3
    a = tf.random.stateless_uniform([size * size * 4], [0, 1])
    total = tf.function(lambda: tf.reduce_sum(a), autograph=False)
    found["memory"] = 4 * size**2 * 4 / milliseconds(total, repeats) * 1e3
    return found


def parts(optimiser: Any, repeats: int) -> dict[str, float]:
    """
    :return: milliseconds of each part of a step: differences of stages, each of which contains the one before.
    """
    import tensorflow as tf

    model = optimiser._model
    seed = tf.constant([0, 1], tf.int64)
    batch = optimiser._batch(seed)
    variables = [v for group in optimiser._groups.values() for v in group]
    inner, few = 20, tf.constant(20)

    def sums(tensors: Any) -> list[tf.Tensor]:  # small, so that nothing large travels to the host
        return [tf.reduce_sum(tensor) for tensor in tf.nest.flatten(tensors)]

    def quadratic() -> Any:
        found = model.quadratic(batch, seed)
        return [found.linear, found.precision, found.constant, found.ceiling]

    def gradients() -> Any:
        with tf.GradientTape() as tape:
            bound = model.quadratic(batch, seed)(
                tf.convert_to_tensor(model.q_mu), tf.eye(model.q_mu.shape[0], dtype=model.q_mu.dtype)
            )
        return tape.gradient(bound, variables)

    stages = {
        "draws": lambda: sums(model.scheme.draw(model.kernel.orbit, batch[0], seed)),
        "kernel": lambda: sums(model._training_averages(model.scheme, batch[0], seed)),
        "solves": lambda: sums(quadratic()),
        "backward": lambda: sums(gradients()),
    }
    taken = {name: milliseconds(tf.function(stage, autograph=False), repeats) for name, stage in stages.items()}
    taken["q and updates"] = milliseconds(lambda: optimiser.advance(few), repeats) / inner
    names = list(taken)
    return {name: taken[name] - (taken[names[i - 1]] if i else 0.0) for i, name in enumerate(names)}


def floors(spec: dict[str, Any], ceiling: dict[str, float], pixels: int = 784, outputs: int = 10) -> dict[str, float]:
    """
    :return: milliseconds that each part needs at least.
    """
    N, M = spec["optimiser"]["batch"], spec["inducing"]["count"]
    groups, size = spec["scheme"]["groups"], spec["scheme"]["size"]
    S, width = groups * size, 4 if spec["precision"] == "mixed" else 8
    product = ceiling["float32 product" if width == 4 else "float64 product"]
    draws, kernel = N * S * pixels * width, N * groups * M * 8
    between = 2 * N * S * pixels * M / product
    columns = N * groups
    solves = (M**2 * columns + 2 * 2 * M**2 * columns + 2 * M * columns * outputs) / ceiling["float64 product"]
    return {
        "draws": 1e3 * draws / ceiling["memory"],
        "kernel": 1e3 * max(between, (draws + kernel) / ceiling["memory"]),
        "solves": 1e3 * max(solves, kernel / ceiling["memory"]),
        "backward": 1e3 * (2 * between + 2 * solves),
        "q and updates": 1e3 * (2 * 3 * M**3) / ceiling["float64 product"],
    }


def measure(batch: int, inducing: int, side: int, repeats: int) -> Any:
    """
    :return: a frame with a row for each ceiling, part and trick.
    """
    import pandas as pd

    rows = []
    ceiling = ceilings(side, repeats)
    rows += [{"table": "ceiling", "name": name, "value": value} for name, value in ceiling.items()]
    spec = specification({}, batch, inducing)
    least = floors(spec, ceiling)
    for name, value in parts(build(spec), repeats).items():
        rows.append({"table": "part", "name": name, "value": value, "floor": least[name]})
    for name, changes in TRICKS.items():
        import tensorflow as tf

        optimiser = build(specification(changes, batch, inducing))
        taken = milliseconds(lambda optimiser=optimiser: optimiser.advance(tf.constant(10)), repeats) / 10
        rows.append({"table": "trick", "name": name, "value": taken})
    return pd.DataFrame(rows)


def write(frame: Any, folder: Path, command: str, device: str) -> None:
    """gpu.csv with everything, gpu.md to read."""
    frame.to_csv(folder / "gpu.csv", index=False, float_format="%.6g")
    by_table = dict(list(frame.groupby("table", sort=False)))
    lines = ["# A training step in the paper's size", "", f"Affine maps on MNIST; `{command}` on {device}.", ""]
    lines += ["| ceiling | measured |", "| --- | --- |"]
    for row in by_table["ceiling"].itertuples():
        lines.append(f"| {row.name} | {row.value / 1e12:.3g} {'TB/s' if row.name == 'memory' else 'TFLOP/s'} |")
    lines += ["", "| part | ms | floor, ms |", "| --- | --- | --- |"]
    lines += [f"| {row.name} | {row.value:.2f} | {row.floor:.2f} |" for row in by_table["part"].itertuples()]
    whole = by_table["trick"].iloc[0].value
    lines += ["", "| step | ms | against all tricks |", "| --- | --- | --- |"]
    lines += [f"| {row.name} | {row.value:.2f} | {row.value / whole:.2f} |" for row in by_table["trick"].itertuples()]
    (folder / "gpu.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Reads the arguments and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--inducing", type=int, default=750)
    parser.add_argument("--side", type=int, default=8192, help="of the matrices that ceilings are measured with")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=HERE, help="where gpu.csv and gpu.md go")
    given = parser.parse_args()
    from orbitgp.training.devices import describe, prepare

    prepare(os.cpu_count() or 1)
    frame = measure(given.batch, given.inducing, given.side, given.repeats)
    given.folder.mkdir(parents=True, exist_ok=True)
    write(frame, given.folder, " ".join(["python benchmarks/gpu.py", *sys.argv[1:]]), describe())
    sys.stdout.write((given.folder / "gpu.md").read_text())


if __name__ == "__main__":
    main()
