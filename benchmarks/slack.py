"""
How far below E log p(y | f) do the bounds for several classes lie? At fixed Gaussians, with the best local parameters.

    python benchmarks/slack.py    # written to benchmarks/slack.csv and slack.md

The means of the K outputs are drawn around a centre with a given spread, all have one standard deviation, and the label
is drawn from the likelihood itself at the means. So a small spread is a model that is unsure of the class. The softmax
does not depend on the centre; the logistic-softmax comes close to it where the centre is low. The truth is an average
over many draws of f.
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
from orbitgp.likelihoods import Batch, IndependentGroups, LogisticSoftmax, Moments, Softmax, expected_log_density
from orbitgp_paper.analysis.formats import markdown_table

HERE = Path(__file__).resolve().parent
LIKELIHOODS = {"softmax": Softmax, "logistic-softmax": LogisticSoftmax}
#: spread of the means, standard deviation of f
GAUSSIANS = ((0.5, 0.3), (2.0, 0.5), (4.0, 1.0), (8.0, 1.0), (8.0, 3.0))
CENTRES = (0.0, -6.0)


def measure(
    name: str, centre: float, spread: float, deviation: float, classes: int, images: int, draws: int
) -> dict[str, float]:
    """
    :param name: of the likelihood.
    :param centre: and
    :param spread: of the means.
    :param deviation: of f around its mean.
    :param images: number of Gaussians.
    :param draws: of f for each.
    :return: ``exact`` and ``bound``, in nats an image.
    """
    likelihood, rng = LIKELIHOODS[name](classes, IndependentGroups()), np.random.default_rng(0)
    mean = tf.constant(centre + spread * rng.normal(size=(images, classes)))
    variance = tf.fill([images, 1], tf.constant(deviation**2, tf.float64))
    shares = np.exp(likelihood.log_probabilities(mean)).cumsum(axis=1)
    Y = tf.one_hot((shares < rng.uniform(size=(images, 1))).sum(axis=1), classes, dtype=tf.float64)
    exact = 0.0
    for _ in range(draws):
        F = mean + deviation * rng.normal(size=mean.shape)
        exact += float(tf.reduce_mean(likelihood.log_prob(tf.zeros([images, 0]), F, Y))) / draws
    moments = Moments(mean, tf.square(mean), variance)
    bound = expected_log_density(likelihood, Batch(mean, Y), moments, lambda: moments)
    return {"exact": exact, "bound": float(tf.reduce_mean(bound))}


def report(frame: pd.DataFrame, command: str) -> str:
    """
    :param frame: columns ``centre``, ``spread``, ``deviation``, ``likelihood``, ``exact`` and ``bound``.
    """
    cells = []
    for (centre, spread, deviation), rows in frame.groupby(["centre", "spread", "deviation"], sort=False):
        values = rows.set_index("likelihood").loc[[*LIKELIHOODS], ["exact", "bound"]].to_numpy().ravel()
        cells.append((f"{centre:g}, {spread:g}, {deviation:g}", *(f"{value:.2f}" for value in values)))
    head = [
        "centre and spread of means, sd of f",
        *(f"{name}{what}" for name in LIKELIHOODS for what in ("", ", bound")),
    ]
    return (
        "E log p(y | f) and the bound to it at fixed Gaussians, in nats an image. Labels are drawn from each\n"
        "likelihood itself, so compare a bound with its own likelihood.\n\n"
        f"    {command}\n\n{markdown_table(head, cells, [False, *(True for _ in head[1:])])}"
    )


def main() -> None:
    """Reads the arguments and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=HERE, help="where slack.csv and slack.md go")
    given = parser.parse_args()
    sizes = {key: value for key, value in vars(given).items() if key != "folder"}
    frame = pd.DataFrame(
        {"centre": centre, "spread": spread, "deviation": deviation, "likelihood": name}
        | measure(name, centre, spread, deviation, **sizes)
        for centre in CENTRES
        for spread, deviation in GAUSSIANS
        for name in LIKELIHOODS
    )
    command = " ".join(["python benchmarks/slack.py", *(f"--{key} {value}" for key, value in sizes.items())])
    text = report(frame, command)
    write_text(given.folder / "slack.csv", frame.to_csv(index=False, float_format="%.6g"))
    write_text(given.folder / "slack.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
