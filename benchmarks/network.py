"""
How tight does a recognition network make the Pólya-Gamma bound? The gap to the best c of every image, by its layers.

    python benchmarks/network.py    # written to benchmarks/network.csv, network.md and network.png

A model of odd against even digits (Fig. 3, ±90°) is trained for a while with c from draws of its own, and then held
fixed: E f² of each of the training images is known, and with it the best c = √E f². Networks are trained on the bound
that c decides, in batches and at falling rates as in Fig. 3, and what they stay below the best is the gap. In Fig. 3
f moves while the network learns; a gap here is one that is left when f does not.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import pandas as pd
import tensorflow as tf
from scipy.optimize import minimize_scalar

from orbitgp.files import write_text
from orbitgp.likelihoods import Batch, RecognitionNetwork, Sites, polya_gamma_sites
from orbitgp.models import InvariantSVGP
from orbitgp.optimizers.adam import Adam
from orbitgp.optimizers.schedules import cosine
from orbitgp.optimizers.steps import Optimizer
from orbitgp_paper.analysis.formats import markdown_table
from orbitgp_paper.config import Run, load
from orbitgp_paper.experiments.build import build_model, recipe, targets
from orbitgp_paper.experiments.images import make_dataset

HERE = Path(__file__).resolve().parent
LAYERS: tuple[tuple[int, ...], ...] = ((64,), (128,), (256, 256), (256, 256, 256))


def trained(given: argparse.Namespace, trainable: bool = True) -> tuple[InvariantSVGP, np.ndarray, np.ndarray]:
    """
    :param trainable: whether the angle is learned, or stays at ``given.angle``.
    :return: a model that was trained for a while, [N, D] its images, [N, 1] their labels.
    """
    whole = load("paper").spec(Run("parity", "rotation_90_from_150", 0))
    spec = whole.changed(
        dataset={"train": given.images},
        inducing={"count": given.inducing},
        orbit={"alpha": given.angle, "trainable": trainable},
        likelihood={"kind": "polya_gamma", "tilt": "groups", "hidden": None},
        scheme={"size": given.draws},
        optimiser={"steps": given.model_steps, "batch": given.model_batch},
        evaluation={"count": 1},
    )
    data = make_dataset(spec.dataset)
    X, Y = data.train.inputs(np.float32), targets(spec, data, data.train)
    chosen = np.random.default_rng(0).choice(given.images, given.inducing, replace=False)
    model = build_model(spec, data, data.train.take(chosen).inputs())
    optimiser = Optimizer(model, (X, Y), recipe(spec), 0)
    optimiser.advance(tf.constant(given.model_steps))
    optimiser.write_back()
    return model, X, Y


def second_moments(given: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    :return: [N, D] images, [N, 1] labels, [N, 1] E f² of a model that was trained for a while.
    """
    model, X, Y = trained(given)
    mean, variance = model.predict_f(X, samples=2 * given.draws)
    return X, Y, (tf.square(mean) + variance).numpy()


def gained(Y: tf.Tensor, second: tf.Tensor, tilt: tf.Tensor) -> tf.Tensor:
    """[], the part of the bound that c decides, summed: − ½ θ(c) E f² + constant(c)."""
    sites: Sites = polya_gamma_sites(Y, tilt)
    return tf.reduce_sum(sites.expectation(tf.zeros_like(second), second))


def gap_of_one_for_all(Y: np.ndarray, second: np.ndarray) -> float:
    """The gap of the best c that is the same for all images, in nats."""
    best = float(gained(Y, second, np.sqrt(second)))
    found = minimize_scalar(
        lambda c: -float(gained(Y, second, np.full_like(second, c))), bounds=(0.0, 100.0), method="bounded"
    )
    return best + float(found.fun)


