"""Checkpoints that survive any kill."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from orbitgp.files import PART, DamagedFile, read_npz, write_npz

KEPT = 2  # the newest, and the one before in case the newest is damaged
PATTERN = "checkpoint-*.npz"


@dataclass
class History:
    """Curves, times and events of a training so far; checkpoints have it, so that a resumed run has all of it."""

    rows: list[dict[str, float | None]] = field(default_factory=list)  #: rows of metrics.csv
    timing: list[tuple[int, float]] = field(default_factory=list)  #: step and seconds
    events: list[dict[str, Any]] = field(default_factory=list)  #: numerical trouble and what was done about it
    seconds: float = 0.0
    resumed: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A state to come back to: the values of all variables, and the history up to there."""

    values: dict[str, np.ndarray]
    history: History

    @classmethod
    def take(cls, variables: Mapping[str, tf.Variable], history: History) -> Snapshot:
        """The present state; nothing that happens later changes it."""
        return cls({name: variable.numpy() for name, variable in variables.items()}, copy.deepcopy(history))

    def bring_back(self, variables: Mapping[str, tf.Variable]) -> History:
        """
        Restores this state.

        :return: a copy of the history up to there, to be continued.
        """
        for name, variable in variables.items():
            variable.assign(self.values[name])
        return copy.deepcopy(self.history)


def data_digest(*arrays: np.ndarray) -> str:
    """
    :return: a sha256 over types, shapes and values, in hexadecimal digits.
    """
    total = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        total.update(f"{array.dtype.str} {array.shape}".encode())
        total.update(array.data)
    return total.hexdigest()


def save(folder: Path, snapshot: Snapshot, identity: str) -> Path:
    """
    Writes a checkpoint whole, then removes all but the newest ``KEPT``.

    :param identity: digest of the data, settings and code that it belongs to.
    """
    path = folder / f"checkpoint-{int(snapshot.values['step']):09d}.npz"
    about = np.array(json.dumps({"identity": identity, "history": asdict(snapshot.history)}))
    write_npz(path, {"about": about, **snapshot.values})
    for old in sorted(folder.glob(PATTERN))[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def newest(folder: Path, variables: Mapping[str, tf.Variable], identity: str) -> tuple[Snapshot | None, list[str]]:
    """
    :param variables: variables by name; a checkpoint must have values of their shapes and types.
    :return: the newest whole checkpoint, or None if there is none; and a line about each that could not be used.
    """
    trouble: list[str] = []
    for path in sorted(folder.glob(PATTERN), reverse=True):
        try:
            return _load(path, variables, identity), trouble
        except DamagedFile as error:
            trouble.append(f"checkpoint passed over: {error}")
    return None, trouble


def clear(folder: Path) -> None:
    """Removes the checkpoints of a run that has ended; the lock stays with its holder."""
    for path in folder.glob(PATTERN):
        path.unlink(missing_ok=True)


def discard_leftovers(folder: Path) -> None:
    """Removes partial files that a kill left; call it only while holding the folder's lock."""
    for path in folder.glob(f".*{PART}"):
        with suppress(FileNotFoundError):
            path.unlink()


def _load(path: Path, variables: Mapping[str, tf.Variable], identity: str) -> Snapshot:
    arrays = read_npz(path, ["about", *variables])
    try:
        about = json.loads(str(arrays["about"]))
        belongs_to = str(about["identity"])
        history = History(**about["history"])
        history.timing = [(int(step), float(seconds)) for step, seconds in history.timing]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFile(f"{path} does not say what it is: {error}") from error
    if belongs_to != identity:
        raise DamagedFile(f"{path} belongs to other data or settings, {belongs_to[:12]}")
    for name, variable in variables.items():
        if arrays[name].shape != tuple(variable.shape) or arrays[name].dtype != variable.dtype.as_numpy_dtype:
            raise DamagedFile(
                f"{path}: {name} is {arrays[name].dtype} {list(arrays[name].shape)}, "
                f"this run has {variable.dtype.name} {variable.shape.as_list()}"
            )
    return Snapshot({name: arrays[name] for name in variables}, history)
