"""From a run's specification to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import yaml
from gpflow.utilities import multiple_assign, parameter_dict

from orbitgp import checks, files, orbits
from orbitgp.datasets import ImageData, Images, one_hot
from orbitgp.inducing import BasePoints, place
from orbitgp.kernels import Invariant
from orbitgp.likelihoods import IndependentGroups, PolyaGammaBernoulli, RecognitionNetwork, Tilt, TiltTable
from orbitgp.models import InvariantSVGP
from orbitgp.orbits import Orbit
from orbitgp.schemes import FullOrbit, Groups, Scheme, WithoutReplacement, paper_scheme

Settings = Mapping[str, Any]


def _rest(settings: Settings) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key != "kind"}


def _local(settings: Settings, shape: Any) -> Orbit:
    rest = _rest(settings)
    generators = rest.pop("generators")
    return orbits.LocalDeformation(shape, generators=np.broadcast_to(generators, 6).tolist(), **rest)


ORBITS: dict[str, Callable[[Settings, Any], Orbit]] = {
    "identity": lambda settings, shape: orbits.Identity(),
    "rotation": lambda settings, shape: orbits.Rotation(shape, **_rest(settings)),
    "affine": lambda settings, shape: orbits.Affine(shape, **_rest(settings)),
    "interpretable_affine": lambda settings, shape: orbits.InterpretableAffine(shape, **_rest(settings)),
    "local": _local,
    "right_angles": lambda settings, shape: orbits.RightAngles(shape),
    "quantised_rotation": lambda settings, shape: orbits.QuantisedRotation(shape, settings["order"]),
    "composed": lambda settings, shape: orbits.Composed([make_orbit(part, shape) for part in settings["parts"]]),
}

SCHEMES: dict[str, Callable[[Settings], Scheme]] = {
    "groups": lambda settings: Groups(settings["groups"], settings["size"], settings["sampler"]),
    "paper": lambda settings: paper_scheme(settings["samples"]),
    "full": lambda settings: FullOrbit(),
    "without_replacement": lambda settings: WithoutReplacement(settings["count"]),
}


def make_orbit(settings: Settings, shape: Any) -> Orbit:
    """
    :param settings: ``kind`` and what the orbit takes.
    :param shape: (H, W, C) of the images.
    """
    return ORBITS[checks.one_of("orbit.kind", settings["kind"], list(ORBITS))](settings, shape)


def make_scheme(settings: Settings) -> Scheme:
    """
    :param settings: ``kind`` and what the scheme takes.
    """
    return SCHEMES[checks.one_of("scheme.kind", settings["kind"], list(SCHEMES))](settings)


def final_scheme(spec: Settings) -> Scheme:
    """For the last pass over all data: two Sobol groups of more draws; where nothing is drawn at random, no change."""
    scheme = make_scheme(spec["scheme"])
    return Groups(2, spec["final_pass"]["samples"] // 2) if isinstance(scheme, Groups) else scheme


def build_model(spec: Settings, data: ImageData, Z: np.ndarray | None = None) -> InvariantSVGP:
    """
    The model a run starts from.

    :param spec: as :func:`orbitgp_paper.config.run_spec` makes it.
    :param Z: [M, D] inducing points; chosen from the training images if None.
    """
    kernel = Invariant(
        gpflow.kernels.SquaredExponential(
            variance=spec["kernel"]["variance"], lengthscales=spec["kernel"]["lengthscale"]
        ),
        make_orbit(spec["orbit"], data.train.shape),
    )
    if Z is None:
        count, method = spec["inducing"]["count"], spec["inducing"]["method"]
        points = place(kernel, data.train.inputs(), count, method=method, seed=spec["seed"])
    else:
        points = BasePoints(Z)
    return InvariantSVGP(
        kernel,
        _likelihood(spec, data),
        points,
        num_latent_gps=1 if spec["likelihood"]["kind"] == "polya_gamma" else _classes(data),
        num_data=len(data.train),
        scheme=make_scheme(spec["scheme"]),
        precision=spec["precision"],
        compiled=spec["compile"],
        jitter=spec["jitter"],
        prediction_samples=spec["evaluation"]["samples"],
        seed=spec["seed"],
    )


def targets(spec: Settings, data: ImageData, part: Images) -> np.ndarray:
    """
    :param part: training or test images of ``data``.
    :return: [N, P]: one-hot rows for a Gaussian likelihood, a column of −1 and +1 for Pólya-Gamma.
    """
    if spec["likelihood"]["kind"] == "polya_gamma":
        return part.labels[:, None].astype(np.float64)
    return one_hot(part.labels, _classes(data))


def load_trained(folder: Path, data: ImageData) -> InvariantSVGP:
    """
    :param folder: of a run that has ended.
    :param data: what it was trained on.
    :return: the trained model, with the scheme of the final pass: it predicts what the run's numbers are of.
    """
    spec = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    found = files.read_npz(folder / "params.npz")
    if "inducing_variable.Z" not in found or "jitter" not in found:
        raise files.DamagedFile(f"{folder / 'params.npz'} does not hold a trained model")
    Z, values = found["inducing_variable.Z"], int(np.prod(data.train.shape))
    if Z.shape[-1] != values:
        raise ValueError(f"{folder} was trained on images of {Z.shape[-1]} values, those of {data.name} have {values}")
    model = build_model(spec, data, Z)
    wanted = {path.lstrip("."): parameter.shape for path, parameter in parameter_dict(model).items()}
    if {path: values.shape for path, values in found.items()} != {path: tuple(shape) for path, shape in wanted.items()}:
        raise files.DamagedFile(f"{folder / 'params.npz'} does not have the parameters of {folder / 'config.yaml'}")
    final = files.read_json(folder / "final.json")
    files.check_sums(folder, final.get("files") if isinstance(final, dict) else None, folder / "final.json")
    multiple_assign(model, {f".{path}": values for path, values in found.items()})
    model.scheme = final_scheme(spec)
    return model


def _classes(data: ImageData) -> int:
    return int(max(data.train.labels.max(), data.test.labels.max())) + 1


def _likelihood(spec: Settings, data: ImageData) -> gpflow.likelihoods.Likelihood:
    settings = spec["likelihood"]
    if settings["kind"] == "gaussian":
        return gpflow.likelihoods.Gaussian(settings["variance"])
    return PolyaGammaBernoulli(_tilt(settings, data, spec["seed"]))


def _tilt(settings: Settings, data: ImageData, seed: int) -> Tilt:
    if settings["tilt"] == "network":
        dimension = int(np.prod(data.train.shape))
        return RecognitionNetwork(dimension, settings["hidden"], seed=seed)
    return TiltTable(len(data.train)) if settings["tilt"] == "table" else IndependentGroups()
