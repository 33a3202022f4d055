"""One step of training, in two kinds: natural steps for q with Adam for the rest, or Adam for everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.likelihoods import Gaussian

from orbitgp._ops.triangular import whitener
from orbitgp.likelihoods import IndependentGroups, slope
from orbitgp.models import InvariantSVGP, Quadratic
from orbitgp.optimizers.adam import Adam
from orbitgp.optimizers.batches import HardBatches, make_batches
from orbitgp.optimizers.natural import NaturalPosterior
from orbitgp.optimizers.recipe import Recipe
from orbitgp.optimizers.schedules import cosine, geometric
from orbitgp.orbits.sampling import split

BATCH, DRAWS, LOOK = 0, 1, 2  # streams of random numbers in a step

#: images for each inducing point in the first estimate of q: several, so that no direction is left unseen
START_IMAGES = 4

#: times that a training with hard batches evaluates the model at all images
LOOKS = 30


class Optimizer:
    """
    Everything that training changes, and the compiled step that changes it. All randomness comes from the seed and
    the number of the step, so that a state that is saved and restored goes on as if nothing had happened.
    """

    def __init__(
        self, model: InvariantSVGP, data: tuple[Any, Any], recipe: Recipe, seed: int, *, fused: bool | None = None
    ) -> None:
        """
        :param model: the model to train.
        :param data: (X, Y), [N, D] and [N, P], all training data; batches are made here.
        :param recipe: kind and number of steps, batches and learning rates.
        :param seed: seed of batches and draws.
        :param fused: whether XLA compiles a whole step, with products instead of factorisations. If None, it does if
            the model is compiled and there is a GPU, which would mostly wait for small operations. With Adam for
            everything, the bound must also be quadratic in q.
        """
        self._model, self._recipe, self._seed = model, recipe, seed
        self._X = tf.constant(data[0], model.compute_dtype)
        self._Y = tf.constant(data[1], model.q_mu.dtype)
        self._batches = make_batches(self._X.shape[0], recipe)
        self._between_looks = -(-recipe.steps // LOOKS)
        self.step = tf.Variable(0, trainable=False, dtype=tf.int64, name="step")
        self.posterior: NaturalPosterior | None = None
        if recipe.kind == "natural":
            self.posterior = NaturalPosterior(model, recipe.natural.scale)
        if fused is None:
            on_gpu = model.compiled and bool(tf.config.list_logical_devices("GPU"))
            fused = on_gpu and (self.posterior is not None or _quadratic_in_q(model))
        self._whitener: tf.Variable | None = None
        if fused:
            self._whitener = tf.Variable(whitener(model.Kuu()), trainable=False, name="whitener")
        self._sites_need_q = any(isinstance(part, IndependentGroups) for part in model.submodules)
        self._groups = _parameter_groups(model, with_posterior=self.posterior is None)
        scales = {"inducing": recipe.inducing_scale}
        self._adam = {name: Adam(variables, scales.get(name, "element")) for name, variables in self._groups.items()}
        if self.posterior is not None:
            self._start(self.posterior)
        self._step = self._one if self._whitener is None else tf.function(self._one, jit_compile=True, autograph=False)
        # AutoGraph would triple the time to the first step
        self._advance_compiled = tf.function(self._advance, autograph=False)
        self.hardness = tf.function(self._hardness, autograph=False)

    def _start(self, posterior: NaturalPosterior) -> None:
        """Starts at the best q for a few batches: from the prior, the first steps would have to be huge."""
        M, N, size = posterior.roots.shape[-1], self._X.shape[0], self._batches.size
        parts = min(-(-START_IMAGES * M // size), -(-N // size))

        def one(number: tf.Tensor, linear: tf.Tensor, ceiling: tf.Tensor) -> tuple[tf.Tensor, ...]:
            seed = split(tf.constant([self._seed, -1], tf.int64), number)
            batch = self._batch(self._batches.draw(split(seed, BATCH)))
            part = self._model.quadratic(batch, split(seed, DRAWS))
            return number + 1, linear + part.linear / parts, ceiling + part.ceiling / parts

        def gather() -> tuple[tf.Tensor, ...]:
            nothing = (tf.constant(0), tf.zeros_like(posterior.mean), tf.zeros_like(posterior.roots[0]))
            return tf.while_loop(lambda number, *_: number < parts, one, nothing, parallel_iterations=1)[1:]

        # each model traces it once; called as a tf.function, TensorFlow would warn of that from the fifth model on
        posterior.start(*tf.function(gather, autograph=False).get_concrete_function()())

    def mend(self) -> None:
        """After a change of the model's jitter: factorises k_uu anew, and starts again if q is not finite."""
        if self._whitener is not None:
            self._whitener.assign(whitener(self._model.Kuu()))
        if self.posterior is not None and not np.all(np.isfinite(self.posterior.roots)):
            self._start(self.posterior)
            self.write_back()

    def state(self) -> dict[str, tf.Variable]:
        """Every variable that the next step depends on, by a name that is the same in every process."""
        found = {"step": self.step, "jitter": self._model.jitter}
        parameters = [*self._model.trainable_parameters]
        found |= {f"model/{i}": parameter.unconstrained_variable for i, parameter in enumerate(parameters)}
        if self.posterior is not None:
            found |= {"posterior/mean": self.posterior.mean, "posterior/roots": self.posterior.roots}
        if self._whitener is not None:
            found["whitener"] = self._whitener
        if isinstance(self._batches, HardBatches):
            found["batches/probability"] = self._batches.probability
        for group, adam in self._adam.items():
            found |= {f"adam/{group}/{i}": variable for i, variable in enumerate(adam.variables)}
        return found

    def write_back(self) -> None:
        """Sets the model's q to the present one, if the optimiser keeps its own."""
        if self.posterior is not None:
            self.posterior.write_back()

    def advance(self, steps: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """
        :param steps: number of steps to make.
        :return: the sum of their estimates of the bound, and whether all variables are finite after them.
        """
        batches = self._batches
        if not isinstance(batches, HardBatches) or batches.whole:
            return self._advance_compiled(steps)
        left, total = int(steps), tf.zeros([], self._Y.dtype)
        finite = tf.constant(True)
        while left > 0:
            since = int(self.step.numpy()) % self._between_looks
            if since == 0:
                batches.weigh(self.hardness())
            now = min(left, self._between_looks - since)
            bound, finite = self._advance_compiled(tf.constant(now))
            left, total = left - now, total + bound
        return total, finite

    def _hardness(self) -> tf.Tensor:
        """[N], how hard each datum pulls at the model's present f (:func:`orbitgp.likelihoods.slope`)."""
        self.write_back()
        size, N, weights = self._batches.size, self._X.shape[0], self._model.mean_weights()
        seed = split(tf.stack([tf.constant(self._seed, tf.int64), self.step]), LOOK)

        def part(number: tf.Tensor) -> tf.Tensor:
            rows = tf.minimum(number * size + tf.range(size), N - 1)  # of one size: XLA compiles for each size
            X, Y, _ = self._batch(rows)
            return slope(self._model.likelihood, X, self._model.mean_estimates(X, weights, split(seed, number)), Y)

        parts = tf.range(-(-N // size))
        unread = tf.autograph.experimental.do_not_convert(part)  # there is nothing for AutoGraph to convert
        found = tf.map_fn(unread, parts, fn_output_signature=self._Y.dtype, parallel_iterations=1)
        return tf.reshape(found, [-1])[:N]

    def _advance(self, steps: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """As :meth:`advance`, in one graph."""
        _, total = tf.while_loop(
            lambda done, total: done < steps,
            lambda done, total: (done + 1, total + self._step()),
            (tf.zeros_like(steps), tf.zeros([], self._Y.dtype)),
            parallel_iterations=1,
        )
        finite = [tf.reduce_all(tf.math.is_finite(v)) for v in self.state().values() if v.dtype.is_floating]
        return total, tf.reduce_all(tf.stack(finite))

    def _one(self) -> tf.Tensor:
        seed = tf.stack([tf.constant(self._seed, tf.int64), self.step])
        progress = tf.cast(self.step, self._Y.dtype) / self._recipe.steps
        rows = self._batches.rows(seed, BATCH)
        batch = (*self._batch(rows), self._batches.weights(rows))
        estimate = self._adam_step if self.posterior is None else self._natural_step
        bound = estimate(batch, split(seed, DRAWS), progress)
        self.step.assign_add(1)
        return bound

    def _batch(self, rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
        if self._batches.whole:
            return self._X, self._Y, rows
        return tf.gather(self._X, rows), tf.gather(self._Y, rows), rows

    def _natural_step(self, batch: tuple[Any, ...], seed: tf.Tensor, progress: tf.Tensor) -> tf.Tensor:
        assert self.posterior is not None
        if self._sites_need_q:
            self.posterior.write_back()
        covariance = self.posterior.covariance()
        mean = tf.convert_to_tensor(self.posterior.mean)
        variables = [v for group in self._groups.values() for v in group]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            quadratic, W = self._quadratic(batch, seed)
            data_term = quadratic(mean, covariance)
            loss = -data_term
        bound = data_term - self.posterior.prior_kl(covariance)  # in whitened terms the KL knows no hyperparameter
        self._apply(tape.gradient(loss, variables), progress)
        self.posterior.step(quadratic, self._rho(progress))
        if self._whitener is not None:
            self._whitener.assign(W)
        return bound

    def _quadratic(self, batch: tuple[Any, ...], seed: tf.Tensor) -> tuple[Quadratic, tf.Tensor]:
        """The batch's bound as a function of q, and W with W k_uu Wᵀ = I, from that of the step before if kept."""
        W = whitener(self._model.Kuu(), self._whitener)
        return self._model.quadratic(batch, seed, W=W, within_xla=self._whitener is not None), W

    def _rho(self, progress: tf.Tensor) -> tf.Tensor:
        return geometric(progress, self._recipe.natural.first, self._recipe.natural.last)

    def _adam_step(self, batch: tuple[Any, ...], seed: tf.Tensor, progress: tf.Tensor) -> tf.Tensor:
        model, variables = self._model, [v for group in self._groups.values() for v in group]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            if self._whitener is None:
                loss = -model.elbo(batch, seed)
            else:
                quadratic, W = self._quadratic(batch, seed)
                root = tf.convert_to_tensor(model.q_sqrt)
                covariance = tf.matmul(root, root, transpose_b=True)
                loss = model.prior_kl() - quadratic(tf.convert_to_tensor(model.q_mu), covariance)
        self._apply(tape.gradient(loss, variables), progress)
        if self._whitener is not None:
            self._whitener.assign(W)
        return -loss

    def _apply(self, gradients: list[tf.Tensor], progress: tf.Tensor) -> None:
        share = cosine(progress, self._recipe.warmup, self._recipe.floor)
        start = 0
        for name, variables in self._groups.items():
            mine = gradients[start : start + len(variables)]
            self._adam[name].apply(mine, self._recipe.rates[name] * share, self.step)
            start += len(variables)


def _quadratic_in_q(model: InvariantSVGP) -> bool:
    """Whether the bound is :meth:`InvariantSVGP.quadratic` less the KL divergence, whatever the data."""
    noise = model.likelihood.variance if isinstance(model.likelihood, Gaussian) else None
    one_precision = isinstance(noise, Parameter)  # for all outputs of an input
    return model.whiten and (one_precision or model.q_sqrt.shape[0] == model.num_latent_gps)


def _parameter_groups(model: InvariantSVGP, with_posterior: bool) -> dict[str, list[tf.Variable]]:
    """Trainable variables by the name of their learning rate; groups without any are left out."""
    groups = {
        "inducing": model.inducing_variable.trainable_variables,
        "kernel": model.kernel.base.trainable_variables,
        "likelihood": model.likelihood.trainable_variables,
        "orbit": model.kernel.orbit.trainable_variables,
    }
    if with_posterior:
        groups["variational"] = [model.q_mu.unconstrained_variable, model.q_sqrt.unconstrained_variable]
    return {name: list(variables) for name, variables in groups.items() if variables}
