"""
A training step in the paper's size: what the GPU does in it, against what the machine could do; what each trick is
worth; what a step of each model of Fig. 4 takes; and how many trainings a GPU should have at once.

    python benchmarks/gpu.py            # on a GPU, ten minutes; writes benchmarks/gpu.csv, gpu.md and gpu.png
    python benchmarks/gpu.py --only targets    # one table, here from results/paper; the others stay as they are

Ceilings (products, memory) are measured in the same run. The floor of each kind of work is what its operations, or the
bytes that must be read and written once, would take at these ceilings.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from cells import typed

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")  # several processes share its memory

HERE = Path(__file__).resolve().parent

Row = dict[str, Any]

#: what is changed in the settings of mnist/affine: one trick at a time, and in the end all
PAPERS_ESTIMATOR = {"kind": "paper", "samples": 16}
ADAM_FOR_Q = {"kind": "adam", "rates": {"variational": 0.003}}
TRICKS: dict[str, dict[str, Any]] = {
    "all tricks": {},
    "no compiled kernel and warp": {"compile": False},
    "float64 throughout": {"precision": "float64"},
    "the paper's estimator, as many draws": {"scheme": PAPERS_ESTIMATOR},
    "independent draws in groups": {"scheme": {"kind": "groups", "groups": 2, "size": 8, "sampler": "iid"}},
    "Adam for q as well": {"optimiser": ADAM_FOR_Q},
    "none of them": {
        "compile": False,
        "precision": "float64",
        "scheme": PAPERS_ESTIMATOR,
        "optimiser": ADAM_FOR_Q,
    },
}

#: whose steps are timed as they are in the paper's size
VARIANTS = ("mnist/rbf", "mnist/rotation", "mnist/affine", "mnist/local")

#: trainings at a time, under CUDA's Multi-Process Service
LANES = (1, 2, 4, 8, 12)

#: the GPU's work by the names of its kernels; the rest is arithmetic on each number, and moving them
KINDS = {
    "products, float64": r"f64f64|d884gemm|dgemm",
    "products, three passes of bfloat16": r"nvjet|bf16",
    "products, float32": r"f32f32|sgemm|gemmSN|splitK",
}
REST, WAITING = "arithmetic by element, and copies", "waiting"


def specification(changes: dict[str, Any], batch: int | None, inducing: int, run: str = "mnist/affine") -> Any:
    """
    :param batch: batch size; the run's if None.
    :return: the specification of a run in the paper's size, with changes.
    """
    from orbitgp_paper.config import Run, load, plain

    experiment, variant = run.split("/")
    spec = load("paper").spec(Run(experiment, variant, 0))
    optimiser = plain(spec.optimiser) | {"batch": batch or spec.optimiser.batch}
    if adam := changes.get("optimiser"):
        optimiser |= adam | {"rates": optimiser["rates"] | adam["rates"], "natural": None}
    return spec.changed(**changes | {"inducing": {"count": inducing}, "optimiser": optimiser})


def build(spec: Any) -> Any:
    """
    :return: an optimiser around the model, with all images on the device; inducing points are the first of these.
    """
    import numpy as np

    from orbitgp.optimizers.steps import Optimizer
    from orbitgp_paper.experiments.build import build_model, recipe, targets

    data = _images(spec.dataset)
    Z = data.train.take(range(spec.inducing.count)).inputs()
    model = build_model(spec, data, Z)
    return Optimizer(model, (data.train.inputs(np.float32), targets(spec, data, data.train)), recipe(spec), 0)


@lru_cache
def _images(dataset: Any) -> Any:
    from orbitgp_paper.experiments.images import make_dataset

    return make_dataset(dataset)


def milliseconds(run: Callable[[], Any], repeats: int) -> float:
    """The median time of a call, after a first one that compiles."""
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
    :return: operations per second of products in each precision, and bytes per second of a sum over an array.
    """
    import tensorflow as tf

    tf.config.experimental.enable_tensor_float_32_execution(False)  # models have it off: their products are whole
    found = {}
    for dtype in (tf.float32, tf.float64, tf.bfloat16):
        a = tf.cast(tf.random.stateless_uniform([size, size], [0, 1]), dtype)
        product = tf.function(lambda a=a: tf.matmul(a, a)[0, 0], autograph=False)
        found[f"{dtype.name} product"] = 2 * size**3 / milliseconds(product, repeats) * 1e3
    a = tf.random.stateless_uniform([size * size * 16], [0, 1])  # large, so that the way to the host is a small part
    total = tf.function(lambda: tf.reduce_sum(a), autograph=False)
    found["memory"] = 4 * size**2 * 16 / milliseconds(total, repeats) * 1e3
    return found


