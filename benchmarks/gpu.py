"""
A training step in the paper's size, part by part, against what the machine could do; what each trick is worth; what a
step of each experiment takes; how many trainings a GPU should have at once; and an earlier commit beside this one.

    python benchmarks/gpu.py            # on a GPU, ten minutes; writes benchmarks/gpu.csv and gpu.md
    python benchmarks/gpu.py --only targets    # one table, here from results/paper; the others stay as they are
    git worktree add ../earlier 6f4a543 && python benchmarks/gpu.py --only earlier --earlier ../earlier

Ceilings (products, memory) are measured in the same run. A part's floor is what its operations and its bytes would
take at these ceilings, whichever is longer; bytes count what must be read and written once if nothing is kept in
between. Factorisations have no floor here: their time is that of a chain of small operations.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

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
VARIANTS = (
    "mnist/rbf",
    "mnist/rotation",
    "mnist/affine",
    "mnist/local",
    "rotated/rotation",
    "rotated/affine_parts",
    "rotated/rotation_plain",
    "parity/rotation_90_from_20",
)

#: whose steps an earlier commit is compared by, and how many trainings at a time
COMPARED, COMPARED_LANES = ("parity/rotation_90_from_20", "mnist/affine"), 6

#: trainings at a time, and whether CUDA's Multi-Process Service lets their operations run side by side
LANES = ((1, False), (3, False), (3, True), (6, True))


def specification(changes: dict[str, Any], batch: int | None, inducing: int, run: str = "mnist/affine") -> Any:
    """
    :param batch: None for that of the run.
    :return: of a run in the paper's size, with changes.
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
    :return: operations per second of products in either precision, and bytes per second of a sum over an array.
    """
    import tensorflow as tf

    tf.config.experimental.enable_tensor_float_32_execution(False)  # models have it off: their products are whole
    found = {}
    for dtype in (tf.float32, tf.float64):
        a = tf.random.stateless_uniform([size, size], [0, 1], dtype=dtype)
        product = tf.function(lambda a=a: tf.matmul(a, a)[0, 0], autograph=False)
        found[f"{dtype.name} product"] = 2 * size**3 / milliseconds(product, repeats) * 1e3
    a = tf.random.stateless_uniform([size * size * 16], [0, 1])  # large, so that the way to the host is a small part
    total = tf.function(lambda: tf.reduce_sum(a), autograph=False)
    found["memory"] = 4 * size**2 * 16 / milliseconds(total, repeats) * 1e3
    return found


def parts(optimiser: Any, repeats: int) -> dict[str, float]:
    """
    :return: milliseconds of each part of a step: differences of stages, each of which contains the one before.
    """
    import tensorflow as tf

    model = optimiser._model
    seed = tf.constant([0, 1], tf.int64)
    batch = optimiser._batch(optimiser._batches.draw(seed))
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

    stages = {  # draws are compiled into one loop with the kernel, so that they cannot be timed apart from it
        "draws and kernel": lambda: sums(model._training_averages(batch[0], model.scheme, seed)),
        "solves": lambda: sums(quadratic()),
        "backward": lambda: sums(gradients()),
    }
    taken = {name: milliseconds(tf.function(stage, autograph=False), repeats) for name, stage in stages.items()}
    taken["q and updates"] = milliseconds(lambda: optimiser.advance(few), repeats) / inner
    names = list(taken)
    return {name: taken[name] - (taken[names[i - 1]] if i else 0.0) for i, name in enumerate(names)}


def floors(spec: Any, ceiling: dict[str, float], pixels: int = 784, outputs: int = 10) -> dict[str, float]:
    """
    :return: milliseconds that each part needs at least.
    """
    N, M = spec.optimiser.batch, spec.inducing.count
    groups, size = spec.scheme.groups, spec.scheme.size
    S, width = groups * size, 4 if spec.precision == "mixed" else 8
    product = ceiling["float32 product" if width == 4 else "float64 product"]
    draws, kernel = N * S * pixels * width, N * groups * M * 8
    between = 2 * N * S * pixels * M / product
    columns = N * groups
    solves = (M**2 * columns + 2 * 2 * M**2 * columns + 2 * M * columns * outputs) / ceiling["float64 product"]
    return {
        "draws and kernel": 1e3 * max(between, (2 * draws + kernel) / ceiling["memory"]),
        "solves": 1e3 * max(solves, kernel / ceiling["memory"]),
        "backward": 1e3 * (2 * between + 2 * solves),
        "q and updates": 1e3 * (2 * 3 * M**3) / ceiling["float64 product"],
    }


def step_ms(optimiser: Any, repeats: int) -> float:
    """Of steps that follow each other without a look at them."""
    import tensorflow as tf

    return milliseconds(lambda: optimiser.advance(tf.constant(10)), repeats) / 10


def measure_parts(given: argparse.Namespace) -> list[Row]:
    """Ceilings, and each part of a step beside its floor."""
    ceiling = ceilings(given.side, given.repeats)
    spec = specification({}, given.batch, given.inducing)
    least = floors(spec, ceiling)
    return [{"table": "ceiling", "name": name, "value": value} for name, value in ceiling.items()] + [
        {"table": "part", "name": name, "value": value, "floor": least[name]}
        for name, value in parts(build(spec), given.repeats).items()
    ]


def measure_tricks(given: argparse.Namespace) -> list[Row]:
    """A step without one of them at a time."""
    specs = {name: specification(changes, given.batch, given.inducing) for name, changes in TRICKS.items()}
    return [
        {"table": "trick", "name": name, "value": step_ms(build(spec), given.repeats)} for name, spec in specs.items()
    ]


def measure_variants(given: argparse.Namespace) -> list[Row]:
    """A step of each experiment, as it is in the paper's size."""
    specs = {run: specification({}, given.variant_batch, given.inducing, run) for run in VARIANTS}
    return [
        {"table": "variant", "name": run, "value": step_ms(build(spec), given.repeats)} for run, spec in specs.items()
    ]


