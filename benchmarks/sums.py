"""
Is a sum of processes on patches and whole images worth its time? Bounds and test errors beside whole images alone.

    python benchmarks/sums.py    # written to benchmarks/sums.csv and sums.md

Each model has the first digits of MNIST, a learned affine map and the same training; a model's components are written
as patch size : stride : inducing points, 28:1 being the whole image.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pandas as pd

from orbitgp.files import write_text
from orbitgp.fitting.loop import fit
from orbitgp_paper.analysis.formats import markdown_table
from orbitgp_paper.config import Run, load
from orbitgp_paper.experiments.build import build_model, recipe, targets
from orbitgp_paper.experiments.images import make_dataset
from orbitgp_paper.spec import RunSpec

HERE = Path(__file__).resolve().parent
SIDE = 28


def components(words: str) -> list[dict[str, int]]:
    """
    :param words: ``"5:2:100+28:1:150"``.
    :return: what a configuration says of these.
    """
    found = []
    for word in words.split("+"):
        patch, stride, inducing = map(int, word.split(":"))
        found.append({"inducing": inducing} | ({"patch": patch, "stride": stride} if patch < SIDE else {}))
    return found


def specification(words: str, given: argparse.Namespace) -> RunSpec:
    """One model's, by the rates of the quick size."""
    return (
        load("quick")
        .spec(Run("mnist", "affine", 0))
        .changed(
            seed=given.seed,
            dataset={"train": given.images, "test": given.test},
            components=components(words),
            scheme={"size": given.draws},
            optimiser={"steps": given.steps, "batch": given.batch, "batches": "drawn", "inducing_scale": "row"},
            final_pass={"samples": given.last_draws},
            evaluation={"count": 1, "samples": given.last_draws},
        )
    )


def measure(words: str, given: argparse.Namespace) -> dict[str, float | str]:
    """Trains one model."""
    spec = specification(words, given)
    data = make_dataset(spec.dataset)
    (X, Y), test = ((part.inputs(), targets(spec, data, part)) for part in (data.train, data.test))
    begin = time.monotonic()
    fitted = fit(
        build_model(spec, data),
        (X, Y),
        recipe(spec),
        seed=spec.seed,
        test=test,
        evaluations=1,
        final_samples=spec.final_pass.samples,
        name="",
    )
    assert fitted.score is not None
    return {
        "components": words,
        "bound": fitted.elbo,
        "std_error": fitted.elbo_std_error,
        "test_error": fitted.score.error,
        "seconds": time.monotonic() - begin,
    }


def report(frame: pd.DataFrame, command: str) -> str:
    """
    :param frame: columns ``components``, ``bound``, ``std_error``, ``test_error`` and ``seconds``.
    """
    cells = [
        (
            row["components"].replace("+", " + "),
            f"{row['bound']:,.0f} ± {row['std_error']:,.0f}",
            f"{row['test_error']:.2f}",
            f"{row['seconds']:,.0f}",
        )
        for row in frame.to_dict("records")
    ]
    head = ["components", "bound, nats", "test error, %", "seconds"]
    return (
        "Sums of processes under one learned affine map, after the same number of steps. Components are patch size :\n"
        "stride : inducing points; 28:1 is the whole image. ± is the standard error over draws. One seed;\n"
        "seconds are of a machine that had other work too.\n\n"
        f"    {command}\n\n{markdown_table(head, cells, [False, True, True, True])}"
    )


def main() -> None:
    """Reads the arguments and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--draws", type=int, default=2, help="in each of two groups, in training")
    parser.add_argument(
        "--last-draws", type=int, default=8, help="for the bound of all images, and for each test image"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="+", default=["5:2:100+10:3:100+28:1:150", "28:1:350"])
    parser.add_argument("--folder", type=Path, default=HERE, help="where sums.csv and sums.md go")
    given = parser.parse_args()
    rows = []
    for words in given.models:
        rows.append(measure(words, given))
        sys.stderr.write(f"{rows[-1]}\n")
    frame = pd.DataFrame(rows)
    write_text(given.folder / "sums.csv", frame.to_csv(index=False, float_format="%.6g"))
    names = ("images", "test", "steps", "batch", "draws", "last_draws", "seed")
    numbers = [f"--{name.replace('_', '-')} {getattr(given, name)}" for name in names]
    text = report(frame, " ".join(["python benchmarks/sums.py", *numbers, "--models", *given.models]))
    write_text(given.folder / "sums.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
