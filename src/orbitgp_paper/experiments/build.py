"""From a run's specification to a model."""

from __future__ import annotations

from pathlib import Path

import gpflow
import numpy as np
from gpflow.utilities import multiple_assign, parameter_dict

from orbitgp import files, orbits
from orbitgp.components import Component, sum_of
from orbitgp.datasets import ImageData, Images, one_hot
from orbitgp.estimators import orbit_names
from orbitgp.fitting.loop import final_scheme
from orbitgp.inducing import Points, check_lengths, from_arrays, place
from orbitgp.kernels import Invariant
from orbitgp.likelihoods import (
    ClassLikelihood,
    DirichletLabels,
    IndependentGroups,
    LogisticSoftmax,
    OneHotGaussian,
    PolyaGammaBernoulli,
    RecognitionNetwork,
    Softmax,
    Tilt,
    TiltTable,
)
from orbitgp.models import InvariantSVGP
from orbitgp.optimizers.recipe import NaturalRate, Recipe
from orbitgp.schemes import FullOrbit, Groups, Scheme, WithoutReplacement, paper_scheme
from orbitgp_paper import spec as settings
from orbitgp_paper.spec import RunSpec, read_spec

ORBITS = {
    "rotation": orbits.Rotation,
    "affine": orbits.Affine,
    "interpretable_affine": orbits.InterpretableAffine,
    "local": orbits.LocalDeformation,
    "right_angles": orbits.RightAngles,
    "quantised_rotation": orbits.QuantisedRotation,
}


def make_orbit(orbit: settings.Orbit, shape: tuple[int, int, int]) -> orbits.Orbit:
    """
    :param shape: (H, W, C) of the images.
    """
    if isinstance(orbit, settings.IdentityOrbit):
        return orbits.Identity()
    if isinstance(orbit, settings.ComposedOrbit):
        return orbits.Composed([make_orbit(part, shape) for part in orbit.parts])
    if isinstance(orbit, settings.OwnOrbit):
        return orbit_names.make_orbit(orbit.path, shape, **orbit.settings)
    return ORBITS[orbit.kind](shape, **orbit.model_dump(exclude={"kind"}, exclude_none=True))


def make_scheme(scheme: settings.Scheme) -> Scheme:
    """How a run draws from its orbit in training."""
    if isinstance(scheme, settings.GroupScheme):
        return Groups(scheme.groups, scheme.size, scheme.sampler, scheme.shared)
    if isinstance(scheme, settings.PaperScheme):
        return paper_scheme(scheme.samples, scheme.shared)
    return FullOrbit() if isinstance(scheme, settings.FullScheme) else WithoutReplacement(scheme.count)


def recipe(spec: RunSpec) -> Recipe:
    """How a run is trained, as :func:`orbitgp.fitting.loop.fit` takes it."""
    given = spec.optimiser.model_dump()
    return Recipe(**given | ({"natural": NaturalRate(**given["natural"])} if "natural" in given else {}))


def make_kernel(spec: RunSpec, shape: tuple[int, int, int]) -> Invariant:
    """
    :param shape: (H, W, C) of the images.
    """
    variance, lengthscale = spec.kernel.variance, spec.kernel.lengthscale
    if spec.components is None:
        base = gpflow.kernels.SquaredExponential(variance=variance, lengthscales=lengthscale)
    else:
        components = [Component(**component.model_dump()) for component in spec.components]
        base = sum_of(components, shape, variance, lengthscale)
    return Invariant(base, make_orbit(spec.orbit, shape))


def build_model(spec: RunSpec, data: ImageData, points: Points | np.ndarray | None = None) -> InvariantSVGP:
    """
    The model a run starts from.

    :param points: inducing points, or an array Z [M, D] of them; chosen from the training images if None.
    """
    kernel = make_kernel(spec, data.train.shape)
    if points is None:
        counts = [component.inducing for component in spec.components or ()]
        points = place(
            kernel,
            data.train.inputs(),
            counts or spec.inducing.count,
            method=spec.inducing.method,
            seed=spec.seed,
        )
    likelihood = _likelihood(spec, data)
    several = isinstance(likelihood, ClassLikelihood)
    return InvariantSVGP(
        kernel,
        likelihood,
        points,
        mean_function=_mean_function(likelihood),
        num_latent_gps=len(data.classes) if spec.likelihood.kind in settings.ONE_HOT else 1,
        covariance="per_output" if several else "shared",  # as site precisions differ between classes
        num_data=len(data.train),
        scheme=make_scheme(spec.scheme),
        precision=spec.precision,
        compiled=spec.compile,
        jitter=spec.jitter,
        prediction_samples=spec.evaluation.samples,
        seed=spec.seed,
    )