def parts(optimiser: Any, steps: int = 20) -> dict[str, float]:
    """
    :return: milliseconds of a step that the GPU spends on each kind of work, and waiting. Without a GPU, waiting only.
    """
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    taken = dict.fromkeys((*KINDS, REST), 0.0)
    whole = step_ms(optimiser, repeats=5)
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        optimiser.advance(tf.constant(steps))[0].numpy()
        tf.profiler.experimental.stop()
        for file in Path(folder).rglob("*.xplane.pb"):
            for plane in xplane_pb2.XSpace.FromString(file.read_bytes()).planes:
                streams = [line for line in plane.lines if "GPU" in plane.name and "Stream" in line.name]
                for event in (event for line in streams for event in line.events):
                    taken[kind_of(plane.event_metadata[event.metadata_id].name)] += 1e-9 * event.duration_ps / steps
    return taken | {WAITING: whole - sum(taken.values())}


def kind_of(kernel: str) -> str:
    """
    :param kernel: its name, as the profiler has it.
    """
    return next((kind for kind, names in KINDS.items() if re.search(names, kernel)), REST)


def floors(spec: Any, ceiling: dict[str, float], pixels: int = 784) -> dict[str, float]:
    """
    :return: milliseconds that each kind of work needs at least.
    """
    N, M = spec.optimiser.batch, spec.inducing.count
    groups, S = spec.scheme.groups, spec.scheme.groups * spec.scheme.size
    # W k_uf, its outer products, their derivative, and those by W and by k_uf; one step of Newton's method for W,
    # its derivative, q's covariance, and the steps of Λ and C
    double = 10 * M**2 * N * groups + 2 * M**2 * N + (6 + 6 + 2 + 16) * M**3
    between = 3 * 2 * N * S * pixels * M  # draws with Z, and the derivatives by either
    among = 2 * 2 * N * S**2 * pixels  # draws with each other, and the derivative
    moved = 4 * N * S * pixels * 4 + 2 * N * groups * M * 8  # draws: written and read, forward and backward; k_fu
    return {
        "products, float64": 1e3 * double / ceiling["float64 product"],
        "products, three passes of bfloat16": 1e3 * 3 * between / ceiling["bfloat16 product"],
        "products, float32": 1e3 * among / ceiling["float32 product"],
        REST: 1e3 * moved / ceiling["memory"],
        WAITING: 0.0,
    }


def step_ms(optimiser: Any, repeats: int) -> float:
    """Milliseconds of a step, in ten that follow each other without reading results."""
    import tensorflow as tf

    return milliseconds(lambda: optimiser.advance(tf.constant(10)), repeats) / 10


def measure_parts(given: argparse.Namespace) -> list[Row]:
    """Ceilings, and each part of a step beside its floor."""
    ceiling = ceilings(given.side, given.repeats)
    spec = specification({}, given.batch, given.inducing)
    least = floors(spec, ceiling)
    return [{"table": "ceiling", "name": name, "value": value} for name, value in ceiling.items()] + [
        {"table": "part", "name": name, "value": value, "floor": least[name]}
        for name, value in parts(build(spec)).items()
    ]


def measure_tricks(given: argparse.Namespace) -> list[Row]:
    """Time of a step without one trick at a time."""
    specs = {name: specification(changes, given.batch, given.inducing) for name, changes in TRICKS.items()}
    return [
        {"table": "trick", "name": name, "value": step_ms(build(spec), given.repeats)} for name, spec in specs.items()
    ]


def measure_variants(given: argparse.Namespace) -> list[Row]:
    """A step of each model of Fig. 4, as it is in the paper's size."""
    specs = {run: specification({}, given.variant_batch, given.inducing, run) for run in VARIANTS}
    return [
        {"table": "variant", "name": run, "value": step_ms(build(spec), given.repeats)} for run, spec in specs.items()
    ]


def measure_lanes(given: argparse.Namespace) -> list[Row]:
    """Steps a second of all trainings together, each in a process of its own."""
    from orbitgp_paper.machine import multi_process_service

    with multi_process_service() as shared, trainings(given, max(LANES)) as workers:
        return [
            {"table": "lanes", "name": f"{lanes}{', MPS' * shared}", "value": together(workers[:lanes])}
            for lanes in LANES
        ]


