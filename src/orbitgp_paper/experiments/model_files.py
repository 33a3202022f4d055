"""A trained run as a file that :func:`orbitgp.load` reads, for predictions without the workflow."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from orbitgp.datasets import ImageData
from orbitgp.estimators import storage
from orbitgp.estimators.base import unconstrained_variables
from orbitgp.estimators.classifier import InvariantClassifier
from orbitgp.estimators.sizes import Sizes
from orbitgp.files import read_json
from orbitgp.fitting.scores import named_parameters
from orbitgp_paper.experiments.build import load_trained
from orbitgp_paper.spec import GaussianLikelihood, GroupScheme, read_spec

#: the orbits of specifications by the estimator's names
ORBITS = {"identity": "none", "rotation": "rotation", "affine": "affine", "local": "local"}


def write_model_file(folder: Path, data: ImageData, file: Path) -> None:
    """
    :param folder: a run that has ended, with its ``params.npz``; with a Gaussian likelihood.
    :param data: the data that it was trained on.
    :param file: is written; what :class:`orbitgp.InvariantClassifier` would have saved, with the run's own numbers.
    """
    spec, final = read_spec(folder / "config.yaml"), read_json(folder / "final.json")
    scheme = spec.scheme
    if spec.orbit.kind not in ORBITS or not isinstance(spec.likelihood, GaussianLikelihood):
        raise ValueError(f"{folder} must have an orbit of {', '.join(ORBITS)} and a Gaussian likelihood")
    if spec.components is not None:
        raise ValueError(f"{folder} must have one process, not a sum")
    model, orbit = load_trained(folder, data), ORBITS[spec.orbit.kind]
    sizes = Sizes(
        inducing=spec.inducing.count,
        draws=scheme.groups * scheme.size if isinstance(scheme, GroupScheme) else 4,  # the RBF draws nothing
        batch=spec.optimiser.batch,
        steps=spec.optimiser.steps,
    )
    estimator = InvariantClassifier(orbit, likelihood="gaussian", seed=spec.seed)
    about = {
        "estimator": type(estimator).__name__,
        "orbit": orbit,
        "image_shape": list(data.train.shape),
        "images": len(data.train),
        "sizes": asdict(sizes),
        "settings": {name: value for name, value in estimator.get_params().items() if name != "orbit"},
        "evidence": final["elbo"],
        "evidence_std_error": final["elbo_std_error"],
        "learned": named_parameters(model),
        "seconds": read_json(folder / "provenance.json")["wall_s"],
        "classes": list(range(len(data.classes))),
    }
    arrays = {name: variable.numpy() for name, variable in unconstrained_variables(model).items()}
    storage.write(file, about, arrays | {"mean_function.c": np.array(0.0)})  # the run's mean function has no constant
