"""
Which orbit? Does the one of the highest bound have the lowest error, over data sets and numbers of images?

    python benchmarks/which_orbit.py    # an hour on two cores; the same command goes on where it was stopped

`orbitgp.compare` fits a classifier with each orbit. Data sets are those of `few_*` in config/beyond.yaml: digits as
they are, turned by any angle, enlarged or shrunk and shifted, and clothes. Errors are those of the test images. It
writes benchmarks/which_orbit.csv, .md and .png.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from cells import measure_all

from orbitgp.files import write_text
from orbitgp_paper.analysis.formats import markdown_table
from orbitgp_paper.analysis.monitor import rank_correlation

HERE = Path(__file__).resolve().parent
DATA = {"mnist": "digits", "turned": "digits, turned", "moved": "digits, moved", "fashion": "clothes"}
CELL = ["data", "images"]


def rotation_and_local(shape: tuple[int, int, int]) -> Any:
    """A rotation, then a local deformation."""
    from orbitgp import orbits

    return orbits.Composed([orbits.Rotation(shape, 10), orbits.LocalDeformation(shape)])


#: what `compare` is given, by what the page calls it
ORBITS: dict[str, str | Callable[[tuple[int, int, int]], Any]] = {
    "none": "none",
    "rotation": "rotation",
    "translation": "translation",
    "scale": "scale",
    "affine": "affine",
    "affine by parts": "affine_parts",
    "local": "local",
    "rotation, local": rotation_and_local,
}
MARKERS = "o^v<sPD*"


def measure(
    name: str, count: int, seed: int, *, orbits: list[str], test: int | None, settings: dict[str, int]
) -> list[dict[str, Any]]:
    """A row for each orbit: bound and error of its model."""
    from orbitgp import compare
    from orbitgp_paper.config import load
    from orbitgp_paper.experiments.images import make_dataset

    data = make_dataset(load("beyond").datasets[f"{name}_{count}"])
    tested = data.test if test is None else data.test.take(test)
    given = [ORBITS[orbit] for orbit in orbits]
    found = compare(data.train.images, data.train.labels, given, verbose=False, seed=seed, **settings)
    called = {orbit if isinstance(orbit, str) else orbit.__name__: name for name, orbit in ORBITS.items()}
    rows = []
    for row, model in zip(found.rows, found.models, strict=True):
        orbit, error = called[row["orbit"]], 100 * (1 - model.score(tested.images, tested.labels))
        measured = {
            "elbo": row["evidence"],
            "std_error": row["std_error"],
            "test_error": error,
            "fit_s": row["seconds"],
        }
        rows.append({"data": name, "images": count, "orbit": orbit, "seed": seed, **measured})
        print(f"{name}, {count:,} images, {orbit}: {error:.2f} %", file=sys.stderr, flush=True)
    return rows


def verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    """For each data set and number of images: what the bound chooses, what is best, and Spearman's ρ of the two."""
    rows = []
    means = frame.groupby([*CELL, "orbit"], sort=False)[["elbo", "test_error"]].mean().reset_index()
    for (name, count), own in means.groupby(CELL, sort=False):
        chosen, best = own.loc[own.elbo.idxmax()], own.loc[own.test_error.idxmin()]
        rows.append((name, count, chosen.orbit, chosen.test_error, best.orbit, best.test_error, rank_correlation(own)))
    return pd.DataFrame(rows, columns=[*CELL, "chosen", "chosen_error", "best", "best_error", "rank"])