def gap_of_network(
    X: np.ndarray, Y: np.ndarray, second: np.ndarray, hidden: tuple[int, ...], rate: float, steps: int, batch: int
) -> float:
    """
    The gap of a network after training, in nats.

    :param X: [N, D]
    :param Y: [N, 1]
    :param second: [N, 1]
    :param hidden: widths of the layers.
    :param rate: Adam's peak rate; its memory, warm-up and fall are those of the paper's size.
    """
    network = RecognitionNetwork(X.shape[1], hidden)
    variables = network.trainable_variables
    adam = Adam(variables)
    data = [tf.constant(array, tf.float64) for array in (X, Y, second)]

    def nothing() -> tf.Tensor:
        raise AssertionError("a network asks for no draws")

    @tf.function(autograph=False)
    def step(number: tf.Tensor) -> None:
        rows = tf.random.stateless_uniform([batch], tf.stack([0, number]), 0, len(X), tf.int32)
        images, labels, moments = (tf.gather(array, rows) for array in data)
        with tf.GradientTape() as tape:
            loss = -gained(labels, moments, network(Batch(images, labels), nothing)) * len(X) / batch
        adam.apply(tape.gradient(loss, variables), rate * cosine(number / steps, 0.02, 0.01), number)

    for number in range(steps):
        step(tf.constant(number))
    tilt = network(Batch(data[0], data[1]), nothing)
    return float(gained(data[1], data[2], tf.sqrt(data[2])) - gained(data[1], data[2], tilt))


def report(frame: pd.DataFrame, command: str) -> str:
    """
    :param frame: columns ``layers``, ``rate`` and ``gap``.
    """
    table = frame.pivot(index="layers", columns="rate", values="gap").loc[[*frame.layers.unique()]]
    head = [f"rate {rate:g}" for rate in table.columns]
    cells = [(name, *(f"{gap:,.0f}" for gap in row)) for name, row in zip(table.index, table.to_numpy(), strict=True)]
    return (
        "Nats that a recognition network leaves below the best c of every image, by its layers and Adam's rate. Odd\n"
        "against even digits, f held fixed.\n\n"
        "![The gap by layers](network.png)\n\n"
        f"    {command}\n\n{markdown_table(['layers', *head], cells, [False, *(True for _ in head)])}"
    )


def draw(frame: pd.DataFrame, file: Path) -> None:
    """The gap of each network, at each rate."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
    names = [*frame.layers.unique()]
    for (rate, rows), marker in zip(frame.groupby("rate"), "os^Dv", strict=False):
        axes.plot(rows.gap, [names.index(name) for name in rows.layers], marker, label=f"rate {rate:g}")
    axes.set(xscale="log", xlabel="nats below the best c of every image", ylabel="widths of layers")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def _command(given: argparse.Namespace) -> str:
    words = (
        f"--{key.replace('_', '-')} {value:g}" for key, value in vars(given).items() if key not in ("folder", "rates")
    )
    return " ".join(["python benchmarks/network.py", *words, "--rates", *(f"{rate:g}" for rate in given.rates)])


def main() -> None:
    """Reads the arguments and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=60000)
    parser.add_argument("--angle", type=float, default=118.0, help="that the model starts from")
    parser.add_argument("--inducing", type=int, default=250)
    parser.add_argument("--draws", type=int, default=6, help="in a group, in the model's training")
    parser.add_argument("--model-steps", type=int, default=700)
    parser.add_argument("--model-batch", type=int, default=300)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.003, 0.01])
    parser.add_argument("--steps", type=int, default=5000, help="of a network's training")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--folder", type=Path, default=HERE, help="where the files go")
    given = parser.parse_args()
    X, Y, second = second_moments(given)
    rows = [
        {"layers": "none: one c for all", "rate": rate, "gap": gap_of_one_for_all(Y, second)} for rate in given.rates
    ]
    for hidden in LAYERS:
        for rate in given.rates:
            gap = gap_of_network(X, Y, second, hidden, rate, given.steps, given.batch)
            rows.append({"layers": " ".join(map(str, hidden)), "rate": rate, "gap": gap})
            sys.stderr.write(f"layers {hidden}, rate {rate:g}: {gap:.0f} nats\n")
    frame = pd.DataFrame(rows)
    write_text(given.folder / "network.csv", frame.to_csv(index=False, float_format="%.6g"))
    draw(frame, given.folder / "network.png")
    text = report(frame, _command(given))
    write_text(given.folder / "network.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
