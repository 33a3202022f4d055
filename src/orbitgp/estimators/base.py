"""What the classifier and the regressor share."""

from __future__ import annotations

import abc
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from gpflow.utilities import deepcopy, parameter_dict
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from orbitgp import checks
from orbitgp.components import Component, sum_of
from orbitgp.datasets.user_images import as_pixels
from orbitgp.estimators import storage
from orbitgp.estimators.orbit_names import NAMED, make_orbit
from orbitgp.estimators.sizes import Sizes, choose
from orbitgp.files import DamagedFile
from orbitgp.fitting.loop import Fitted, final_scheme, fit
from orbitgp.fitting.scores import named_parameters
from orbitgp.fitting.stopping import noticing_interrupts
from orbitgp.inducing import Points, check_lengths, distinct_rows, from_arrays, place
from orbitgp.kernels import Invariant
from orbitgp.likelihoods import ClassLikelihood
from orbitgp.models import InvariantSVGP
from orbitgp.optimizers.recipe import Recipe
from orbitgp.optimizers.steps import Optimizer
from orbitgp.orbits import FiniteOrbit
from orbitgp.schemes import FullOrbit, Groups

#: the initial lengthscale, as a share of the typical distance between two images: 6 of 10.5 on MNIST
LENGTHSCALE = 0.57

#: draws from the orbit for each image in the last passes over the data, and in predictions
FINAL_DRAWS, PREDICTION_DRAWS = 64, 64

#: steps that are timed, after compilation, to see how many fit into a time budget
PILOT = 5


