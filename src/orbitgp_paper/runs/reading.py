"""The files that runs leave, as two frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from orbitgp.files import DamagedFile, check_sums, read_json
from orbitgp_paper.analysis.formats import read_table
from orbitgp_paper.spec import RunSpec, read_spec
from orbitgp_paper.yaml_files import ConfigError

ANGLE = "orbit.alpha"  #: the learned angle's name among the parameters, in degrees

#: columns that every metrics.csv begins with
MEASURED = ("step", "elbo", "test_error", "test_nll")

#: what every final.json says: the numbers (null: not finite), what is of one type, and the sums of its files
NUMBERS = ("elbo", "elbo_std_error", "test_error", "test_nll")
PROBABILITIES = ("test_class_nll", "test_calibration_error")  #: numbers that not every final.json has
KINDS: dict[str, type] = {
    **dict.fromkeys(("experiment", "variant", "label"), str),
    **dict.fromkeys(("seed", "steps", "train_size", "test_size"), int),
    "diverged": bool,
    "parameters": dict,
    "events": list,
}
FINAL = (*KINDS, *NUMBERS, "files")

#: what is taken from provenance.json
ORIGIN = ("wall_s", "device", "peak_memory_mb", "resumed", "commit", "dirty")


@dataclass(frozen=True)
class Runs:
    """
    What a number of runs left behind; rows in the order in which the runs were given.

    - ``metrics``: a row for each evaluation: experiment, variant, label, seed, dataset, alpha_true (degrees, of the
      parity data; NaN for others), then step, elbo, test_error, test_nll and the parameters by name.
    - ``finals``: a row for each run: the same identity, the final numbers, ``originals`` (training images that are no
      copies of others), ``late_rise`` (how far the bound's curve
      lies higher in the last tenth of the steps than in the one before), ``start`` (the angle that it began with, in
      degrees), ``optimiser``, ``transform`` (of the angle), ``shared`` (whether all images of a batch have the same
      draws), ``events`` (how many) and ``event_kinds``, ``diverged``, the parameters by name, the width
      ``orbit.width.*`` of each learned interval, wall_s, device and the rest of the provenance.

    What a run does not have, or what is not finite, is NaN.
    """

    metrics: pd.DataFrame
    finals: pd.DataFrame


def read_runs(folders: Iterable[Path]) -> Runs:
    """Reads the folders of runs that have ended, ``…/{experiment}/{variant}/seed{n}``."""
    metrics, finals, seen = [], [], set()
    for folder in map(Path, folders):
        final, rows = _read_run(folder)
        run = (final["experiment"], final["variant"], final["seed"])
        if run in seen:
            raise ValueError(f"{folder} is given a second time")
        seen.add(run)
        finals.append(final)
        metrics.append(rows)
    if not finals:
        raise ValueError("there are no runs to read")
    return Runs(pd.concat(metrics, ignore_index=True), pd.DataFrame(finals))


def _read_run(folder: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    final = _read_block(folder / "final.json", FINAL)
    wanted = (final["experiment"], final["variant"], f"seed{final['seed']}")
    if folder.absolute().parts[-3:] != wanted:  # a folder that was copied must not pass for another run
        raise DamagedFile(f"{folder / 'final.json'} is of {'/'.join(wanted)}, not of the folder that it lies in")
    origin = _read_block(folder / "provenance.json", ("wall_s", "device", "files"))
    spec = _read_spec(folder / "config.yaml")
    identity = {key: final[key] for key in ("experiment", "variant", "label", "seed")} | {
        "dataset": spec.dataset.name,
        "alpha_true": _number(getattr(spec.dataset, "alpha", None)),
    }
    metrics = _read_metrics(folder / "metrics.csv")
    for file, content in (("provenance.json", origin), ("final.json", final)):
        check_sums(folder, content["files"], folder / file)
    for place, (name, value) in enumerate(identity.items()):
        metrics.insert(place, name, value)
    kinds = Counter(str(event.get("kind")) for event in final["events"])
    parameters = {name: _number(value) for name, value in final["parameters"].items()}
    row = {
        **identity,
        "train_size": final["train_size"],
        "test_size": final["test_size"],
        "originals": final["train_size"] // (1 + _copies(spec)),
        "inducing": spec.inducing_points,
        "steps": final["steps"],
        **{name: _number(final.get(name)) for name in (*NUMBERS, *PROBABILITIES)},
        "late_rise": _late_rise(metrics),
        "start": float(metrics[ANGLE].iloc[0]) if ANGLE in metrics else float("nan"),
        "optimiser": spec.optimiser.kind,
        "transform": getattr(spec.orbit, "transform", None),
        "shared": getattr(spec.scheme, "shared", False),
        "diverged": bool(final["diverged"]),
        "events": len(final["events"]),
        "event_kinds": ", ".join(kind if count == 1 else f"{kind} ×{count}" for kind, count in sorted(kinds.items())),
        **parameters,
        **_widths(parameters),
        **{name: origin.get(name) for name in ORIGIN},
    }
    return row, metrics


def _copies(spec: RunSpec) -> int:
    augment = getattr(spec.dataset, "augment", None)
    return augment.copies if augment else 0


def _read_block(path: Path, names: Iterable[str]) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise DamagedFile(f"{path} must hold a block of keys, not {type(content).__name__}")
    if missing := [name for name in names if name not in content]:
        raise DamagedFile(f"{path} lacks {', '.join(missing)}")
    for name, kind in KINDS.items():
        if name in content and type(content[name]) is not kind:
            raise DamagedFile(f"{path}: {name} must be of type {kind.__name__}, not {content[name]!r}")
    own = {name: content[name] for name in (*NUMBERS, *PROBABILITIES) if name in content}
    numbers = {**content.get("parameters", {}), **own}
    for name, value in numbers.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise DamagedFile(f"{path}: {name} must be a number, not {value!r}")
    if wrong := [event for event in content.get("events", []) if not isinstance(event, dict)]:
        raise DamagedFile(f"{path}: an event must be a block of keys, not {wrong[0]!r}")
    return content


def _read_spec(path: Path) -> RunSpec:
    path.stat()  # raises where it is missing
    try:
        return read_spec(path)
    except ConfigError as error:
        raise DamagedFile(f"{error}; this is not the specification of a run") from error


def _read_metrics(path: Path) -> pd.DataFrame:
    metrics = read_table(path)
    if missing := [name for name in MEASURED if name not in metrics]:
        raise DamagedFile(f"{path} lacks the columns {', '.join(missing)}")
    if not len(metrics):
        raise DamagedFile(f"{path} has no rows")
    for name in metrics:
        if not pd.api.types.is_numeric_dtype(metrics[name]) and metrics[name].notna().any():
            wrong = next(value for value in metrics[name] if not isinstance(value, int | float))
            raise DamagedFile(f"{path}: {name} must be numbers, but holds {wrong!r}")
    steps = metrics["step"]
    if steps.isna().any() or not (steps.diff().dropna() > 0).all():
        raise DamagedFile(f"{path}: step must increase from row to row, but is {steps.tolist()[:20]}")
    # a column without a number yet, such as the bound of a training of no steps
    return metrics.astype({name: float for name in metrics if name != "step"})


def _number(value: float | None) -> float:
    """:return: ``value``, or NaN where there is none, as JSON has no NaN of its own"""
    return float("nan") if value is None else float(value)


def _late_rise(metrics: pd.DataFrame) -> float:
    """:return: mean bound of the curve in the last tenth of the steps less that in the tenth before (NaN: not there)"""
    tenth = metrics["step"] / metrics["step"].iloc[-1] * 10
    return float(metrics["elbo"][tenth > 9].mean() - metrics["elbo"][(tenth > 8) & (tenth <= 9)].mean())


def _widths(parameters: Mapping[str, float]) -> dict[str, float]:
    """:return: |upper − lower| of each interval; its two ends may have changed places in training"""
    found = {}
    for name, lower in parameters.items():
        upper = name.replace(".lower.", ".upper.")
        if upper != name and upper in parameters:
            found[name.replace(".lower.", ".width.")] = abs(parameters[upper] - lower)
    return found
