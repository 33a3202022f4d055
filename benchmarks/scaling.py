"""
How does the cost grow when a number doubles? Exponents of the measured time, beside those that theory counts.

    python benchmarks/scaling.py    # minutes; writes benchmarks/scaling.csv, scaling.md and scaling.png

``step``: a whole training step, that of benchmarks/step.py, by images in a batch, draws, inducing points and pixels.
The theory counts the multiplications of its products and factorisations.

``kernels``: what the bound needs of the kernel, by the number S of draws. With inducing variables u = g(Z), as in the
paper, K_uu has no orbit in it, k_fu averages S values, and only k_ff has pairs of draws. With u = f(Z) all have pairs.

Times are those of the processors, summed over threads, so that what else runs on the machine does not count. All rows
are measured in turns, and the least of each counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import gpflow
import numpy as np
import pandas as pd
import step
import tensorflow as tf

from orbitgp import orbits
from orbitgp.datasets import mnist
from orbitgp.files import write_text
from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
SETTING = step.Setting(batch=100, samples=16, inducing=400)
VALUES = {"batch": (50, 100, 200, 400), "samples": (8, 16, 32, 64), "inducing": (200, 400, 800), "side": (14, 28, 56)}
NUMBERS = {"batch": "images in a batch", "samples": "draws", "inducing": "inducing points", "side": "pixels"}

Key = TypeVar("Key", bound=Hashable)

#: what the bound needs of the kernel, and the exponent of S in its cost
KERNELS = {
    "rotated draws": 1,
    "K_uu, u = g(Z)": 0,
    "k_fu, u = g(Z)": 1,
    "k_ff": 2,
    "K_uu, u = f(Z)": 2,
    "k_fu, u = f(Z)": 2,
}


def measured_steps(repeats: int) -> pd.DataFrame:
    """A row for each number and value: number, value, ms, and what :func:`step.products` counts."""
    changes: list[dict[str, Any]] = [{name: value} for name, values in VALUES.items() for value in values]
    settings = [(name, replace(SETTING, **change)) for change in changes for name in change]
    steps = {setting: step.stages(*step.build(setting))["step"] for _, setting in settings}
    fastest = in_turns(steps, repeats)
    rows = []
    for name, setting in settings:
        value = getattr(setting, name) ** (2 if name == "side" else 1)
        rows.append(("step", NUMBERS[name], value, fastest[setting], step.products(setting)))
    return pd.DataFrame(rows, columns=["part", "number", "value", "ms", "theory"])


def in_turns(calls: Mapping[Key, Callable[[], Any]], repeats: int) -> dict[Key, float]:
    """Milliseconds of the least of ``repeats`` calls of each, by the processors' clocks, after one that traces it."""
    fastest = dict.fromkeys(calls, np.inf)
    for turn in range(repeats + 1):
        for key, call in calls.items():
            start = time.process_time()
            np.asarray(call())  # waits for it
            if turn:
                fastest[key] = min(fastest[key], 1e3 * (time.process_time() - start))
    return fastest


def kernel_terms(images: np.ndarray, Z: np.ndarray, draws: int) -> dict[str, Callable[[], Any]]:
    """
    :param images: [N, D]
    :param Z: [M, D]
    :param draws: S.
    :return: each of ``KERNELS``, to be called.
    """
    orbit, base = orbits.Rotation((28, 28), 90.0), gpflow.kernels.SquaredExponential(lengthscales=6.0)
    X, Z = tf.constant(images), tf.constant(Z)
    X_a, Z_a = (orbit.sample(points, 1, draws, [0, 0], "iid")[:, 0] for points in (X, Z))  # [N, S, D], [M, S, D]
    return {
        "rotated draws": tf.function(lambda: orbit.sample(X, 1, draws, [0, 0], "iid")),
        "K_uu, u = g(Z)": tf.function(lambda: base(Z)),
        "k_fu, u = g(Z)": tf.function(lambda: tf.reduce_mean(base(X_a, Z), axis=1)),
        "k_ff": tf.function(lambda: tf.reduce_mean(base(X_a), axis=[1, 2])),
        "K_uu, u = f(Z)": tf.function(lambda: tf.reduce_mean(base(Z_a, Z_a), axis=[1, 3])),
        "k_fu, u = f(Z)": tf.function(lambda: tf.reduce_mean(base(X_a, Z_a), axis=[1, 3])),
    }


def measured_kernels(images: int, inducing: int, draws: list[int], repeats: int) -> pd.DataFrame:
    """A row for each term and number of draws; ``theory`` is S to the power that ``KERNELS`` has."""
    inputs = mnist().train.take(images + inducing).inputs()
    terms = {(name, S): call for S in draws for name, call in kernel_terms(inputs[:images], inputs[images:], S).items()}
    fastest = in_turns(terms, repeats)
    rows = [("kernels", name, S, ms, float(S) ** KERNELS[name]) for (name, S), ms in fastest.items()]
    return pd.DataFrame(rows, columns=["part", "number", "value", "ms", "theory"])


