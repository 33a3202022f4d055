"""A whole training: from a specification and data to the files of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from gpflow.utilities import parameter_dict

from orbitgp import files
from orbitgp.datasets import ImageData
from orbitgp.fitting import checkpoint
from orbitgp.fitting.checkpoint import History, data_digest
from orbitgp.fitting.lock import beside, hold
from orbitgp.fitting.loop import Fitted, fit
from orbitgp.fitting.scores import named_parameters
from orbitgp.fitting.stopping import listen
from orbitgp.models import InvariantSVGP
from orbitgp_paper import sources
from orbitgp_paper.experiments.build import build_model, recipe, targets
from orbitgp_paper.runs.provenance import peak_memory, provenance
from orbitgp_paper.spec import RunSpec, canonical, digest, own_modules


def train(
    spec: RunSpec,
    data: ImageData,
    folder: Path,
    checkpoints: Path,
    log: Callable[[str], None],
    *,
    checkpoint_every: float = 60.0,
    tensorboard: Path | None = None,
) -> None:
    """
    Trains, and leaves metrics.csv, timing.csv, final.json, provenance.json, params.npz and config.yaml in ``folder``,
    each whole. While it trains, the curves grow in a folder of its own under ``checkpoints``, from which a killed
    training resumes as if nothing had happened.

    :param spec: everything that decides the result, besides code and data.
    :param log: called with a line of text now and then.
    :param checkpoint_every: seconds between two checkpoints.
    :param tensorboard: folder for TensorBoard; none if None.
    """
    X, Y = data.train.inputs(np.float32), targets(spec, data, data.train)
    test = data.test.inputs(np.float32), targets(spec, data, data.test)
    parts = (canonical(spec), sources.training_digest(*own_modules(spec.orbit)), data_digest(X, Y, *test))
    identity = hashlib.sha256("".join(parts).encode()).hexdigest()
    workplace = checkpoints / f"{spec.experiment}-{spec.variant}-seed{spec.seed}-{identity[:16]}"
    # the results' lock too: an edited specification has another workplace, and the same folder for its results
    with hold(folder, beside(checkpoints, folder)), listen(log) as stop:
        made_by = provenance()
        checkpoint.discard_leftovers(folder)
        model = build_model(spec, data)
        fitted = fit(
            model,
            (X, Y),
            recipe(spec),
            seed=spec.seed,
            test=test,
            evaluations=spec.evaluation.count,
            final_samples=spec.final_pass.samples,
            refit=spec.final_pass.refit,
            checkpoints=workplace,
            identity=identity,
            checkpoint_every=checkpoint_every,
            log=log,
            on_report=lambda history: _write_rows(workplace, history),
            tensorboard=tensorboard,
            stop=stop,
            name=f"{spec.variant}, seed {spec.seed}",
        )
        with stop.only_noted():  # it takes no time worth stopping for
            _write(folder, spec, data, model, fitted, made_by)
            checkpoint.clear(workplace)


def _write(
    folder: Path, spec: RunSpec, data: ImageData, model: InvariantSVGP, fitted: Fitted, made_by: dict[str, Any]
) -> None:
    """
    The files of the run; final.json last, so that its presence says that all are there. It has the sums of those that
    are the same in every run of this specification, and provenance.json has those of the rest.
    """
    score = fitted.score
    assert score is not None
    final: dict[str, Any] = {
        "experiment": spec.experiment,
        "variant": spec.variant,
        "label": spec.label,
        "seed": spec.seed,
        "steps": fitted.steps,
        "elbo": _finite(fitted.elbo),
        "elbo_std_error": _finite(fitted.elbo_std_error),
        "test_error": _finite(score.error),
        "test_nll": _finite(score.nll),
        "test_class_nll": _finite(score.class_nll),
        "test_calibration_error": _finite(score.calibration_error),
        "train_size": len(data.train),
        "test_size": len(data.test),
        "parameters": named_parameters(model),
        "events": fitted.history.events,
        "diverged": fitted.diverged,
        "config_digest": digest(spec),
    }
    _write_rows(folder, fitted.history)
    files.write_npz(folder / "params.npz", _parameters(model), compress=True)
    settings = yaml.safe_dump(spec.model_dump(mode="json", exclude_none=True), sort_keys=True, allow_unicode=True)
    files.write_text(folder / "config.yaml", settings)
    final["files"] = files.sums(folder, ("config.yaml", "metrics.csv", "params.npz"))
    text = files.json_text(final)
    origin = {
        "wall_s": round(fitted.history.seconds, 1),
        "resumed": fitted.history.resumed,
        "config_digest": digest(spec),
        "files": {"final.json": hashlib.sha256(text.encode()).hexdigest()} | files.sums(folder, ["timing.csv"]),
    }
    files.write_json(folder / "provenance.json", made_by | peak_memory() | origin)
    files.write_text(folder / "final.json", text)


def _finite(number: float) -> float | None:
    """None where there is no number: JSON has no NaN, and a training that was given up may have nothing else."""
    return float(number) if np.isfinite(number) else None


def _parameters(model: InvariantSVGP) -> dict[str, np.ndarray]:
    """
    By GPflow's path, less the leading dot, and the jitter that the training ended with. Matrices are in single
    precision, which halves the file; with 150 inducing points it moved the bound by 0.0002 nats.
    """
    found = {path.lstrip("."): np.asarray(parameter) for path, parameter in parameter_dict(model).items()}
    found = {path: values.astype(np.float32) if values.ndim > 1 else values for path, values in found.items()}
    return found | {"jitter": model.jitter.numpy()}


def _write_rows(folder: Path, history: History) -> None:
    header = list(history.rows[0])
    files.write_csv(folder / "metrics.csv", header, [[row[name] for name in header] for row in history.rows])
    files.write_csv(folder / "timing.csv", ["step", "wall_s"], history.timing)
