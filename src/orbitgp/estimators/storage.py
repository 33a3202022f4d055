"""One file for each model: plain arrays, and a manifest that says what they are. It holds no code, and none is run."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from orbitgp import __version__, files
from orbitgp.files import DamagedFile

FORMAT, VERSION = "orbitgp model", 1
MANIFEST = "manifest"

#: what a manifest must have, and its type
FIELDS: dict[str, type | tuple[type, ...]] = {
    "estimator": str,
    "orbit": (str, type(None)),
    "image_shape": list,
    "images": int,
    "sizes": dict,
    "settings": dict,
    "evidence": float,
    "evidence_std_error": float,
    "seconds": float,
    "versions": dict,
}


def write(path: Path, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """
    :param about: what the estimator says of itself, as JSON types.
    :param arrays: parameters by name.
    """
    import gpflow
    import tensorflow as tf

    versions = {"orbitgp": __version__, "tensorflow": tf.__version__, "gpflow": gpflow.__version__}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "versions": versions | {"numpy": np.__version__},
        "sums": {name: _sum(array) for name, array in arrays.items()},
        **about,
    }
    files.write_npz(path, {MANIFEST: np.array(json.dumps(manifest, allow_nan=False)), **arrays}, compress=True)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """
    :return: the manifest and the arrays, whose checksums have been verified.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    arrays = files.read_npz(path)
    manifest = _manifest(path, arrays.pop(MANIFEST, None))
    for name, kind in FIELDS.items():
        if not isinstance(manifest.get(name), kind) or isinstance(manifest.get(name), bool):
            raise DamagedFile(f"{path}: {name} in its manifest is {manifest.get(name)!r}")
    if manifest.get("sums") != {name: _sum(array) for name, array in arrays.items()}:
        raise DamagedFile(f"{path}: its arrays are not those that its manifest lists")
    if not all(array.dtype.kind in "fi" and np.all(np.isfinite(array)) for array in arrays.values()):
        raise DamagedFile(f"{path}: every array must hold finite numbers only")
    return manifest, arrays


def _manifest(path: Path, found: np.ndarray | None) -> dict[str, Any]:
    try:
        manifest = json.loads(str(found))
        form, number = manifest["format"], manifest["version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DamagedFile(f"{path} is not a file of an orbitgp model: it has no manifest") from None
    if form != FORMAT or type(number) is not int or number < 1:
        raise DamagedFile(f"{path} is not a file of an orbitgp model, but of {form!r}")
    if number > VERSION:
        raise ValueError(f"{path} was written by a newer orbitgp: its format is {number}, this one reads {VERSION}")
    return manifest


def _sum(array: np.ndarray) -> str:
    array = np.ascontiguousarray(array)
    return hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes()).hexdigest()