def measure_targets(given: argparse.Namespace) -> list[Row]:
    """When the runs that the repository has were first as good as the paper's mean."""
    import pandas as pd

    from orbitgp_paper.config import read_yaml

    rows = []
    values = read_yaml(HERE.parent / "config" / "paper_values.yaml")
    for paper in (value for value in values if value["name"].endswith("/error")):
        variant = paper["name"].removesuffix("/error")
        for run in sorted((given.runs / variant).glob("seed*")):
            course = pd.read_csv(run / "metrics.csv").merge(pd.read_csv(run / "timing.csv"))
            reached = course[course.test_error <= paper["value"]].head(1)
            name = f"{variant}, {run.name}"
            found = {"value": reached.step.max(), "seconds": reached.wall_s.max(), "target": paper["value"]}
            device = json.loads((run / "provenance.json").read_text())["device"]
            rows.append({"table": "target", "name": name, "device": device, **found})
    return rows


@contextlib.contextmanager
def trainings(given: argparse.Namespace, lanes: int) -> Iterator[list[subprocess.Popen[str]]]:
    """So many of MNIST's affine variant, each in a process of its own, that wait to be timed."""
    command = [sys.executable, str(Path(__file__).resolve()), "--only", "worker", "--inducing", str(given.inducing)]
    command += ["--batch", str(given.batch), "--seconds", str(given.seconds)]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(lanes)
    ]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def together(workers: list[subprocess.Popen[str]]) -> float:
    """
    :return: steps a second of these trainings, all of which are warm before the first is timed; NaN if one fails.
    """
    rates = []
    for order in ("warm", "go"):  # each answers a line with a line
        for worker in workers:
            assert worker.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                worker.stdin.write(f"{order}\n")
                worker.stdin.flush()
        rates = [float(_line_from(worker) or "nan") for worker in workers]
    return sum(rates)


def _line_from(worker: subprocess.Popen[str]) -> str:
    """The worker's next line; empty if it ended without one."""
    assert worker.stdout is not None
    return worker.stdout.readline()


def work(given: argparse.Namespace) -> None:
    """One of several trainings. To "warm" it answers 0 once it is; to "go", how many steps a second it made."""
    import tensorflow as tf

    optimiser, few = build(specification({}, given.batch, given.inducing)), tf.constant(10)
    optimiser.advance(few)[0].numpy()
    for order in sys.stdin:
        done, start, rate = 0, time.perf_counter(), 0.0
        while order.strip() == "go" and time.perf_counter() < start + given.seconds:
            optimiser.advance(few)[0].numpy()
            done += 10
            rate = done / (time.perf_counter() - start)
        sys.stdout.write(f"{rate}\n")
        sys.stdout.flush()


#: lanes first: they should find a GPU that this process has not touched
TABLES: dict[str, Callable[[argparse.Namespace], list[Row]]] = {
    "lanes": measure_lanes,
    "parts": measure_parts,
    "tricks": measure_tricks,
    "variants": measure_variants,
    "targets": measure_targets,
}


def write(frame: Any, folder: Path) -> None:
    """gpu.csv with everything, gpu.md to read, gpu.png to see."""
    frame.to_csv(folder / "gpu.csv", index=False, float_format="%.6g")
    by_table = dict(list(frame.groupby("table", sort=False)))
    lines = ["# A training step in the paper's size", ""]
    frame = frame.fillna({"commit": "an earlier commit"})
    for (command, device, commit), rows in frame.groupby(["command", "device", "commit"], sort=False):
        lines.append(f"- {', '.join(rows.table.drop_duplicates())}: `{command}` on {device}, {commit}")
    lines += ["", "Milliseconds are those of one training that has the GPU to itself.", ""]
    for name, show in SHOWN.items():
        if name in by_table:
            lines += [*show(by_table[name]), ""]
    if {"target", "variant"} <= set(by_table):
        lines += _shown_targets(by_table["target"], by_table["variant"])
    if {"part", "trick"} <= set(by_table):
        draw(frame, folder / "gpu.png")
        lines[2:2] = ["![Kinds of work in a step beside their floors, and the step without each trick](gpu.png)", ""]
    (folder / "gpu.md").write_text("\n".join(lines).rstrip() + "\n")


