"""Loading of a fitted estimator of either kind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from orbitgp.estimators import storage
from orbitgp.estimators.classifier import InvariantClassifier
from orbitgp.estimators.regressor import InvariantRegressor
from orbitgp.files import DamagedFile

KINDS = {kind.__name__: kind for kind in (InvariantClassifier, InvariantRegressor)}


def load(path: str | os.PathLike[str], orbit: Any = None) -> Any:
    """
    Reads a fitted estimator from its file.

    :param path: a file that an estimator's ``save`` wrote.
    :param orbit: the orbit that was passed to the estimator, if it was not one of the names.
    :return: an :class:`InvariantClassifier` or :class:`InvariantRegressor`, fitted.
    """
    about, arrays = storage.read(Path(path))
    if about["estimator"] not in KINDS:
        raise DamagedFile(f"{path} holds an unknown estimator, {about['estimator']!r}")
    return KINDS[about["estimator"]]._from_file(Path(path), about, arrays, orbit)
