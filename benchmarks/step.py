"""
Time and peak memory of a full training step (forward, backward, update), where the time goes, and how it grows.

    python benchmarks/step.py                  # all of it, written to benchmarks/step.csv, step.md and step.png
    python benchmarks/step.py --only reference # the rows that are compared with the paper's estimator

Each row runs in a process of its own, since peak memory belongs to a process. The machine's speed drifts, so the
rows of one comparison are measured in turns and the median of all turns is kept: only ratios within one run mean
anything.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
OUTPUTS = 10


@dataclass(frozen=True)
class Setting:
    """One row: what is trained, and how."""

    orbit: str = "affine"
    estimator: str = "grouped"
    covariance: str = "shared"
    precision: str = "float64"
    batch: int = 200
    samples: int = 32
    inducing: int = 750
    side: int = 28
    block: int | None = None


PAPER = Setting(estimator="paper", covariance="per_output")
COMPARISONS = {
    "reference": [
        PAPER,
        replace(PAPER, covariance="shared"),
        Setting(covariance="per_output"),
        Setting(),
        Setting(block=20),
        Setting(precision="mixed"),
        Setting(precision="mixed", block=20),
    ],
    "batch": [replace(Setting(), batch=batch) for batch in (50, 100, 200, 400)],
    "samples": [replace(Setting(), samples=samples) for samples in (8, 16, 32, 64)],
    "inducing": [replace(Setting(), inducing=inducing) for inducing in (188, 375, 750, 1500)],
    "side": [replace(Setting(), side=side) for side in (14, 28, 56)],
    "orbit": [
        replace(Setting(precision="mixed"), orbit=orbit)
        for orbit in ("identity", "rotation", "affine", "local", "composed")
    ],
}


def build(setting: Setting) -> tuple[Any, Any, Any]:
    """
    :return: the model, a batch of MNIST images, and their targets.
    """
    import gpflow

    from orbitgp import orbits
    from orbitgp.datasets import mnist, one_hot
    from orbitgp.inducing import BasePoints
    from orbitgp.kernels import Invariant
    from orbitgp.models import InvariantSVGP
    from orbitgp.schemes import FullOrbit, Groups, paper_scheme

    shape = (setting.side, setting.side)
    made = {
        "identity": orbits.Identity,
        "rotation": lambda: orbits.Rotation(shape, 20.0),
        "affine": lambda: orbits.Affine(shape, spread=0.2),
        "local": lambda: orbits.LocalDeformation(shape),
        "composed": lambda: orbits.Composed([orbits.Rotation(shape, 20.0), orbits.LocalDeformation(shape)]),
    }[setting.orbit]()
    kernel = Invariant(gpflow.kernels.SquaredExponential(variance=0.01, lengthscales=6.0), made)
    schemes = {"paper": paper_scheme(setting.samples), "grouped": Groups(2, setting.samples // 2)}
    train = mnist().train
    X = resized(train.take(range(setting.inducing + setting.batch)).inputs(), setting.side)
    model = InvariantSVGP(
        kernel,
        gpflow.likelihoods.Gaussian(0.02),
        BasePoints(X[: setting.inducing]),
        num_latent_gps=OUTPUTS,
        num_data=len(train),
        scheme=FullOrbit() if setting.orbit == "identity" else schemes[setting.estimator],
        covariance=setting.covariance,
        precision=setting.precision,
        block=setting.block,
    )
    labels = train.labels[setting.inducing : setting.inducing + setting.batch]
    return model, X[setting.inducing :], one_hot(labels, OUTPUTS)


def resized(X: Any, side: int) -> Any:
    """MNIST's images [N, 784] with fewer pixels or with the same ones repeated, [N, side²]."""
    images = X.reshape(-1, 28, 28)
    if side < 28:
        return images[:, :: 28 // side, :: 28 // side].reshape(len(X), -1)
    return images.repeat(side // 28, axis=1).repeat(side // 28, axis=2).reshape(len(X), -1)


def products(setting: Setting) -> float:
    """Multiplications in the matrix products and factorisations of a step of the grouped estimator, both ways."""
    N, S, M, D, G = setting.batch, setting.samples, setting.inducing, setting.side**2, 2
    draws = 3 * N * S * M * D + 3 * N * (S // G) ** 2 * D  # with Z, and across the groups
    return draws + 8 * N * G * M**2 + 2 * M**2 * D + 5 * M**3  # solves and squares; k_uu; its factor


def stages(model: Any, X: Any, Y: Any) -> dict[str, Callable[[], Any]]:
    """Each stage contains the one before, so that differences say where the time goes."""
    import tensorflow as tf
    import tf_keras

    X, Y = tf.constant(X, model.compute_dtype), tf.constant(Y)
    optimiser = tf_keras.optimizers.Adam(1e-3)
    variables = model.trainable_variables
    optimiser.build(variables)
    counter = tf.Variable(0, dtype=tf.int64)

    def seed() -> tf.Tensor:
        return tf.stack([tf.constant(0, tf.int64), counter.assign_add(1)])

    @tf.function
    def draw() -> tf.Tensor:
        return model.scheme.draw(model.kernel.orbit, X, seed())

    @tf.function
    def draw_and_kernel() -> tf.Tensor:
        return model._orbit_averages(X, model.scheme, seed())

    @tf.function
    def forward() -> tf.Tensor:
        return model.elbo((X, Y), seed())

    def gradients() -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            loss = -model.elbo((X, Y), seed())
        return loss, tape.gradient(loss, variables)

    @tf.function
    def forward_and_backward() -> Any:
        return gradients()

    @tf.function
    def step() -> tf.Tensor:
        loss, steps = gradients()
        optimiser.apply_gradients(zip(steps, variables, strict=True))
        return loss

    return {
        "draw": draw,
        "draw_and_kernel": draw_and_kernel,
        "forward": forward,
        "forward_and_backward": forward_and_backward,
        "step": step,
    }


def forget_peak_memory() -> None:
    """Starts the process's high-water mark anew: loading data and libraries had a peak of its own."""
    Path("/proc/self/clear_refs").write_text("5")


def memory_mb(mark: str) -> float:
    """:param mark: ``VmRSS``, what the process holds, or ``VmHWM``, the most it held since the mark was reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{mark}:"))


def measure(setting: Setting, repeats: int, parts: bool) -> dict[str, float]:
    """
    :param parts: whether to time the stages too; these would add to the peak memory, so that is read before.
    :return: milliseconds of the median step and of each stage, and MiB above what stood before the first step.
    """
    import numpy as np

    model, X, Y = build(setting)
    runs = stages(model, X, Y)
    forget_peak_memory()
    before = memory_mb("VmRSS")

    def milliseconds(stage: str) -> float:
        runs[stage]()  # traces
        taken = []
        for _ in range(repeats):
            start = time.perf_counter()
            result = runs[stage]()
            np.asarray(result[0] if isinstance(result, tuple) else result)  # waits for the device
            taken.append(1e3 * (time.perf_counter() - start))
        return float(np.median(taken))

    found = {"step_ms": milliseconds("step")}
    found["peak_mb"] = memory_mb("VmHWM") - before
    if parts:
        found |= {f"{stage}_ms": milliseconds(stage) for stage in runs if stage != "step"}
    return found


def in_own_process(setting: Setting, repeats: int, parts: bool) -> dict[str, float]:
    """:func:`measure` in a fresh interpreter."""
    request = json.dumps({"setting": asdict(setting), "repeats": repeats, "parts": parts})
    done = subprocess.run(
        [sys.executable, __file__, "--row", request],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(names: list[str], turns: int, repeats: int) -> Any:
    """
    :return: a frame with a row for each setting of each comparison.
    """
    import pandas as pd

    rows = []
    for name in names:
        settings = COMPARISONS[name]
        measured: list[list[dict[str, float]]] = [[] for _ in settings]
        for _ in range(turns):
            for setting, results in zip(settings, measured, strict=True):
                results.append(in_own_process(setting, repeats, parts=True))
        for setting, results in zip(settings, measured, strict=True):
            medians = pd.DataFrame(results).median().to_dict()
            rows.append({"comparison": name} | asdict(setting) | medians)
    frame = pd.DataFrame(rows)
    first = frame.groupby("comparison")[["step_ms", "peak_mb"]].transform("first")
    frame["time_ratio"], frame["memory_ratio"] = (frame[c] / first[c] for c in ("step_ms", "peak_mb"))
    return frame


def exponents(frame: Any) -> list[tuple[str, str, str, str]]:
    """
    How a step's time grows when a number doubles: time ~ number^e, between each two settings that follow each other.

    :return: rows of the number, its values, the measured exponents, and those of :func:`products`.
    """
    import numpy as np

    rows = []
    for name in ("batch", "samples", "inducing", "side"):
        part = frame[frame.comparison == name]
        if len(part) < 2:
            continue
        values = part[name] ** 2 if name == "side" else part[name]
        counts = [products(setting) for setting in COMPARISONS[name]]
        growth = np.diff(np.log(values))
        cells = [[f"{e:.2f}" for e in np.diff(np.log(of)) / growth] for of in (part.step_ms, counts)]
        title = "pixels" if name == "side" else name
        rows.append((title, " → ".join(map(str, values)), ", ".join(cells[0]), ", ".join(cells[1])))
    return rows


def draw(frame: Any, file: Path) -> None:
    """The comparison with the paper's estimator, and how time grows."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2), width_ratios=(3, 2), layout="constrained")
    rows = frame[(frame.comparison == "reference") & frame.block.isna()]
    names = [f"{row.estimator}, {row.covariance.replace('_', ' ')}, {row.precision}" for row in rows.itertuples()]
    left.barh(names, rows.step_ms / 1e3, color="#2a6f97")
    left.invert_yaxis()
    left.set_xlabel("s a step, batch 200, 32 draws, 750 inducing points")
    for name, marker in (("batch", "o"), ("samples", "s"), ("inducing", "^"), ("side", "v")):
        part = frame[frame.comparison == name]
        values = part[name] ** 2 if name == "side" else part[name]
        title = "pixels" if name == "side" else name
        right.loglog(values / values.iloc[0], part.step_ms / part.step_ms.iloc[0], f"{marker}-", label=title)
    right.set_xlabel("times the smallest")
    right.set_ylabel("times its step")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def write(frame: Any, folder: Path, command: str) -> None:
    """step.csv with everything, step.md to read, step.png to see."""
    frame.round(3).to_csv(folder / "step.csv", index=False)
    stages_in_order = ["draw", "draw_and_kernel", "forward", "forward_and_backward", "step"]
    parts = frame[[f"{stage}_ms" for stage in stages_in_order]].diff(axis=1)
    parts.iloc[:, 0] = frame["draw_ms"]
    shares = parts.clip(lower=0).div(frame["step_ms"], axis=0) * 100
    shares.columns = ["draw %", "kernel %", "solves %", "backward %", "update %"]
    shown = frame[[*asdict(Setting()), "step_ms", "time_ratio", "peak_mb", "memory_ratio"]].join(
        shares.round(0).astype(int)
    )
    lines = [
        "# A training step",
        "",
        f"Forward, backward and Adam update; made by `{command}` on {os.cpu_count()} cores ({platform.machine()}).",
        "Ratios are to the first row of each table. `kernel` is the base kernel between draws and Z, averaged in",
        "groups; `solves` is everything else of the bound.",
    ]
    if set(COMPARISONS) <= set(frame.comparison):
        draw(frame, folder / "step.png")
        lines[2:2] = ["![A step against the paper's estimator, and how its time grows](step.png)", ""]
    if grown := exponents(frame):
        head = ["number", "values", "exponents of the time", "exponents of the products"]
        lines += ["", "## When a number doubles", "", markdown_table(head, [[*row] for row in grown], [False] * 4)]
    for name, rows in shown.groupby(frame["comparison"], sort=False):
        lines += ["", f"## {name}", "", _markdown(rows)]
    (folder / "step.md").write_text("\n".join(lines) + "\n")


def _markdown(frame: Any) -> str:
    def cell(value: Any) -> str:
        if isinstance(value, float):
            return "–" if value != value else f"{value:.2f}" if value < 10 else f"{value:.0f}"
        return str(value)

    rows = [[cell(value) for value in row] for row in frame.astype(object).values.tolist()]
    return markdown_table([*frame], rows, [False] * frame.shape[1]).rstrip()


def main() -> None:
    """Reads the arguments and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=COMPARISONS, default=list(COMPARISONS))
    parser.add_argument("--turns", type=int, default=2, help="how often each row is measured, in turns")
    parser.add_argument("--repeats", type=int, default=5, help="steps in a measurement")
    parser.add_argument("--folder", type=Path, default=HERE, help="where step.csv and step.md go")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        request = json.loads(arguments.row)
        found = measure(Setting(**request["setting"]), request["repeats"], request["parts"])
        sys.stdout.write(json.dumps(found))
        return
    frame = run(arguments.only, arguments.turns, arguments.repeats)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    write(frame, arguments.folder, " ".join(["python benchmarks/step.py", *sys.argv[1:]]))
    sys.stdout.write((arguments.folder / "step.md").read_text())


if __name__ == "__main__":
    main()