class InvariantEstimator(BaseEstimator, metaclass=abc.ABCMeta):
    """Chooses, trains and keeps a model of targets given images. Subclasses say what the targets are."""

    def __init__(
        self,
        orbit: Any = "affine",
        *,
        components: Sequence[Component | Mapping[str, Any]] | None = None,
        inducing: int | None = None,
        draws: int | None = None,
        batch: int | None = None,
        steps: int | None = None,
        time_budget: float | None = None,
        seed: int = 0,
        verbose: bool = True,
    ) -> None:
        """
        :param orbit: transformations to learn: none, rotation, translation, scale, affine, affine_parts (angle, scales,
            shears, shifts) or local; ``"package.module:Class"``; a class or function of (H, W, C); or an orbit.
        :param components: processes whose sum is averaged over the orbit, such as ``[{"patch": 5, "stride": 2,
            "inducing": 100}, {"inducing": 150}]``: one of patches and one of the whole image, each with its number of
            inducing points. See :class:`orbitgp.components.Component`. The whole image alone if None.
        :param inducing: number of inducing points; not together with ``components``.
        :param draws: number of transformed copies of each image in a step, even.
        :param batch: number of images in a step.
        :param steps: number of training steps. These four are chosen from the data and the machine if None.
        :param time_budget: seconds to train, instead of ``steps``; preparation and the last passes come on top.
        :param seed: seed of all random numbers.
        :param verbose: whether to print what was chosen and what came out, with a progress bar on a terminal.
        """
        self.orbit = orbit
        self.components = components
        self.inducing = inducing
        self.draws = draws
        self.batch = batch
        self.steps = steps
        self.time_budget = time_budget
        self.seed = seed
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        images = tags.input_tags  # not a table: [N, H, W] or [N, H, W, C]
        images.two_d_array, images.three_d_array, images.positive_only = False, True, True
        return tags

    # -- what a subclass says ----------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _likelihood(self, image_values: int, outputs: int) -> Likelihood:
        """The likelihood at the start.

        :param image_values: H·W·C, the number of values in an image.
        :param outputs: P, the number of outputs of f.
        """

    @abc.abstractmethod
    def _kernel_variance(self, outputs: int) -> float:
        """The variance of g at the start."""

    @abc.abstractmethod
    def _mean(self, outputs: int) -> float:
        """The prior mean: that of the targets."""

    @abc.abstractmethod
    def _recipe(self, outputs: int, sizes: Sizes) -> Recipe:
        """The settings of the training."""

    # -- training ----------------------------------------------------------------------------------------------------

    def _fit(self, pixels: npt.NDArray[np.float32], Y: npt.NDArray[np.float64]) -> None:
        """
        :param pixels: [N, H, W, C]
        :param Y: [N, P] targets.
        """
        if self.time_budget is not None and self.steps is not None:
            raise ValueError("steps and time_budget both say how long to train: give one of them")
        seed = checks.integer("seed", self.seed, least=0)
        began, X = time.monotonic(), pixels.reshape(len(pixels), -1)
        height, width, channels = pixels.shape[1:]
        self.image_shape_ = height, width, channels
        outputs, gpu = Y.shape[1], bool(tf.config.list_physical_devices("GPU"))
        given = {"inducing": self.inducing, "draws": self.draws, "batch": self.batch, "steps": self.steps}
        sizes, lengthscale = choose(len(X), distinct_rows(X), gpu, **given), LENGTHSCALE * typical_distance(X, seed)
        counts = [component.inducing for component in self._components()]
        if counts:
            if self.inducing is not None:
                raise ValueError("inducing and components both say how many inducing points: give one of them")
            sizes = replace(sizes, inducing=sum(counts))
        points = place(self._kernel(outputs, lengthscale), X, counts or sizes.inducing, seed=seed)

        def start() -> InvariantSVGP:
            return self._model(self._kernel(outputs, lengthscale), deepcopy(points), outputs, len(X), sizes)

        if self.time_budget is not None:
            budget, trial = checks.number("time_budget", self.time_budget, least=0.0), self._recipe(outputs, sizes)
            sizes = replace(sizes, steps=steps_within(budget, start(), (X, Y), trial))
        model = start()
        self._say(f"{len(X):,} images of {' × '.join(map(str, self.image_shape_))}: {sizes}")
        with noticing_interrupts() as stop:
            fitted = fit(
                model,
                (X, Y),
                self._recipe(outputs, sizes),
                seed=seed,
                evaluations=10,
                final_samples=FINAL_DRAWS,
                stop=stop,
                keep=True,
                name=type(self).__name__ if self.verbose else "",
            )
        self._keep(model, sizes, fitted, time.monotonic() - began)

    def _keep(self, model: InvariantSVGP, sizes: Sizes, fitted: Fitted, seconds: float) -> None:
        if fitted.diverged:
            raise FloatingPointError(
                f"training diverged at step {fitted.steps}: {fitted.history.events[-1]['detail']}. Fewer inducing "
                "points or more draws may help"
            )
        self.interrupted_ = fitted.steps < sizes.steps
        if self.interrupted_:
            self._say(f"stopped at step {fitted.steps} of {sizes.steps}; the model is kept")
        self.model_, self.sizes_ = model, replace(sizes, steps=fitted.steps)
        self.orbit_ = model.kernel.orbit
        self.evidence_, self.evidence_std_error_ = fitted.elbo, fitted.elbo_std_error
        self.seconds_ = seconds
        self._say(f"evidence at least {self.evidence_:,.0f} nats, {seconds:.0f} s")

    def _say(self, line: str) -> None:
        if self.verbose:
            print(f"{type(self).__name__}: {line}", flush=True)

    # -- the model ---------------------------------------------------------------------------------------------------

    def _components(self) -> list[Component]:
        """The processes of a sum; empty for the whole image alone."""
        if self.components is None:
            return []
        if not isinstance(self.components, Sequence) or not self.components:
            raise ValueError(f"components must be a list of one or more, got {self.components!r}")
        return [Component.make(content) for content in self.components]

    def _kernel(self, outputs: int, lengthscale: float) -> Invariant:
        variance, components = self._kernel_variance(outputs), self._components()
        if components:
            base = sum_of(components, self.image_shape_, variance, lengthscale)
        else:
            base = gpflow.kernels.SquaredExponential(variance, lengthscale)
        return Invariant(base, make_orbit(self.orbit, self.image_shape_))

    def _model(self, kernel: Invariant, points: Points, outputs: int, count: int, sizes: Sizes) -> InvariantSVGP:
        likelihood = self._likelihood(int(np.prod(self.image_shape_)), outputs)
        mean = gpflow.functions.Constant(self._mean(outputs))
        gpflow.set_trainable(mean, False)
        orbit = kernel.orbit
        # all points of an orbit that has no more of them: then nothing is estimated, and float64 costs little
        exact = isinstance(orbit, FiniteOrbit) and orbit.order <= sizes.draws
        return InvariantSVGP(
            kernel,
            likelihood,
            points,
            mean_function=mean,
            num_latent_gps=outputs,
            covariance="per_output" if isinstance(likelihood, ClassLikelihood) else None,
            num_data=count,
            scheme=FullOrbit() if exact else Groups(2, sizes.draws // 2),
            precision="float64" if exact else "mixed",
            compiled=bool(tf.config.list_physical_devices("GPU")),
            jitter=1e-6,
            prediction_samples=PREDICTION_DRAWS,
            seed=self.seed,
        )

    def _predict_f(self, images: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean and variance of f, each [N, P]."""
        check_is_fitted(self, "model_")
        return self.model_.predict_f(self._rows(images))

    def _rows(self, images: Any) -> npt.NDArray[np.float32]:
        """Images as rows [N, D], after a check of their shape."""
        pixels = as_pixels(np.asarray(images), "images")
        if pixels.shape[1:] != self.image_shape_:
            raise ValueError(
                f"images must be {self.image_shape_} each, (height, width, channels), as in the training data, not "
                f"{pixels.shape[1:]}"
            )
        return pixels.reshape(len(pixels), -1)

    def describe(self) -> dict[str, Any]:
        """What was chosen and learned, as JSON types."""
        check_is_fitted(self, "model_")
        return {
            "estimator": type(self).__name__,
            "orbit": self.orbit if isinstance(self.orbit, str) else type(self.orbit_).__name__,
            "image_shape": list(self.image_shape_),
            "images": int(self.model_.num_data or 0),
            "sizes": asdict(self.sizes_),
            "evidence": self.evidence_,
            "evidence_std_error": self.evidence_std_error_,
            "learned": named_parameters(self.model_),
        }

    def plot_orbit(self, images: Any, draws: int = 8) -> Any:
        """
        Shows each image beside draws from its learned orbit, as in the paper's Fig. 1. Needs the extra ``plots``.

        :param images: [N, H, W] or [N, H, W, C], of the shape of the training images.
        :param draws: number of draws for each image.
        :return: a matplotlib figure.
        """
        from orbitgp.estimators.plots import plot_orbit

        check_is_fitted(self, "model_")
        return plot_orbit(self.orbit_, self.image_shape_, self._rows(images), draws)

    def export(self, folder: str | os.PathLike[str]) -> None:
        """
        Writes a TensorFlow SavedModel, for a server without GPflow and this package. Its signature ``serving_default``
        takes ``images`` [N, H, W, C], float32 in [0, 1]; its signature ``bytes`` takes uint8.

        :param folder: a new folder to write to; it must not exist.
        """
        from orbitgp.estimators.export import export

        check_is_fitted(self, "model_")
        export(self.model_.posterior(), self.model_.likelihood, self._answer, self.image_shape_, Path(folder))

    @abc.abstractmethod
    def _answer(self, mean: tf.Tensor, variance: tf.Tensor) -> dict[str, tf.Tensor]:
        """What the exported model returns, by name, from the mean and variance of f, each [N, P]."""

    # -- a file ------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """
        Writes one file with all that predictions need, and no training image. It holds no code: an orbit of your own
        has to be passed to :meth:`load` again.

        :param path: the file to write.
        """
        check_is_fitted(self, "model_")
        arrays = {name: variable.numpy() for name, variable in unconstrained_variables(self.model_).items()}
        about = self.describe() | {
            "settings": {name: value for name, value in self.get_params().items() if name != "orbit"}
            | {"components": [asdict(component) for component in self._components()] or None},
            "orbit": self.orbit if isinstance(self.orbit, str) and self.orbit in NAMED else None,
            "seconds": self.seconds_,
            **self._about_targets(),
        }
        storage.write(Path(path), about, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], orbit: Any = None) -> Any:
        """
        :param path: a file that :meth:`save` wrote.
        :param orbit: the orbit that was passed to the estimator, if it was not one of the names.
        :return: a fitted estimator.
        """
        about, arrays = storage.read(Path(path))
        return cls._from_file(Path(path), about, arrays, orbit)

    @classmethod
    def _from_file(cls, path: Path, about: dict[str, Any], arrays: dict[str, np.ndarray], orbit: Any) -> Any:
        if about["estimator"] != cls.__name__:
            raise ValueError(f"{path} holds an {about['estimator']}, not an {cls.__name__}")
        if about["orbit"] is None and orbit is None:
            raise ValueError(f"{path} was fitted with an orbit of the user's own: pass it again, as orbit= or --orbit")
        if about["orbit"] is not None and about["orbit"] not in NAMED:
            raise DamagedFile(f"{path} names an unknown orbit, {about['orbit']!r}")
        try:
            return cls._restored(about, arrays, about["orbit"] if orbit is None else orbit)
        except (ArithmeticError, LookupError, TypeError, ValueError, tf.errors.OpError) as error:
            raise DamagedFile(f"{path} does not hold a whole model: {error}") from error

    @classmethod
    def _restored(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], orbit: Any) -> Any:
        """A fitted estimator. What does not fit together is an error of any kind."""
        settings, names = about["settings"], set(cls().get_params()) - {"orbit"}
        if set(settings) != names:
            raise ValueError(f"its settings are {', '.join(map(str, settings))}, not {', '.join(sorted(names))}")
        estimator = cls(orbit, **settings)
        checks.integer("seed", estimator.seed, least=0)
        height, width, channels = (checks.integer("image_shape", side, least=1) for side in about["image_shape"])
        shape = estimator.image_shape_ = height, width, channels
        sizes = Sizes(**about["sizes"])
        for name, value in asdict(sizes).items():
            checks.integer(name, value, least=1)
        estimator._take_targets(about, arrays["q_mu"].shape[1])
        points = from_arrays(arrays)
        whole = [True] if not (parts := estimator._components()) else [part.patch is None for part in parts]
        # before anything is made of the shape: what is made of a large one takes long
        for part, is_image in zip(points.parts, whole, strict=False):
            if is_image and part.Z.shape[1] != math.prod(shape):
                raise ValueError(f"inducing points have {part.Z.shape[1]} values, images of shape {shape} have others")
        outputs = arrays["q_mu"].shape[1]
        kernel = estimator._kernel(outputs, 1.0)
        check_lengths(points, kernel, math.prod(shape))
        model = estimator._model(kernel, points, outputs, about["images"], sizes)
        variables = unconstrained_variables(model)
        wanted = {name: (tuple(variable.shape), variable.dtype.as_numpy_dtype) for name, variable in variables.items()}
        if wanted != {name: (array.shape, array.dtype.type) for name, array in arrays.items()}:
            raise ValueError(f"it does not have the parameters of its model, {', '.join(wanted)}")
        for name, variable in variables.items():
            variable.assign(arrays[name])
        model.scheme = final_scheme(model.scheme, FINAL_DRAWS)
        estimator.model_, estimator.sizes_, estimator.orbit_ = model, sizes, model.kernel.orbit
        estimator.evidence_, estimator.evidence_std_error_ = about["evidence"], about["evidence_std_error"]
        estimator.seconds_ = about["seconds"]
        return estimator

    @abc.abstractmethod
    def _about_targets(self) -> dict[str, Any]:
        """What a file has to keep about the targets."""

    @abc.abstractmethod
    def _take_targets(self, about: dict[str, Any], outputs: int) -> None:
        """
        Restores what :meth:`_about_targets` returned.

        :param outputs: P of the model in the file, which the targets have to fit.
        """


def unconstrained_variables(model: InvariantSVGP) -> dict[str, tf.Variable]:
    """
    A model's variables by parameter name, unconstrained: a transform and its inverse would round them.
    """
    return {
        name.lstrip("."): getattr(parameter, "unconstrained_variable", parameter)
        for name, parameter in parameter_dict(model).items()
    }


def typical_distance(X: npt.NDArray[np.float32], seed: int, pairs: int = 1000) -> float:
    """The median distance between random pairs of different rows of ``X`` [N, D]."""
    rng = np.random.default_rng(seed)
    one, other = rng.integers(len(X), size=(2, pairs))
    distances = np.linalg.norm(X[one] - X[other], axis=1)
    if not np.any(distances > 0):
        raise ValueError("images must differ, but all that were compared are the same")
    return float(np.median(distances[distances > 0]))


def steps_within(budget: float, model: InvariantSVGP, data: tuple[Any, Any], trial: Recipe) -> int:
    """
    :param budget: seconds.
    :param model: is trained a few steps, to time them.
    :return: how many steps fit into the budget, at least ten.
    """
    optimizer = Optimizer(model, data, trial, 0)
    optimizer.advance(tf.constant(2))[0].numpy()
    start = time.monotonic()
    optimizer.advance(tf.constant(PILOT))[0].numpy()
    return max(10, int(budget / (time.monotonic() - start) * PILOT))
