"""
How far below E log p(y | f) do the bounds for several classes lie? At fixed Gaussians, with the best local parameters.

    python benchmarks/slack.py    # written to benchmarks/slack.csv, slack_draws.csv, slack_draws.png and slack.md

The means of the K outputs are drawn around a centre with a given spread, all have one standard deviation, and the label
is drawn from the likelihood itself at the means. So a small spread is a model that is unsure of the class. The softmax
does not depend on the centre; the logistic-softmax comes close to it where the centre is low. The truth is an average
over many draws of f.

Then at a number S of draws from the orbit, as in training. f is the mean of g over the orbit, around which g spreads
with a given standard deviation. Bouchard's bound stays unbiased, but its local parameters come from S other draws, in
two groups. The sampled softmax, log p(y | mean of g over S draws), is a bound by Jensen: it needs no local parameters,
and what the mean lacks of f lowers it.
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
#: standard deviations of g over the orbit, and numbers of draws from it
ORBITS, TAKEN = (1.0, 4.0), (4, 16, 64, 256)
REPEATS = 10  #: of local parameters from other draws


def measure(
    name: str, centre: float, spread: float, deviation: float, classes: int, images: int, draws: int
) -> dict[str, float]:
    """
    :param name: name of the likelihood.
    :param centre: centre of the means.
    :param spread: standard deviation of the means.
    :param deviation: standard deviation of f around its mean.
    :param images: number of Gaussians.
    :param draws: number of draws of f for each.
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


def measure_draws(
    spread: float, deviation: float, orbit: float, taken: int, classes: int, images: int, draws: int
) -> dict[str, float]:
    """
    :param orbit: standard deviation of g over the orbit.
    :param taken: S, draws from the orbit, even.
    :return: of the softmax, ``exact``, ``bound`` and ``sampled``, in nats an image; the others as for :func:`measure`.
    """
    likelihood, rng = Softmax(classes, IndependentGroups()), np.random.default_rng(0)
    mean = tf.constant(spread * rng.normal(size=(images, classes)))
    variance = tf.fill([images, 1], tf.constant(deviation**2, tf.float64))
    shares = np.exp(likelihood.log_probabilities(mean)).cumsum(axis=1)
    Y = tf.one_hot((shares < rng.uniform(size=(images, 1))).sum(axis=1), classes, dtype=tf.float64)
    nowhere, moments = tf.zeros([images, 0]), Moments(mean, tf.square(mean), variance)

    def independent() -> Moments:
        one, other = (mean + orbit / np.sqrt(taken / 2) * rng.normal(size=mean.shape) for _ in range(2))
        return Moments((one + other) / 2, one * other, variance)

    values: dict[str, list[float]] = {"exact": [], "bound": [], "sampled": []}
    for number in range(draws):
        F = mean + deviation * rng.normal(size=mean.shape)
        G = F + orbit / np.sqrt(taken) * rng.normal(size=mean.shape)
        values["exact"].append(float(tf.reduce_mean(likelihood.log_prob(nowhere, F, Y))))
        values["sampled"].append(float(tf.reduce_mean(likelihood.log_prob(nowhere, G, Y))))
        if number < REPEATS:
            bound = expected_log_density(likelihood, Batch(mean, Y), moments, independent)
            values["bound"].append(float(tf.reduce_mean(bound)))
    return {name: float(np.mean(found)) for name, found in values.items()}


def report_draws(frame: pd.DataFrame) -> str:
    """
    :param frame: columns ``spread``, ``deviation``, ``orbit``, ``taken``, ``exact``, ``bound`` and ``sampled``.
    """
    cells = []
    for (spread, deviation, orbit), rows in frame.groupby(["spread", "deviation", "orbit"], sort=False):
        values = [rows.exact.mean(), *rows[["bound", "sampled"]].to_numpy().ravel()]
        cells.append((f"{spread:g}, {deviation:g}, {orbit:g}", *(f"{value:.2f}" for value in values)))
    tighter = int((frame.sampled > frame.bound).sum())
    head = ["spread of means, sd of f, sd of g over the orbit", "softmax"]
    head += [f"{what}, {taken}" for taken in TAKEN for what in ("Bouchard", "sampled")]
    return (
        "\nThe softmax again, at S draws from the orbit: Bouchard's bound, whose local parameters come from S other\n"
        "draws, and the sampled softmax, which averages g over S draws inside the logarithm. The sampled softmax is\n"
        f"the tighter one in {tighter} of {len(frame)} cases. Its slack grows with the spread of g over the orbit and\n"
        "falls with the draws, so it charges a wide orbit for few draws. Draws are independent here, g is Gaussian\n"
        "over the orbit, and the variance of f is known to the local parameters.\n\n"
        f"{markdown_table(head, cells, [False, *(True for _ in head[1:])])}\n![Slack against draws](slack_draws.png)\n"
    )


def picture(frame: pd.DataFrame, path: Path) -> None:
    """Slack against the number of draws, a panel for each Gaussian."""
    from matplotlib.figure import Figure

    panels = [*frame.groupby(["spread", "deviation"], sort=False)]
    figure = Figure(figsize=(2.4 * len(panels), 2.6), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True)
    for ax, ((spread, deviation), rows) in zip(axes, panels, strict=True):
        for style, (orbit, lines) in zip(("-", "--"), rows.groupby("orbit", sort=False), strict=True):
            for what, colour, name in (("bound", "C0", "Bouchard"), ("sampled", "C1", "sampled")):
                label = f"{name}, g spreads by {orbit:g}"
                ax.loglog(lines.taken, lines.exact - lines[what], style, color=colour, marker=".", label=label)
        ax.set(title=f"means {spread:g}, sd of f {deviation:g}", xlabel="draws", xticks=TAKEN)
        ax.set_xticks(TAKEN, [str(taken) for taken in TAKEN])
        ax.minorticks_off()
    axes[0].set_ylabel("slack, nats an image")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=120, metadata={"Software": None})


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
    """Reads the arguments and writes the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=HERE, help="where the files go")
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
    by_draws = pd.DataFrame(
        {"spread": spread, "deviation": deviation, "orbit": orbit, "taken": taken}
        | measure_draws(spread, deviation, orbit, taken, **sizes)
        for spread, deviation in GAUSSIANS
        for orbit in ORBITS
        for taken in TAKEN
    )
    text = report(frame, command) + report_draws(by_draws)
    write_text(given.folder / "slack_draws.csv", by_draws.to_csv(index=False, float_format="%.6g"))
    picture(by_draws, given.folder / "slack_draws.png")
    write_text(given.folder / "slack.csv", frame.to_csv(index=False, float_format="%.6g"))
    write_text(given.folder / "slack.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
