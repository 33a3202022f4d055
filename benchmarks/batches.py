"""
How noisy is a batch's gradient, by the share of it that is drawn by how wrong the model is?

    python benchmarks/batches.py    # written to benchmarks/batches.csv and batches.md

A model of each experiment is trained for a while and then held fixed. The variance of the gradient of the bound over
batches is summed over a group of parameters and divided by that of uniform batches: a quarter of it is what four times
the images would come to. Every gradient is unbiased, whatever the share.
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

from orbitgp.files import write_text
from orbitgp.models import InvariantSVGP
from orbitgp.optimizers.batches import HardBatches
from orbitgp.optimizers.steps import Optimizer
from orbitgp.orbits.sampling import split
from orbitgp_paper.analysis.formats import markdown_table
from orbitgp_paper.config import Run, load
from orbitgp_paper.experiments.build import build_model, recipe, targets
from orbitgp_paper.experiments.images import make_dataset

HERE = Path(__file__).resolve().parent
RUNS = {
    "odd against even, ±90°": ("parity", "rotation_90_from_150"),
    "MNIST, affine": ("mnist", "affine"),
    "rotated MNIST, rotation": ("rotated", "rotation"),
}
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9)

Data = tuple[np.ndarray, np.ndarray]


def trained(experiment: str, variant: str, given: argparse.Namespace) -> tuple[InvariantSVGP, Data, np.ndarray]:
    """
    :return: a model with fewer inducing points, draws and steps than in the paper's size, its data (X [N, D], Y [N, P])
        and how hard each pulls at it, [N].
    """
    whole = load("paper").spec(Run(experiment, variant, 0))
    assert whole.dataset.kind != "images"
    spec = whole.changed(
        dataset={"train": min(given.images, whole.dataset.train)},
        inducing={"count": given.inducing},
        scheme={"size": given.draws},
        optimiser={"steps": given.steps, "batch": given.batch, "batches": "shuffled"},
        evaluation={"count": 1},
    )
    data = make_dataset(spec.dataset)
    X, Y = data.train.inputs(np.float32), targets(spec, data, data.train)
    model = build_model(spec, data)
    optimiser = Optimizer(model, (X, Y), recipe(spec), 0)
    optimiser.advance(tf.constant(given.steps))
    return model, (X, Y), optimiser.hardness().numpy()


def variances(model: InvariantSVGP, data: Data, batches: HardBatches, repeats: int) -> dict[str, float]:
    """
    :param batches: hard batches of ``data``, whose probabilities are set.
    :param repeats: how many batches the variance is estimated from.
    :return: variances of the gradient of a batch's bound, summed over each group of parameters.
    """
    groups = {
        "inducing points": model.inducing_variable.trainable_variables,
        "kernel": model.kernel.base.trainable_variables,
        "orbit": model.kernel.orbit.trainable_variables,
    }
    variables = [variable for group in groups.values() for variable in group]
    X, Y = (tf.constant(part) for part in data)

    @tf.function(autograph=False)
    def gradients(number: tf.Tensor) -> list[tf.Tensor]:
        seed = tf.stack([tf.constant(0, tf.int64), number])
        rows = batches.rows(seed, 0)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            batch = (tf.gather(X, rows), tf.gather(Y, rows), rows, batches.weights(rows))
            bound = model.elbo(batch, split(seed, 1))
        return [tf.convert_to_tensor(gradient) for gradient in tape.gradient(bound, variables)]

    found = [gradients(tf.constant(number, tf.int64)) for number in range(repeats)]
    of_each = iter([float(np.var(np.stack(one), axis=0, ddof=1).sum()) for one in zip(*found, strict=True)])
    return {name: sum(next(of_each) for _ in group) for name, group in groups.items()}


def measure(given: argparse.Namespace) -> pd.DataFrame:
    """Columns ``run``, ``parameters``, ``share`` and ``noise``, the last as a part of that of uniform batches."""
    rows = []
    for label, (experiment, variant) in RUNS.items():
        model, data, hardness = trained(experiment, variant, given)
        noise = {}
        for share in SHARES:
            batches = HardBatches(len(hardness), given.batch, share=share)
            batches.weigh(tf.constant(hardness))
            noise[share] = variances(model, data, batches, given.repeats)
            sys.stderr.write(f"{label}, {share:g}: {noise[share]}\n")
            for group, value in noise[share].items():
                row = {"run": label, "parameters": group, "share": share}
                rows.append(row | {"noise": value / noise[0.0][group]})
    return pd.DataFrame(rows)


def report(frame: pd.DataFrame, command: str) -> str:
    """
    :param frame: as :func:`measure` makes it.
    """
    table = frame.pivot(index=["run", "parameters"], columns="share", values="noise")
    table = table.loc[list(dict.fromkeys(zip(frame.run, frame.parameters, strict=True)))]
    head = [f"share {share:g}" for share in table.columns]
    cells = [
        (*names, *(f"{value:.2f}" for value in row)) for names, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    numeric = [False, False, *(True for _ in head)]
    return (
        "Variance of a batch's gradient as a part of that of uniform batches, by the share of the batch that is drawn\n"
        "by how wrong the model is (`orbitgp/optimizers/batches.py`). Small models, held fixed.\n\n"
        f"    {command}\n\n{markdown_table(['run', 'parameters', *head], cells, numeric)}"
    )


def main() -> None:
    """Reads the arguments and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=12000, help="at most")
    parser.add_argument("--inducing", type=int, default=150)
    parser.add_argument("--draws", type=int, default=8, help="in a group")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--repeats", type=int, default=100, help="batches that a variance is estimated from")
    parser.add_argument("--folder", type=Path, default=HERE, help="where batches.csv and batches.md go")
    given = parser.parse_args()
    frame = measure(given)
    words = (f"--{key} {value}" for key, value in vars(given).items() if key != "folder")
    write_text(given.folder / "batches.csv", frame.to_csv(index=False, float_format="%.6g"))
    text = report(frame, " ".join(["python benchmarks/batches.py", *words]))
    write_text(given.folder / "batches.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
