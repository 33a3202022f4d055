"""
What else one could do with an orbit: the same transformations as extra training images, for a Gaussian process without
an invariance and for a small convolutional network.

    python benchmarks/instead.py                    # 3,000 digits, minutes on two cores
    python benchmarks/instead.py --train 60000 --page instead_gpu    # on a GPU

The invariant model learns affine maps. Then its draws enlarge the images of the plain model, which trains for as long
as the invariant one did, and every epoch of the network has fresh ones. The network stops where its loss on a tenth of
the training images is least. It writes benchmarks/instead.csv, instead_bins.csv, instead.md and instead.png, or the
same by the name of the page. Error and probabilities are those of MNIST's 10,000 test images.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from estimator import HERE, draw

COPIES = (2, 10, 50)
PATIENCE = 8  #: epochs without a lower loss on held-out images after which the network stops
BATCH = 100
COLUMNS = {
    "error": 2,
    "nll": 3,
    "calibration_error": 1,
    "bound_an_image": 2,
    "fit_s": 0,
}  #: digits of each in the table


def judge(probabilities: np.ndarray, labels: np.ndarray) -> tuple[dict[str, float], pd.DataFrame]:
    """Error, NLL and calibration error, and the bins of the reliability diagram."""
    from orbitgp import calibration

    rows = np.arange(len(labels))
    return {
        "error": 100 * float(np.mean(probabilities.argmax(1) != labels)),
        "nll": -float(np.mean(np.log(np.maximum(probabilities[rows, labels], 1e-12)))),
        "calibration_error": 100 * calibration.expected_calibration_error(probabilities, labels),
    }, pd.DataFrame(calibration.reliability(probabilities, labels)._asdict())


def random_copies(orbit: Any, copies: int = 1) -> Callable[[np.ndarray, int], np.ndarray]:
    """
    :return: (images [N, H, W, C], seed) → [copies · N, H, W, C]: for all images one draw each, then another, and so on.
    """
    import tensorflow as tf

    @tf.function(autograph=False)
    def sample(rows: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        return orbit.sample(rows, copies, 1, seed, "iid")[:, :, 0]

    def moved(images: np.ndarray, seed: int) -> np.ndarray:
        rows = tf.constant(images.reshape(len(images), -1), tf.float32)
        parts = [sample(rows[i : i + 500], tf.constant([seed, i])) for i in range(0, len(images), 500)]
        drawn = np.concatenate(parts).swapaxes(0, 1)
        return np.clip(drawn, 0, 1).reshape(-1, *images.shape[1:])

    return moved


def network(images: np.ndarray, labels: np.ndarray, draws: Callable[[np.ndarray, int], np.ndarray], seed: int) -> Any:
    """
    Two layers of 3 × 3 convolutions and pooling, one of 128 units with dropout, trained by Adam.

    :param draws: what the images of an epoch become, of images and a seed that differs from epoch to epoch.
    """
    import tf_keras as keras

    keras.utils.set_random_seed(seed)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Conv2D(32, 3, activation="relu", input_shape=images.shape[1:]),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(labels.max() + 1, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.legacy.Adam(1e-3), "sparse_categorical_crossentropy")
    rng, held = np.random.default_rng(seed), len(images) // 10
    kept, best, weights, since = np.arange(held, len(images)), np.inf, model.get_weights(), 0
    while since < PATIENCE:
        order = rng.permutation(kept)
        moved = draws(images[order], int(rng.integers(2**31)))
        for rows in np.array_split(np.arange(len(order)), max(1, len(order) // BATCH)):
            model.train_on_batch(moved[rows], labels[order[rows]])
        loss = model.test_on_batch(images[:held], labels[:held])
        best, weights, since = (loss, model.get_weights(), 0) if loss < best else (best, weights, since + 1)
    model.set_weights(weights)
    return model


def measure(given: argparse.Namespace, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row for each model, and the bins of their reliability diagrams. The seed chooses the training images too."""
    from orbitgp import InvariantClassifier, datasets

    data = datasets.mnist()
    chosen = np.random.default_rng(seed).permutation(len(data.train))[: given.train]
    train, test = data.train.take(chosen), data.test.take(given.test)
    settings: dict[str, Any] = {"verbose": False, "seed": seed}
    rows, bins = [], []

    def note(name: str, fit: Callable[[], Any], predict: Callable[[Any], np.ndarray], images: int) -> Any:
        start = time.perf_counter()
        model = fit()
        seconds = time.perf_counter() - start
        found, parts = judge(predict(model), test.labels)
        bound = getattr(model, "evidence_", np.nan) / images
        rows.append({"model": name, "seed": seed, "images": images, **found, "bound_an_image": bound, "fit_s": seconds})
        bins.append(parts.assign(likelihood=name, orbit=f"{images:,} images"))
        print(rows[-1], flush=True)
        return model

    def plain(copies: int) -> Any:
        images = train.images if copies == 1 else random_copies(invariant.orbit_, copies)(train.images, seed)
        labels = np.tile(train.labels, copies)
        return InvariantClassifier("none", time_budget=budget, **settings).fit(images, labels)

    def probabilities(model: Any) -> np.ndarray:
        return model.predict_proba(test.images)

    first = {} if given.steps is None else {"steps": given.steps}
    invariant = note(
        "GP, learned affine maps",
        lambda: InvariantClassifier("affine", **settings, **first).fit(train.images, train.labels),
        probabilities,
        len(train),
    )
    budget = rows[0]["fit_s"]
    note("GP, no orbit", lambda: plain(1), probabilities, len(train))
    for copies in given.copies:
        note(f"GP, no orbit, each image {copies} times", partial(plain, copies), probabilities, copies * len(train))

    moved = random_copies(invariant.orbit_)
    for name, draws in (("network", lambda images, seed: images), ("network, transformed batches", moved)):
        note(
            name,
            partial(network, train.images, train.labels, draws, seed),
            lambda model: model.predict(test.images, batch_size=1000, verbose=0),
            len(train),
        )
    return pd.DataFrame(rows), pd.concat(bins)