def draw(frame: Any, file: Path) -> None:
    """The kinds of work beside their floors, and the step without each trick."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    parts, tricks = (frame[frame.table == table] for table in ("part", "trick"))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
    places = range(len(parts))
    left.barh([place - 0.2 for place in places], parts.value, height=0.4, label="measured", color="#2a6f97")
    left.barh([place + 0.2 for place in places], parts.floor, height=0.4, label="floor", color="#a9a9a9")
    left.set_yticks(places, parts.name)
    left.set_xlabel("ms of a step, MNIST affine")
    left.legend(frameon=False)
    right.barh(tricks.name, tricks.value, height=0.6, color="#2a6f97")
    right.set_xlabel("ms of a step")
    for axes in (left, right):
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def _shown_ceilings(rows: Any) -> list[str]:
    units = [f"{row.value / 1e12:.3g} {'TB/s' if row.name == 'memory' else 'TFLOP/s'}" for row in rows.itertuples()]
    return _table(("ceiling", "measured"), zip(rows.name, units, strict=True))


def _shown_parts(rows: Any) -> list[str]:
    cells = [(row.name, f"{row.value:.2f}", f"{row.floor:.2f}") for row in rows.itertuples()]
    return _table(("a step of MNIST, affine", "ms", "floor, ms"), [*cells, _sums(rows)])


def _sums(rows: Any) -> tuple[str, str, str]:
    return "the whole", f"{rows.value.sum():.2f}", f"{rows.floor.sum():.2f}"


def _shown_tricks(rows: Any) -> list[str]:
    whole = rows.value.iloc[0]
    cells = [(row.name, f"{row.value:.2f}", f"{row.value / whole:.2f}") for row in rows.itertuples()]
    return _table(("step, MNIST, affine", "ms", "against all tricks"), cells)


def _shown_variants(rows: Any) -> list[str]:
    return _table(("step of", "ms"), [(row.name, f"{row.value:.2f}") for row in rows.itertuples()])


def _shown_lanes(rows: Any) -> list[str]:
    alone = rows.value.iloc[0]
    cells = [(row.name, f"{row.value:.0f}", f"{row.value / alone:.2f}") for row in rows.itertuples()]
    return _table(("trainings at once, MNIST, affine", "steps a second, all together", "against one"), cells)


def _shown_targets(rows: Any, variants: Any) -> list[str]:
    """Steps are those of the runs; alone they would have taken what a step alone takes."""
    alone = dict(zip(variants.name, variants.value / 1e3, strict=True))
    cells = []
    for row in rows.itertuples():
        if row.value != row.value:  # no number
            cells.append((row.name, f"{row.target} %", "not reached", "", ""))
        else:
            seconds = row.value * alone[row.name.split(",")[0]]
            cells.append((row.name, f"{row.target} %", f"{row.value:.0f}", f"{seconds:.0f}", f"{row.seconds:.0f}"))
    head = ("run", "the paper's error", "steps to it", "s, at the ms above", "s, as it was run, beside others")
    return _table(head, cells)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]


SHOWN: dict[str, Callable[[Any], list[str]]] = {
    "ceiling": _shown_ceilings,
    "part": _shown_parts,
    "trick": _shown_tricks,
    "variant": _shown_variants,
    "lanes": _shown_lanes,
}


def measured(given: argparse.Namespace, command: str) -> Any:
    """
    :return: a frame with a row for each number: those asked for, and those that the folder's gpu.csv has besides.
    """
    import pandas as pd

    found = pd.DataFrame([row for name, measure in TABLES.items() if name in given.only for row in measure(given)])
    from orbitgp.fitting.devices import describe

    found = found.assign(command=command, commit=_commit(HERE))
    found["device"] = found["device"].fillna(describe()) if "device" in found else describe()
    earlier = given.folder / "gpu.csv"
    if earlier.exists():
        others = pd.read_csv(earlier)
        kept = others.table.isin([*SHOWN, "target"]) & ~others.table.isin(found.table)
        found = pd.concat([others[kept], found])
    return found


def _commit(folder: Path) -> str:
    """The commit's short name, with a plus where library or settings differ from it; empty without a repository."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/src", ":/config")
    return git("rev-parse", "--short", "HEAD") + "+" * bool(changed)


def main() -> None:
    """Reads the arguments and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[*TABLES, "worker"], default=[*TABLES], help="which tables")
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--variant-batch", type=int, help="for every experiment, instead of its own")
    parser.add_argument("--inducing", type=int, default=750)
    parser.add_argument("--side", type=int, default=8192, help="of the matrices that ceilings are measured with")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=8.0, help="that trainings side by side are timed for")
    parser.add_argument("--runs", type=Path, default=HERE.parent / "results" / "paper" / "runs", help="for targets")
    parser.add_argument("--folder", type=Path, default=HERE, help="where gpu.csv and gpu.md go")
    given = parser.parse_args()
    if given.only == ["worker"]:
        work(given)
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    write(measured(given, typed("gpu", sys.argv[1:])), given.folder)
    sys.stdout.write((given.folder / "gpu.md").read_text())


if __name__ == "__main__":
    main()