def report(frame: pd.DataFrame) -> str:
    """How often the bound chooses well, then each data set."""
    found = verdicts(frame)
    regret, ranks = found.chosen_error - found.best_error, found["rank"]
    cells = [
        [DATA[name], f"{count:,}", chosen, f"{error:.2f}", best, f"{least:.2f}", _signed(rank)]
        for name, count, chosen, error, best, least, rank in found.itertuples(index=False)
    ]
    head = ["data", "images", "chosen by the bound", "its error, %", "lowest error", "%", "rank correlation"]
    every = frame.groupby([*CELL, "orbit"], sort=False)[["elbo", "test_error", "fit_s"]].mean().reset_index()
    all_cells = [
        [DATA[name], f"{count:,}", orbit, f"{bound:,.0f}", f"{error:.2f}", f"{seconds:.0f}"]
        for name, count, orbit, bound, error, seconds in every.itertuples(index=False)
    ]
    all_head = ["data", "images", "orbit", "bound, nats", "test error, %", "fit, s"]
    seeds = frame.seed.nunique()
    return (
        "# Which orbit? Let the evidence choose\n\n"
        f"In {(regret == 0).sum()} of {len(found)} cases the orbit of the highest bound has the lowest test error.\n"
        f"At worst its error is {regret.max():.2f} points above the lowest. The rank correlation of bound and error\n"
        f"over orbits is between {_signed(ranks.min())} and {_signed(ranks.max())}; −1 says that a higher bound\n"
        "always goes with a lower error.\n\n"
        "![Error and bound by orbit](which_orbit.png)\n\n"
        f"    python benchmarks/which_orbit.py {frame.command.iloc[0]}\n\n"
        f"On {frame.device.iloc[0]}. {'One seed' if seeds == 1 else f'Means of {seeds} seeds'}.\n\n"
        f"{markdown_table(head, cells, [False, True, False, True, False, True, True])}\n"
        "Every orbit:\n\n"
        f"{markdown_table(all_head, all_cells, [False, True, False, True, True, True])}"
    )


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def draw(frame: pd.DataFrame, file: Path) -> None:
    """Error over the bound's gap to the best: a column of panels for each data set, a row for each number of images."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names, counts = list(frame.data.unique()), sorted(frame.images.unique())
    size = (2.7 * len(names) + 1.6, 2.4 * len(counts) + 0.3)
    figure, panels = plt.subplots(len(counts), len(names), figsize=size, layout="constrained", squeeze=False)
    for row, count in zip(panels, counts, strict=True):
        for panel, name in zip(row, names, strict=True):
            own = frame[(frame.images == count) & (frame.data == name)].groupby("orbit")[["elbo", "test_error"]].mean()
            below = (own.elbo.max() - own.elbo) / count
            for number, orbit in enumerate(ORBITS):
                if orbit in own.index:
                    place = below[orbit], own.test_error[orbit]
                    panel.plot(*place, MARKERS[number], color=f"C{number}", markersize=6, label=orbit, clip_on=False)
            panel.set_title(f"{DATA[name]}, {count:,}", fontsize=9)
            panel.invert_xaxis()  # better to the right
            panel.set_ylim(0, 1.08 * own.test_error.max())
            panel.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel("test error, %")
    for panel in panels[-1]:
        panel.set_xlabel("nats an image below the best")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def main() -> None:
    """Reads the arguments and writes table, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=[*DATA], choices=[*DATA])
    parser.add_argument("--sizes", type=int, nargs="+", default=[312, 1250], help="numbers of images")
    parser.add_argument("--orbits", nargs="+", default=[*ORBITS], choices=[*ORBITS])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, help="instead of those that the estimator chooses")
    parser.add_argument("--test", type=int, help="test images, instead of all")
    parser.add_argument("--folder", type=Path, default=HERE)
    given = parser.parse_args()
    settings = {} if given.steps is None else {"steps": given.steps}
    how = partial(measure, orbits=given.orbits, test=given.test, settings=settings)
    cells = [(name, count, seed) for count in given.sizes for name in given.data for seed in range(given.seeds)]
    file, command = given.folder / "which_orbit.csv", shlex.join(sys.argv[1:])
    frame = measure_all(file, command, [*CELL, "seed"], cells, how)
    draw(frame, given.folder / "which_orbit.png")
    write_text(given.folder / "which_orbit.md", report(frame))
    sys.stdout.write((given.folder / "which_orbit.md").read_text())


if __name__ == "__main__":
    main()