def pooled(bins: pd.DataFrame) -> pd.DataFrame:
    """Bins of all seeds as one: numbers of images added up, confidence and accuracy weighted by them."""
    weighted = bins.assign(**{name: bins[name] * bins["images"] for name in ("confidence", "accuracy")})
    summed = weighted.groupby(["likelihood", "orbit", "bin"], as_index=False, sort=False).sum()
    return summed.assign(**{name: summed[name] / summed["images"] for name in ("confidence", "accuracy")})


def spread(values: pd.Series, digits: int) -> str:
    """Mean ± standard deviation of seeds; nothing where there is no value."""
    if values.isna().all():
        return ""
    mean = f"{values.mean():,.{digits}f}"
    return f"{mean} ± {values.std():,.{digits}f}" if len(values) > 1 else mean


def main() -> None:
    """Reads the arguments and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=int, default=3000, help="images to train on, the first of MNIST")
    parser.add_argument("--test", type=int, default=10000, help="images to test on")
    parser.add_argument("--copies", type=int, nargs="*", default=COPIES, help="draws of each image for the plain model")
    parser.add_argument("--steps", type=int, help="of the invariant model, instead of those that it chooses")
    parser.add_argument("--seeds", type=int, default=3, help="how often, each time with other training images")
    parser.add_argument("--page", default="instead", help="what the written files are called")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    from orbitgp.fitting.devices import describe

    found = [measure(given, seed) for seed in range(given.seeds)]
    rows, bins = pd.concat([rows for rows, _ in found]), pd.concat([bins for _, bins in found])
    rows.to_csv(given.folder / f"{given.page}.csv", index=False, float_format="%.6g")
    bins.to_csv(given.folder / f"{given.page}_bins.csv", index=False, float_format="%.6g")
    draw(pooled(bins), given.folder / f"{given.page}.png")
    command = " ".join(["python benchmarks/instead.py", *sys.argv[1:]])
    lines = [
        f"# What else one could do with an orbit, on {given.train:,} images of MNIST",
        "",
        f"`{command}` on {describe()}. Means of {given.seeds} seeds, each with other training images, ± their standard "
        "deviations where there are several. The plain models "
        "train for as long as the invariant one did; the network stops by a tenth of the images.",
        "",
        "| model | images | test error, % | NLL | calibration error, % | bound an image, nats | fit, s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (name, images), group in rows.groupby(["model", "images"], sort=False):
        numbers = [spread(group[column], digits) for column, digits in COLUMNS.items()]
        lines.append(f"| {name} | {images:,} | {' | '.join(numbers)} |")
    lines += ["", f"![Share of test images that are right, over the model's confidence]({given.page}.png)"]
    (given.folder / f"{given.page}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
