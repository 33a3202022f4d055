"""
The authors' released code beside this package: the same model, the same batch, one process for each.

    git clone https://github.com/markvdw/invgp
    python benchmarks/peer.py invgp    # some ten minutes on two cores; writes benchmarks/peer.csv, peer.md and peer.png

Its authors say that it was refactored since the paper and not run in years. It needs three changes to run with GPflow
2.11, all made here and none in the clone: TensorFlow Addons, which is no longer released and only serves its
nearest-neighbour rotations, is left out; ``SVGP.predict_f`` calls the code's own conditional with tensors, as GPflow's
did then; and what that prints while it is traced is dropped. Its angles and affine maps are one set for the whole
batch. Both models have the same parameters, so their estimates have the same mean, the bound, which the page shows.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
OUTPUTS, SPREAD, VARIANCE, LENGTHSCALE, NOISE = 10, 0.2, 0.01, 6.0, 0.02

#: columns that are drawn, and how their axes are called
PANELS = {"step_s": "s a step", "predict_s": "s to predict", "variance": "variance of the bound, nats²"}

#: name of a row: which code, its floating-point type, and its scheme
ROWS = {
    "markvdw/invgp, float64": ("theirs", "float64", ""),
    "markvdw/invgp, float32": ("theirs", "float32", ""),
    "orbitgp, the paper's scheme, float64": ("ours", "float64", "paper"),
    "orbitgp, two Sobol groups, float64": ("ours", "float64", "groups"),
    "orbitgp, two Sobol groups, mixed": ("ours", "mixed", "groups"),
}


def arrays(given: argparse.Namespace) -> dict[str, np.ndarray]:
    """Inducing points, a batch, new images, and a q that is not the prior."""
    from orbitgp.datasets import mnist, one_hot

    data, rng = mnist(), np.random.default_rng(0)
    train, M = data.train, given.inducing
    X = train.take(range(M + given.batch)).inputs().astype(np.float64)
    return {
        "Z": X[:M],
        "X": X[M:],
        "Y": one_hot(train.labels[M : M + given.batch], OUTPUTS),
        "new": data.test.take(given.new).inputs().astype(np.float64),
        "q_mu": rng.normal(size=(M, OUTPUTS)),
        "q_sqrt": np.tile(0.5 * np.eye(M), (OUTPUTS, 1, 1)),
    }


def theirs(
    given: argparse.Namespace, made: dict[str, np.ndarray], kind: str
) -> tuple[Any, Callable[[], Any], Callable[[Any], Any]]:
    """The model, its estimate of the bound, and its predictions."""
    import gpflow
    import tensorflow as tf

    gpflow.config.set_default_float(np.dtype(kind).type)
    sys.modules["tensorflow_addons"] = ModuleType("tensorflow_addons")
    sys.path.insert(0, str(given.clone))
    from invgp.inducing_variables import StochasticConvolvedInducingPoints
    from invgp.kernels import StochasticInvariant
    from invgp.kernels.orbits import GeneralSpatialTransform

    class Model(gpflow.models.SVGP):
        def predict_f(self, Xnew: Any, full_cov: bool = False, full_output_cov: bool = False) -> Any:
            with redirect_stdout(io.StringIO()):
                q_mu, q_sqrt = tf.convert_to_tensor(self.q_mu), tf.convert_to_tensor(self.q_sqrt)
                return gpflow.conditionals.conditional(
                    Xnew, self.inducing_variable, self.kernel, q_mu, q_sqrt=q_sqrt, white=self.whiten
                )

    with redirect_stdout(io.StringIO()):
        orbit = GeneralSpatialTransform(input_dim=784, minibatch_size=given.draws, initialization=SPREAD)
        base = gpflow.kernels.SquaredExponential(variance=VARIANCE, lengthscales=LENGTHSCALE)
        model = Model(
            StochasticInvariant(base, orbit),
            gpflow.likelihoods.Gaussian(NOISE),
            StochasticConvolvedInducingPoints(made["Z"]),
            num_latent_gps=OUTPUTS,
            num_data=given.batch,
            q_mu=made["q_mu"],
            q_sqrt=made["q_sqrt"],
        )

    def predict(X: Any) -> Any:
        orbit.minibatch_size = given.new_draws
        try:
            return model.predict_f(X)
        finally:
            orbit.minibatch_size = given.draws

    X, Y = (tf.constant(made[name], gpflow.default_float()) for name in ("X", "Y"))
    return model, lambda: model.elbo((X, Y)), predict


def ours(
    given: argparse.Namespace, made: dict[str, np.ndarray], precision: str, scheme: str
) -> tuple[Any, Callable[[], Any], Callable[[Any], Any]]:
    """As :func:`theirs`."""
    import gpflow
    import tensorflow as tf

    from orbitgp import orbits
    from orbitgp.inducing import BasePoints
    from orbitgp.kernels import Invariant
    from orbitgp.models import InvariantSVGP
    from orbitgp.schemes import Groups, paper_scheme

    base = gpflow.kernels.SquaredExponential(variance=VARIANCE, lengthscales=LENGTHSCALE)
    groups = scheme == "groups"
    model = InvariantSVGP(
        Invariant(base, orbits.Affine((28, 28), spread=SPREAD)),
        gpflow.likelihoods.Gaussian(NOISE),
        BasePoints(made["Z"]),
        num_latent_gps=OUTPUTS,
        num_data=given.batch,
        scheme=Groups(2, given.draws // 2) if groups else paper_scheme(given.draws),
        q_mu=made["q_mu"],
        q_sqrt=made["q_sqrt"][:1] if groups else made["q_sqrt"],
        precision=precision,
        prediction_samples=given.new_draws,
    )
    X, Y = tf.constant(made["X"], model.compute_dtype), tf.constant(made["Y"])
    return model, lambda: model.elbo((X, Y)), model.predict_f


def measure(given: argparse.Namespace, name: str) -> dict[str, float]:
    """Seconds of a step and of predictions, mean and variance of the estimates of the bound."""
    import tensorflow as tf
    import tf_keras

    made = arrays(given)
    code, kind, scheme = ROWS[name]
    model, bound, predict = theirs(given, made, kind) if code == "theirs" else ours(given, made, kind, scheme)
    estimate, predictions = tf.function(bound), tf.function(predict)
    drawn = np.array([float(estimate()) for _ in range(given.estimates)])
    new = tf.constant(made["new"], getattr(model, "compute_dtype", kind))
    predict_s = seconds(lambda: predictions(new), given.repeats)

    optimiser = tf_keras.optimizers.Adam(1e-3)
    optimiser.build(model.trainable_variables)

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = -bound()
        gradients = tape.gradient(loss, model.trainable_variables)
        optimiser.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    step_s = seconds(step, given.repeats)
    error = float(drawn.std(ddof=1) / np.sqrt(len(drawn)))
    found = {"step_s": step_s, "bound": float(drawn.mean()), "bound_error": error, "variance": float(drawn.var(ddof=1))}
    return found | {"predict_s": predict_s}


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """The median of some calls, after one that traces."""
    import tensorflow as tf

    def once() -> float:
        start = time.perf_counter()
        for result in tf.nest.flatten(call()):
            result.numpy()  # waits for the device
        return time.perf_counter() - start

    once()
    return float(np.median([once() for _ in range(repeats)]))


def write(frame: Any, folder: Path, command: str, given: argparse.Namespace) -> None:
    """peer.csv with everything, peer.md to read, peer.png to see."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from orbitgp.fitting.devices import describe
    from orbitgp_paper.analysis.formats import markdown_table

    frame.to_csv(folder / "peer.csv", float_format="%.6g")
    first = frame.iloc[0]
    head = ["code", "step, s", "of the first", "variance of the bound", "of the first", "bound ± standard error, nats"]
    rows = [
        [
            name,
            f"{row.step_s:.2f}",
            f"{row.step_s / first.step_s:.3f}",
            f"{row.variance:.3g}",
            f"{row.variance / first.variance:.3f}",
            f"{row.bound:,.1f} ± {row.bound_error:.1f}",
            f"{row.predict_s:.2f}",
        ]
        for name, row in frame.iterrows()
    ]
    head.append(f"predict {given.new:,}, s")
    lines = [
        "# Beside the authors' released code",
        "",
        "![Time and noise of a step](peer.png)",
        "",
        f"`{command}` on {describe()}, {os.cpu_count()} cores ({platform.machine()}). Batch {given.batch}, "
        f"{given.inducing} inducing points, {given.draws} draws, ten outputs, affine maps; predictions with "
        f"{given.new_draws} draws. Medians of {given.repeats} steps, {given.estimates} estimates of the bound at the "
        "same parameters. markvdw/invgp draws one set of maps for the whole batch, orbitgp one for each image. Models "
        "with groups have one covariance of q for all outputs, the others one for each output.",
        "",
        markdown_table(head, rows, [False] + 6 * [True]),
    ]
    (folder / "peer.md").write_text("\n".join(lines) + "\n")
    figure, axes = plt.subplots(1, len(PANELS), figsize=(10, 2.4), sharey=True, layout="constrained")
    colours = ["#b5654a" if ROWS[name][0] == "theirs" else "#2a6f97" for name in frame.index]
    for ax, (column, title) in zip(axes, PANELS.items(), strict=True):
        ax.bar_label(ax.barh(frame.index, frame[column], color=colours), fmt="{:.3g}", padding=3)
        ax.margins(x=0.15)
        ax.set_xlabel(title)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].invert_yaxis()
    figure.savefig(folder / "peer.png", dpi=150)


def main() -> None:
    """Reads the arguments, measures each row in a process of its own, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path, help="where markvdw/invgp lies")
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--draws", type=int, default=32)
    parser.add_argument("--inducing", type=int, default=750)
    parser.add_argument("--new", type=int, default=1000, help="images to predict")
    parser.add_argument("--new-draws", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3, help="steps and predictions, of which the median counts")
    parser.add_argument("--estimates", type=int, default=50, help="of the bound, for their variance")
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("--row", choices=ROWS, help="measure one row, and print it")
    given = parser.parse_args()
    if not (given.clone / "invgp").is_dir():
        parser.error(f"{given.clone} is no clone of markvdw/invgp: it has no folder invgp")
    if given.row:
        json.dump(measure(given, given.row), sys.stdout)
        return
    import pandas as pd

    rows = {}
    for name in ROWS:
        command = [sys.executable, __file__, *sys.argv[1:], "--row", name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rows[name] = json.loads(done.stdout.splitlines()[-1])
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("code")
    words = [given.clone.name if word == str(given.clone) else word for word in sys.argv[1:]]
    write(frame, given.folder, " ".join(["python benchmarks/peer.py", *words]), given)


if __name__ == "__main__":
    main()