def measure_lanes(given: argparse.Namespace) -> list[Row]:
    """Steps a second of all trainings together, each in a process of its own."""
    from orbitgp_paper.machine import multi_process_service

    rows = []
    for lanes, shared in LANES:
        name = f"{lanes} training{'s' * (lanes > 1)}{', MPS' * shared}"
        with multi_process_service() if shared else contextlib.nullcontext(True) as available:
            rate = float("nan")
            if available:
                with trainings(given, lanes) as workers:
                    rate = together(workers)
        rows.append({"table": "lanes", "name": name, "value": rate})
    return rows


def measure_earlier(given: argparse.Namespace) -> list[Row]:
    """Steps a second of another checkout and of this one, in turns, alone and several at once."""
    from orbitgp_paper.machine import multi_process_service

    rows, commits = [], " → ".join(map(_commit, (given.earlier, HERE)))
    with multi_process_service() as shared:
        for run in COMPARED:
            with (
                trainings(given, COMPARED_LANES, run, given.earlier) as theirs,
                trainings(given, COMPARED_LANES, run) as ours,
            ):
                for lanes in (1, COMPARED_LANES):
                    rates = [(together(theirs[:lanes]), together(ours[:lanes])) for _ in range(2)]
                    earlier, now = (sum(both) / len(rates) for both in zip(*rates, strict=True))
                    name = f"{run}, {lanes} at once{', MPS' * shared}" if lanes > 1 else f"{run}, alone"
                    found = {"value": now, "earlier": earlier, "commits": commits}
                    rows.append({"table": "earlier", "name": name, **found})
    return rows


