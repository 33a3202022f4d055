"""Comparison of orbits by their evidence, without a validation set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orbitgp.estimators.base import InvariantEstimator
from orbitgp.estimators.classifier import InvariantClassifier


@dataclass(frozen=True)
class Comparison:
    """Models of the same data under several orbits, the highest evidence first."""

    names: tuple[str, ...]  #: names of the orbits
    models: tuple[Any, ...]  #: fitted estimators

    @property
    def best(self) -> Any:
        """The fitted estimator with the highest evidence."""
        return self.models[0]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each orbit: ``orbit``, ``evidence``, ``std_error``, ``gap`` to the best, ``seconds``."""
        top = self.best.evidence_
        return [
            {
                "orbit": name,
                "evidence": model.evidence_,
                "std_error": model.evidence_std_error_,
                "gap": model.evidence_ - top,
                "seconds": model.seconds_,
            }
            for name, model in zip(self.names, self.models, strict=True)
        ]

    def table(self) -> str:
        """The rows as aligned text."""
        width = max(len("orbit"), *(len(name) for name in self.names))
        lines = [f"{'orbit':<{width}}  {'evidence':>12}  {'± s.e.':>7}  {'below the best':>14}  {'seconds':>7}"]
        for row in self.rows:
            gap = f"{-row['gap']:,.0f}" if row["gap"] else "chosen"
            numbers = f"{row['evidence']:>12,.0f}  {row['std_error']:>7,.1f}  {gap:>14}  {row['seconds']:>7.0f}"
            lines.append(f"{row['orbit']:<{width}}  {numbers}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()

    def plot(self) -> Any:
        """A matplotlib figure: by how much each orbit's evidence is below the best. Needs the extra ``plots``."""
        from orbitgp.estimators.plots import plot_evidence

        evidence, errors = (np.array([row[name] for row in self.rows]) for name in ("evidence", "std_error"))
        return plot_evidence(list(self.names), evidence, errors)


def compare(
    images: Any,
    targets: Any,
    orbits: Sequence[Any] = ("none", "rotation", "affine", "local"),
    estimator: InvariantEstimator | None = None,
    **settings: Any,
) -> Comparison:
    """
    Fits a model with each orbit, with the same settings, and ranks the orbits by their evidence.

    :param images: training images, as for the estimator's ``fit``.
    :param targets: labels or numbers, as for the estimator's ``fit``.
    :param orbits: names, or whatever else an estimator takes.
    :param estimator: the estimator to fit; a classifier if None.
    :param settings: settings of the estimator, such as ``steps``.
    """
    from sklearn.base import clone

    if not orbits:
        raise ValueError("orbits must name at least one")
    found: list[tuple[str, Any]] = []
    for orbit in orbits:
        model = clone(estimator or InvariantClassifier()).set_params(orbit=orbit, **settings)
        name = orbit if isinstance(orbit, str) else getattr(orbit, "__name__", type(orbit).__name__)
        if model.fit(images, targets).interrupted_:
            raise KeyboardInterrupt(f"stopped in the training of {name}: unequally trained models cannot be compared")
        found.append((name, model))
    names, models = zip(*sorted(found, key=lambda pair: -pair[1].evidence_), strict=True)
    return Comparison(names, models)