def targets(spec: RunSpec, data: ImageData, part: Images) -> np.ndarray:
    """
    :param part: training or test images of ``data``.
    :return: [N, P]: a column of −1 and +1 for Pólya-Gamma, +1 for the second class; one-hot rows for all others.
    """
    if spec.likelihood.kind in settings.ONE_HOT:
        return one_hot(part.labels, len(data.classes))
    if len(data.classes) != 2:
        raise ValueError(f"likelihood.kind polya_gamma is for two classes; {data.name} has {len(data.classes)}")
    return np.where(part.labels == 1, 1.0, -1.0)[:, None]


def load_trained(folder: Path, data: ImageData) -> InvariantSVGP:
    """
    :param folder: the folder of a run that has ended.
    :param data: the data that it was trained on.
    :return: the trained model, with the scheme of the final pass, from which the run's numbers are.
    """
    spec = read_spec(folder / "config.yaml")
    found = {path: values.astype(np.float64) for path, values in files.read_npz(folder / "params.npz").items()}
    try:
        points = from_arrays(found)
    except ValueError:
        points = None
    if points is None or "jitter" not in found:
        raise files.DamagedFile(f"{folder / 'params.npz'} does not hold a trained model")
    try:
        check_lengths(points, make_kernel(spec, data.train.shape), int(np.prod(data.train.shape)))
    except ValueError as error:
        raise ValueError(f"{folder} was not trained on images as those of {data.name}: {error}") from None
    model = build_model(spec, data, points)
    wanted = {path.lstrip("."): parameter.shape for path, parameter in parameter_dict(model).items()}
    if {path: values.shape for path, values in found.items()} != {path: tuple(shape) for path, shape in wanted.items()}:
        raise files.DamagedFile(f"{folder / 'params.npz'} does not have the parameters of {folder / 'config.yaml'}")
    final = files.read_json(folder / "final.json")
    files.check_sums(folder, final.get("files") if isinstance(final, dict) else None, folder / "final.json")
    if not all(np.all(np.isfinite(values)) for values in found.values()):
        raise ValueError(f"{folder} diverged, as its final.json says: there is no model in it")
    multiple_assign(model, {f".{path}": values for path, values in found.items()})
    model.scheme = final_scheme(model.scheme, spec.final_pass.samples)
    return model


def _likelihood(spec: RunSpec, data: ImageData) -> gpflow.likelihoods.Likelihood:
    likelihood, K = spec.likelihood, len(data.classes)
    if isinstance(likelihood, settings.GaussianLikelihood):
        return OneHotGaussian(likelihood.variance)
    if isinstance(likelihood, settings.DirichletLikelihood):
        return DirichletLabels(K, likelihood.concentration)
    if isinstance(likelihood, settings.PolyaGammaLikelihood):
        return PolyaGammaBernoulli(_tilt(spec, likelihood, data, outputs=1, real=0, labels=1))
    kind = Softmax if isinstance(likelihood, settings.SoftmaxLikelihood) else LogisticSoftmax
    outputs, real = kind.local_numbers(K)
    return kind(K, _tilt(spec, likelihood, data, outputs=outputs, real=real, labels=K))


def _tilt(
    spec: RunSpec, likelihood: settings.TiltedLikelihood, data: ImageData, *, outputs: int, real: int, labels: int
) -> Tilt:
    """
    :param outputs: number of positive local parameters of a datum.
    :param real: number of its other local parameters.
    :param labels: number of columns of its label.
    """
    if likelihood.hidden is not None:
        pixels = int(np.prod(data.train.shape))
        return RecognitionNetwork(pixels, likelihood.hidden, outputs, spec.seed, labels=labels, real=real)
    return TiltTable(len(data.train), outputs, real=real) if likelihood.tilt == "table" else IndependentGroups()


def _mean_function(likelihood: gpflow.likelihoods.Likelihood) -> gpflow.functions.MeanFunction | None:
    """For Dirichlet labels, whose targets are far from zero, a constant that no probability depends on."""
    if not isinstance(likelihood, DirichletLabels):
        return None
    constant = gpflow.functions.Constant(np.array([likelihood.mean_target()]))
    gpflow.set_trainable(constant, False)
    return constant