class Growth(NamedTuple):
    """How the time of something grows, between each two values that follow each other."""

    part: str
    number: str
    values: list[float]
    ms: list[float]
    measured: list[float]  #: exponents e of time ~ value^e
    theory: list[float]  #: those of what the theory counts


def exponents(frame: pd.DataFrame) -> list[Growth]:
    """One for each part and number, in the order of ``NUMBERS`` and ``KERNELS``."""
    found = []
    for number in (*NUMBERS.values(), *KERNELS):
        own = frame[frame["number"] == number].sort_values("value")
        if len(own) > 1:
            growth = np.diff(np.log(own["value"]))
            slopes = [(np.diff(np.log(own[column])) / growth).tolist() for column in ("ms", "theory")]
            found.append(Growth(str(own["part"].iloc[0]), number, own["value"].tolist(), own["ms"].tolist(), *slopes))
    return found


def report(frame: pd.DataFrame, command: str) -> str:
    """The two tables, after what the last doubling of the draws does."""
    rows = exponents(frame)
    last = {row.number: row.measured[-1] for row in rows if row.part == "kernels"}  # where overheads weigh least
    head = ["what grows", "values", "ms of processors", "exponents of the time", "of the theory"]
    tables = {}
    for part in ("step", "kernels"):
        own = [row for row in rows if row.part == part]
        cells = [
            [row.number, *map(_list, (row.values, row.ms, row.measured, row.theory), ("g", ".3g", ".2f", ".2f"))]
            for row in own
        ]
        tables[part] = markdown_table(head, cells, [False] * len(head))
    return (
        "# How the cost grows\n\n"
        f"In the number S of draws, k_fu grows with the exponent {last['k_fu, u = g(Z)']:.1f} and k_ff with "
        f"{last['k_ff']:.1f}.\n"
        f"Were the inducing variables values of f, k_fu would grow with {last['k_fu, u = f(Z)']:.1f} "
        f"and K_uu with {last['K_uu, u = f(Z)']:.1f}.\n\n"
        "![Time against what grows](scaling.png)\n\n"
        f"    {command}\n\n"
        "Where a value doubles, its time grows by 2^exponent. Each exponent is of two values, one after the other.\n\n"
        f"## A training step\n\nAffine maps; where nothing else is said: a batch of {SETTING.batch}, {SETTING.samples} "
        f"draws, {SETTING.inducing} inducing points, {SETTING.side**2} pixels.\n"
        "It does not depend on the number of training images.\n\n"
        f"{tables['step']}\n## The kernel, by draws\n\n{tables['kernels']}"
    )


def _list(values: list[float], kind: str) -> str:
    return ", ".join(format(value, kind) for value in values)


def draw(frame: pd.DataFrame, file: Path) -> None:
    """At the left a step, relative to its smallest; at the right the kernel's terms."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for number, own in frame[frame.part == "step"].groupby("number", sort=False):
        own = own.sort_values("value")
        left.loglog(own["value"] / own["value"].iloc[0], own["ms"] / own["ms"].iloc[0], "o-", label=number)
    left.plot([1, 8], [1, 8], color="#a9a9a9", linestyle=":", label="linear")
    left.set(xlabel="times the smallest", ylabel="times its step")
    for number, own in frame[frame.part == "kernels"].groupby("number", sort=False):
        right.loglog(own["value"], own["ms"], "s--" if "f(Z)" in str(number) else "o-", label=number)
    right.set(xlabel="draws S", ylabel="ms of processors")
    right.set_xticks(sorted(frame[frame.part == "kernels"]["value"].unique()), minor=False)
    right.xaxis.set_major_formatter("{x:g}")
    right.xaxis.set_minor_locator(plt.NullLocator())
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def main() -> None:
    """Reads the arguments and writes table, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="measurements of each, in turns")
    parser.add_argument("--draws", type=int, nargs="+", default=[16, 32, 64, 128], help="of the kernel's terms")
    parser.add_argument("--images", type=int, default=20, help="of the kernel's terms")
    parser.add_argument("--inducing", type=int, default=20, help="of the kernel's terms")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    kernels = measured_kernels(given.images, given.inducing, given.draws, given.repeats)
    frame = pd.concat([measured_steps(given.repeats), kernels], ignore_index=True)
    write_text(given.folder / "scaling.csv", frame.to_csv(index=False, float_format="%.6g"))
    draw(frame, given.folder / "scaling.png")
    write_text(given.folder / "scaling.md", report(frame, " ".join(["python benchmarks/scaling.py", *sys.argv[1:]])))
    sys.stdout.write((given.folder / "scaling.md").read_text())


if __name__ == "__main__":
    main()
