"""Tables of the runs' results, one function for each table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from orbitgp_paper.config import Config, read_yaml
from orbitgp_paper.runs.reading import ANGLE

IDENTITY = ["experiment", "variant", "label", "seed", "dataset", "train_size", "test_size", "inducing", "steps"]
OUTCOME = ["elbo", "elbo_std_error", "late_rise", "test_error", "test_nll", "diverged", "events", "event_kinds"]
ORIGIN = ["wall_s", "device", "peak_memory_mb", "resumed", "commit", "dirty"]

#: what a table has means of, and where they are from; of the second only what there is
MEANS = (("error", "test_error"), ("elbo", "elbo"), ("nll", "test_nll"))
PROBABILITIES = (("class_nll", "test_class_nll"), ("calibration_error", "test_calibration_error"))

#: what comes before the sizes in a table's caption
TITLES = {
    "toy": "Fig. 2: a symmetric function, learned by a GP that knows the symmetry and by one that does not.",
    "toy_halves": "Fig. 2: what the points on one side of the diagonal tell of those on the other.",
    "toy_bounds": "Fig. 2: the variational bound beside the exact log marginal likelihood.",
    "toy_rates": "Fig. 2: how often the paper's statements about it hold in other draws of function and points.",
    "parity": "Fig. 3: odd against even digits, rotated by up to the true angle. Learned angle, test error and bound.",
    "mnist": "Fig. 4: MNIST. Test error and bound.",
    "rotated": "Fig. 5: digits rotated by any angle (generated here, not the public files). Test error and bound.",
    "recipes": "Fig. 3 by other recipes. Learned angle, test error and bound.",
    "between": "Fig. 3, ±90°: from the plain recipe to ours, one change after the other.",
    "further": "Fig. 3, ±90°: the plain recipe with more steps and larger rates.",
    "insensitivity": "Appendix A: how often a trained model deviates under its own orbit, and the lemma's bound.",
    "estimators": "Appendix B: bias and spread of each estimator against the exact value of the whole orbit.",
    "costs": "Sections 4.3 and B.2.1: kernel evaluations, as the orbit or the number of draws grows.",
    "monitor": "Section 5.2: does a higher bound on the training data go with a lower test error?",
    "runs": "Every training.",
}


def read_paper_values(path: Path) -> dict[str, dict[str, Any]]:
    """
    :param path: of ``paper_values.yaml``: a list of blocks with ``name``, ``value``, ``where`` and possibly ``std``.
    :return: the blocks by name.
    """
    return {block["name"]: block for block in read_yaml(path)}


def experiment_table(finals: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """
    :param finals: as :func:`orbitgp_paper.runs.reading.read_runs` makes it.
    :return: a row for each variant, in the order of ``finals``: variant, label, means and standard deviations
        (ddof = 1; blank for a single seed) of error, NLL and bound, of the class's NLL and the calibration error where
        there are any, n_seeds, n_diverged, sizes, and mean, least and
        largest learned angle where there is one. A run that diverged counts like any other; where it has no number,
        the mean has none.
    """
    rows, own = [], _of(finals, experiment)
    columns = [*MEANS, *(pair for pair in PROBABILITIES if pair[1] in own and own[pair[1]].notna().any())]
    for variant, group in own.groupby("variant", sort=False):
        row: dict[str, Any] = {"variant": variant, "label": group["label"].iloc[0]}
        for name, column in columns:
            row |= {f"{name}_mean": float(np.mean(group[column].to_numpy(float))), f"{name}_std": _std(group[column])}
        row |= {"n_seeds": len(group), "n_diverged": int(group["diverged"].sum())}
        row |= _angles(group)
        row |= {size: int(group[size].iloc[0]) for size in ("train_size", "test_size")}
        rows.append(row)
    return pd.DataFrame(rows)


def mnist_table(finals: pd.DataFrame, paper_values: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """
    :param paper_values: as :func:`read_paper_values` makes it; ``mnist/{variant}/error`` is the paper's number.
    :return: :func:`experiment_table` with the paper's error and its standard deviation after the label.
    """
    table = experiment_table(finals, "mnist")
    paper = [paper_values.get(f"mnist/{variant}/error", {}) for variant in table["variant"]]
    table.insert(2, "paper_error", [float(value.get("value", np.nan)) for value in paper])
    table.insert(3, "paper_std", [float(value.get("std", np.nan)) for value in paper])
    return table


def angle_table(finals: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """
    :param finals: of images that were rotated by up to a known angle.
    :return: :func:`experiment_table` with the true angle and the start after the label.
    """
    table = experiment_table(finals, experiment)
    first = _of(finals, experiment).groupby("variant", sort=False).first()
    for place, name in enumerate(("alpha_true", "start"), start=2):
        table.insert(place, name, [float(first[name][variant]) for variant in table["variant"]])
    return table


def toy_table(measured: pd.DataFrame) -> pd.DataFrame:
    """The numbers of each model, on all points or half by half."""
    return measured.drop(columns="variant")


def toy_bounds_table(bounds: pd.DataFrame) -> pd.DataFrame:
    """
    :param bounds: columns model, inducing, elbo, log_marginal_likelihood.
    :return: these, and the ``gap`` between the last two.
    """
    table = bounds[["model", "inducing", "elbo", "log_marginal_likelihood"]]
    return table.assign(gap=table["log_marginal_likelihood"] - table["elbo"])


def insensitivity_table(measured: pd.DataFrame) -> pd.DataFrame:
    """
    :param measured: the variants' files one below the other, with a column ``variant``: view, label, threshold,
        probability, bound, expected_square, images.
    :return: a row for each variant, view and threshold: means over all images, the probability for 6s and for 9s, and
        in how many classes the probability is above the lemma's bound (it must be none).
    """
    numbers = ["probability", "bound", "expected_square"]
    rows = []
    for (variant, view, threshold), group in measured.groupby(["variant", "view", "threshold"], sort=False):
        own = group.set_index("label")["probability"]
        row = {"variant": variant, "view": view, "threshold": threshold, "images": int(group["images"].sum())}
        row |= {name: float(np.average(group[name], weights=group["images"])) for name in numbers}
        row |= {f"probability_{label}": float(own.get(label, np.nan)) for label in (6, 9)}
        # equal numbers may differ in their last bit, being means of the same
        above = group["probability"] > group["bound"] * (1 + 1e-9)
        rows.append(row | {"classes_above_bound": int(above.sum())})
    return pd.DataFrame(rows)


def estimators_table(measured: pd.DataFrame) -> pd.DataFrame:
    """
    :param measured: columns estimator, shared, samples, quantity, exact, mean, bias, bias_std_error, std, cost and
        repeats.
    :return: these, and ``z``, the size of the bias in its standard errors.
    """
    names = ["estimator", "shared", "samples", "quantity", "exact", "mean", "bias", "bias_std_error", "std", "cost"]
    table = measured[[*names, "repeats"]].copy()
    bias, error = table["bias"].abs().to_numpy(float), table["bias_std_error"].to_numpy(float)
    z = np.divide(bias, error, out=np.where(bias > 0, np.inf, 0.0), where=error > 0)
    table.insert(names.index("std"), "z", z)
    return table


def costs_table(measured: pd.DataFrame) -> pd.DataFrame:
    """
    :param measured: columns quantity, size, evaluations.
    :return: these, and ``growth``, the exponent by which evaluations grew since the size before.
    """
    table = measured[["quantity", "size", "evaluations"]].sort_values(["quantity", "size"])
    table = table.reset_index(drop=True)
    logs = table[["size", "evaluations"]].transform(np.log).groupby(table["quantity"]).diff()
    table["growth"] = (logs["evaluations"] / logs["size"]).round(9)  # of powers of two it is exact
    return table


def runs_table(finals: pd.DataFrame) -> pd.DataFrame:
    """A row for each run: what it was, how it ended, how long it took on what, and its parameters."""
    parameters = sorted(str(name) for name in finals.columns if "." in str(name))
    return finals[[*IDENTITY, *OUTCOME, *ORIGIN, *parameters]]


def caption(name: str, config: Config) -> str:
    """
    :param name: name of a table, or of a user's own experiment.
    :return: the table's caption: what it shows, and at which size.
    """
    title = TITLES.get(name, f"Experiment {name}: test error and bound.")
    experiment = config.experiments.get(name)
    if experiment:
        sizes = _sizes(config, name)
    elif config.toy and name in ("toy", "toy_halves", "toy_bounds"):
        sizes = f"{config.toy.train} training points"
    elif config.toy_draws and name == "toy_rates":
        sizes = f"{config.toy_draws.draws:,} draws of {config.toy_draws.train} training points"
    elif config.costs and name == "costs":
        sizes = f"{config.costs.images:,} images, {config.costs.inducing:,} inducing points"
    elif config.insensitivity and name == "insensitivity":
        block = config.insensitivity
        sizes = f"{block.images:,} test images of {block.experiment}, seed {block.seed}"
    elif config.estimators and name == "estimators":
        measured = config.estimators
        sizes = f"{measured.images:,} images, {measured.order} rotations, {measured.repeats:,} repeats"
    else:
        sizes = f"{len(config.all_runs()):,} trainings"
    spread = " Mean ± standard deviation over seeds." if experiment and len(experiment.seeds) > 1 else ""
    return f"{title} Size “{config.tier}”: {sizes}.{spread}"


def _sizes(config: Config, experiment: str) -> str:
    """:return: data, inducing points, steps and seeds of an experiment; ranges where its variants differ"""
    specs = [config.spec(run) for run in config.all_runs() if run.experiment == experiment]
    known = [spec.dataset for spec in specs if spec.dataset.kind != "images"]
    if len(known) == len(specs):
        train, test = _range([block.train for block in known]), _range([block.test for block in known])
        images = f"{train} training and {test} test images"
    else:
        images = "the user's images"
    sizes = [(spec.inducing_points, spec.optimiser.steps, spec.optimiser.batch) for spec in specs]
    points, steps, batch = map(_range, zip(*sizes, strict=True))
    seeds = len(config.experiments[experiment].seeds)
    return f"{images}, {points} inducing points, {steps} steps of {batch} images, {seeds:,} seed{'s' * (seeds > 1)}"


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _of(frame: pd.DataFrame, experiment: str) -> pd.DataFrame:
    own = frame[frame["experiment"] == experiment]
    if not len(own):
        there = sorted(map(str, frame["experiment"].unique()))
        raise ValueError(f"there is no run of {experiment!r}, only of {', '.join(there) or 'nothing'}")
    return own


def _std(values: pd.Series) -> float:
    if len(values) < 2:
        return float("nan")
    array = values.to_numpy(float)
    # of equal numbers the mean is not always that number
    return 0.0 if np.ptp(array) == 0.0 else float(np.std(array, ddof=1))


def _angles(group: pd.DataFrame) -> dict[str, float]:
    """:return: mean, least and largest learned angle; NaN where no angle is among the parameters"""
    angles = group[ANGLE].to_numpy(float) if ANGLE in group else np.full(len(group), np.nan)
    return {"angle_mean": angles.mean(), "angle_min": angles.min(), "angle_max": angles.max()}
