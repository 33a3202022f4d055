"""Scores of a model: error on test data, the bound on all training data, and its parameters by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.utilities import parameter_dict

from orbitgp._ops.blocks import map_blocks
from orbitgp.calibration import expected_calibration_error
from orbitgp.likelihoods import ClassLikelihood, OneHotGaussian, Tilt
from orbitgp.models import InvariantSVGP, Quadratic
from orbitgp.orbits.image import BoxAffineOrbit
from orbitgp.orbits.sampling import split
from orbitgp.posteriors import PREDICTED_TOGETHER


@dataclass(frozen=True)
class TestScore:
    """
    Error in per cent, and the mean negative log density of the targets (summed over outputs). Where there are
    probabilities of classes, also the mean −log of the true one's, and the calibration error in per cent.
    """

    __test__ = False  # no test class, whatever its name

    error: float
    nll: float
    class_nll: float = float("nan")
    calibration_error: float = float("nan")


class Tester:
    """
    Scores a model on test data, compiled once. Every 256 inputs have their own draws, so that the noise of draws
    averages out of the score; the first have those of :meth:`orbitgp.models.InvariantSVGP.predict_f`.
    """

    __test__ = False

    def __init__(self, model: InvariantSVGP, X: np.ndarray, Y: np.ndarray, probabilities: bool = False) -> None:
        """
        :param X: [N, D]
        :param Y: [N, P] targets: one-hot rows, or −1 and +1 in a single column.
        :param probabilities: whether to score the probabilities of classes too, if the likelihood has them.
        """
        self._X, self._Y = tf.constant(X, model.compute_dtype), tf.constant(Y, gpflow.default_float())

        several = probabilities and isinstance(model.likelihood, OneHotGaussian | ClassLikelihood)

        @tf.function(autograph=False)
        def predict() -> tuple[tf.Tensor, ...]:
            posterior, dtype = model.posterior(), gpflow.default_float()

            def block(number: tf.Tensor, X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, ...]:
                f = posterior.predict_f(X, seed=tf.stack([model.seed, -1 - number]))
                X = tf.cast(X, dtype)
                expected, _ = model.likelihood.predict_mean_and_var(X, *f)
                found = expected, model.likelihood.predict_log_density(X, *f, Y)
                return (*found, model.likelihood.predict_probability(*f)) if several else found

            return map_blocks(block, (self._X, self._Y), PREDICTED_TOGETHER, (dtype,) * (3 if several else 2))

        self._predict = predict

    def __call__(self) -> TestScore:
        """The score of the model as it is now."""
        expected, log_density, *more = self._predict()
        labels = _choice(self._Y.numpy())
        score = TestScore(100.0 * float(np.mean(_choice(expected.numpy()) != labels)), -float(np.mean(log_density)))
        if not more or not np.all(np.isfinite(probabilities := more[0].numpy())):  # a model that diverged has none
            return score
        right = np.maximum(probabilities[np.arange(len(labels)), labels], np.finfo(probabilities.dtype).tiny)
        return replace(
            score,
            class_nll=-float(np.mean(np.log(right))),
            calibration_error=100.0 * expected_calibration_error(probabilities, labels),
        )


def _choice(values: np.ndarray) -> np.ndarray:
    """The class: the highest column of one-hot rows or probabilities, or the sign of a single column."""
    return values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(1)


class WholeBound:
    """The bound of all training data as a quadratic function of q, added up over batches, compiled once."""

    def __init__(self, model: InvariantSVGP, X: np.ndarray, Y: np.ndarray, batch: int) -> None:
        """
        :param X: [N, D]
        :param Y: [N, P]
        :param batch: number of images at a time.
        """
        self._model, self._batch = model, batch
        self._X, self._Y = tf.constant(X, model.compute_dtype), tf.constant(Y, gpflow.default_float())

        @tf.function(autograph=False, reduce_retracing=True)
        def part(X: tf.Tensor, Y: tf.Tensor, rows: tf.Tensor, seed: tf.Tensor) -> tuple[tf.Tensor, ...]:
            found = model.quadratic((X, Y, rows), seed)
            return found.linear, found.precision, found.constant, found.ceiling

        self._part = part

    def __call__(self, seed: int, pass_number: int) -> Quadratic:
        """
        :param seed: seed of the run.
        :param pass_number: each pass has its own draws.
        """
        N = self._X.shape[0]
        total: list[Any] = [0.0, 0.0, 0.0, 0.0]
        start = split(tf.constant([seed, -2], tf.int64), pass_number)
        for number, first in enumerate(range(0, N, self._batch)):
            rows = tf.range(first, min(first + self._batch, N))
            part = self._part(tf.gather(self._X, rows), tf.gather(self._Y, rows), rows, split(start, number))
            share = rows.shape[0] / (self._model.num_data or rows.shape[0])  # each part was scaled up to all data
            total = [before + share * now for before, now in zip(total, part, strict=True)]
        return Quadratic(*total)


def bounds_of(model: InvariantSVGP, quadratics: list[Quadratic]) -> np.ndarray:
    """[passes], the bound of the model's q under each estimate."""
    root = tf.convert_to_tensor(model.q_sqrt)
    covariance = tf.matmul(root, root, transpose_b=True)
    return np.array([float(q(tf.convert_to_tensor(model.q_mu), covariance) - model.prior_kl()) for q in quadratics])


def named_parameters(model: InvariantSVGP) -> dict[str, float]:
    """The few numbers that describe a model: kernel, noise and orbit; vectors by component."""
    found: dict[str, float] = {}
    orbit = model.kernel.orbit
    for path, parameter in parameter_dict(model.kernel.base).items():
        _add(found, f"kernel{path.replace('lengthscales', 'lengthscale')}", parameter)
    if not any(isinstance(part, Tilt) for part in model.likelihood.submodules):  # networks and tables have too many
        for path, parameter in parameter_dict(model.likelihood).items():
            _add(found, f"likelihood{path}", parameter)
    names = orbit.names if isinstance(orbit, BoxAffineOrbit) else None
    for path, parameter in parameter_dict(orbit).items():
        _add(found, f"orbit{path}", parameter, names)
    return found


def _add(found: dict[str, float], name: str, parameter: Any, components: Any = None) -> None:
    values = np.asarray(parameter, dtype=np.float64)
    if values.ndim == 0:
        found[name] = float(values)
        return
    for i, value in enumerate(values.reshape(-1)):
        found[f"{name}.{components[i] if components is not None else i}"] = float(value)