def _commit(folder: Path) -> str:
    """Its short name, with a plus where library or settings differ from it; empty where there is no repository."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/src", ":/config")
    return git("rev-parse", "--short", "HEAD") + "+" * bool(changed)


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
def trainings(
    given: argparse.Namespace, lanes: int, run: str = "mnist/affine", checkout: Path | None = None
) -> Iterator[list[subprocess.Popen[str]]]:
    """
    So many, each in a process of its own, that wait to be timed.

    :param checkout: whose library and settings are used; those of this file if None.
    """
    size = ["--inducing", str(given.inducing), "--seconds", str(given.seconds)]
    if given.variant_batch is not None:
        size += ["--variant-batch", str(given.variant_batch)]
    command = [sys.executable, str(Path(__file__).resolve()), "--only", "worker", "--run", run, *size]
    root = HERE.parent if checkout is None else checkout.resolve()
    places = [str(root / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    workers = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))},
        )
        for _ in range(lanes)
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
    """Empty if it ended without one."""
    assert worker.stdout is not None
    return worker.stdout.readline()


def work(given: argparse.Namespace) -> None:
    """One of several trainings. To "warm" it answers 0 once it is; to "go", how many steps a second it made."""
    import tensorflow as tf

    optimiser, few = build(specification({}, given.variant_batch, given.inducing, given.run)), tf.constant(10)
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
    "earlier": measure_earlier,
    "parts": measure_parts,
    "tricks": measure_tricks,
    "variants": measure_variants,
    "targets": measure_targets,
}


def write(frame: Any, folder: Path) -> None:
    """gpu.csv with everything, gpu.md to read."""
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
    (folder / "gpu.md").write_text("\n".join(lines).rstrip() + "\n")


def _shown_ceilings(rows: Any) -> list[str]:
    units = [f"{row.value / 1e12:.3g} {'TB/s' if row.name == 'memory' else 'TFLOP/s'}" for row in rows.itertuples()]
    return _table(("ceiling", "measured"), zip(rows.name, units, strict=True))


def _shown_parts(rows: Any) -> list[str]:
    cells = [(row.name, f"{row.value:.2f}", f"{row.floor:.2f}") for row in rows.itertuples()]
    return _table(("part of a step, MNIST, affine", "ms", "floor, ms"), [*cells, _sums(rows)])


def _sums(rows: Any) -> tuple[str, str, str]:
    return "the whole", f"{rows.value.sum():.2f}", f"{rows.floor.sum():.2f}"


def _shown_tricks(rows: Any) -> list[str]:
    whole = rows.value.iloc[0]
    cells = [(row.name, f"{row.value:.2f}", f"{row.value / whole:.2f}") for row in rows.itertuples()]
    return _table(("step, MNIST, affine", "ms", "against all tricks"), cells)


def _shown_variants(rows: Any) -> list[str]:
    return _table(("step of", "ms"), [(row.name, f"{row.value:.2f}") for row in rows.itertuples()])


def _shown_lanes(rows: Any) -> list[str]:
    alone, known = rows.value.iloc[0], rows.fillna({"value": 0})
    cells = [(row.name, f"{row.value:.0f}", f"{row.value / alone:.2f}") for row in known.itertuples()]
    head = ("at once, MNIST, affine", "steps a second, all together", "against one")
    return _table(head, [cell if float(cell[1]) else (cell[0], "not to be had here", "") for cell in cells])


def _shown_earlier(rows: Any) -> list[str]:
    earlier, now = rows.commits.iloc[0].split(" → ")
    cells = [
        (row.name, f"{row.earlier:.0f}", f"{row.value:.0f}", f"{row.value / row.earlier:.2f}")
        for row in rows.itertuples()
    ]
    return _table(("steps a second, all together", earlier, now, "ratio"), cells)


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
    "earlier": _shown_earlier,
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
        found = pd.concat([others[~others.table.isin(found.table)], found])
    return found


def _command(arguments: list[str]) -> str:
    """What was typed, without where results went, which decides none of them."""
    kept = [word for i, word in enumerate(arguments) if "--folder" not in (word, *arguments[max(i - 1, 0) : i])]
    return " ".join(["python benchmarks/gpu.py", *kept])


def main() -> None:
    """Reads the arguments and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = [name for name in TABLES if name != "earlier"]
    parser.add_argument("--only", nargs="+", choices=[*TABLES, "worker"], default=usual, help="which tables")
    parser.add_argument("--earlier", type=Path, help="a checkout of another commit, for the table of that name")
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--variant-batch", type=int, help="for every experiment, instead of its own")
    parser.add_argument("--inducing", type=int, default=750)
    parser.add_argument("--side", type=int, default=8192, help="of the matrices that ceilings are measured with")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=8.0, help="that trainings side by side are timed for")
    parser.add_argument("--run", default="mnist/affine", help="of a worker")
    parser.add_argument("--runs", type=Path, default=HERE.parent / "results" / "paper" / "runs", help="for targets")
    parser.add_argument("--folder", type=Path, default=HERE, help="where gpu.csv and gpu.md go")
    given = parser.parse_args()
    if "earlier" in given.only and (given.earlier is None or not (given.earlier / "src" / "orbitgp").is_dir()):
        parser.error(f"--earlier must name a checkout of this project, got {given.earlier}")
    if given.only == ["worker"]:
        work(given)
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    write(measured(given, _command(sys.argv[1:])), given.folder)
    sys.stdout.write((given.folder / "gpu.md").read_text())


if __name__ == "__main__":
    main()
