"""The training loop: steps, checkpoints, a way back from numbers that are not finite, and a last closed-form q."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from orbitgp import checks
from orbitgp.fitting import checkpoint
from orbitgp.fitting.checkpoint import History, Snapshot
from orbitgp.fitting.lock import hold
from orbitgp.fitting.scores import Tester, TestScore, WholeBound, bounds_of, named_parameters
from orbitgp.fitting.stopping import Interrupted, Stop
from orbitgp.models import InvariantSVGP
from orbitgp.optimizers.natural import best_posterior
from orbitgp.optimizers.recipe import Recipe
from orbitgp.optimizers.steps import Optimizer
from orbitgp.schemes import Groups, Scheme

TOGETHER = 20  # steps between checks for signals and reports
TRIES = 5  # returns to a good state before a training is given up
BOUND_PASSES = 3  # passes over all data for the reported bound and its standard error

Data = tuple[np.ndarray, np.ndarray]  #: (X [N, D], Y [N, P])


@dataclass(frozen=True)
class Fitted:
    """The results of a training; the parameters are in the model that was passed."""

    bounds: np.ndarray  #: [passes], independent unbiased estimates of the evidence lower bound on all data
    score: TestScore | None  #: on the test data; None without any
    history: History  #: curves, times and events of the training
    steps: int  #: number of steps made
    diverged: bool  #: whether it was given up; the numbers are then those of the last good state

    @property
    def elbo(self) -> float:
        """The mean of ``bounds``, in nats."""
        return float(self.bounds.mean())

    @property
    def elbo_std_error(self) -> float:
        """Standard error of ``elbo`` over draws from the orbit."""
        return float(self.bounds.std(ddof=1) / np.sqrt(len(self.bounds)))


def fit(
    model: InvariantSVGP,
    data: Data,
    recipe: Recipe | None = None,
    *,
    seed: int = 0,
    test: Data | None = None,
    evaluations: int = 20,
    final_samples: int = 128,
    refit: bool = True,
    checkpoints: Path | None = None,
    identity: str | None = None,
    checkpoint_every: float = 60.0,
    log: Callable[[str], None] | None = None,
    on_report: Callable[[History], None] | None = None,
    tensorboard: Path | None = None,
    stop: Stop | None = None,
    keep: bool = False,
    name: str = "fit",
) -> Fitted:
    """
    Trains a model, in place.

    :param data: (X, Y), [N, D] and [N, P], all training data; the model's ``num_data`` should be N.
    :param recipe: kind and number of steps, batches and learning rates; the default :class:`Recipe` if None.
    :param seed: seed of batches and draws.
    :param test: (X, Y) whose error and log density are measured during training; they do not influence it.
    :param evaluations: number of rows of the curves, besides the first.
    :param final_samples: draws for each input in the last passes over all data, an even number. The model keeps the
        scheme of these passes.
    :param refit: whether q is set to its optimum at the end, if that raises the bound.
    :param checkpoints: folder from which a killed training resumes as if nothing had happened; none if None.
    :param identity: digest that a checkpoint must match, of data, settings and code; by default of data, recipe, seed.
    :param checkpoint_every: seconds between two checkpoints.
    :param log: called with a line of text now and then.
    :param on_report: called with the history after each row of the curves.
    :param tensorboard: folder for TensorBoard; none if None.
    :param stop: says whether to stop; checked every few steps.
    :param keep: whether a training that was asked to stop returns what it has, instead of raising ``Interrupted``.
    :param name: title of the progress bar; no bar if it is empty.
    """
    checks.instance("model", model, InvariantSVGP)
    checks.integer("evaluations", evaluations, least=1)
    if checks.integer("final_samples", final_samples, least=2) % 2:
        raise ValueError(f"final_samples must be even, to make two groups, got {final_samples}")
    recipe = recipe or Recipe()
    folder = None if checkpoints is None else Path(checkpoints)
    with hold(folder) if folder is not None else nullcontext():
        fitting = _Fitting(
            model=model,
            data=data,
            recipe=recipe,
            seed=checks.integer("seed", seed, least=0),
            test_data=test,
            evaluations=min(evaluations, recipe.steps),
            folder=folder,
            identity=identity or f"{recipe} {seed} {checkpoint.data_digest(*data, *(test or ()))}",
            checkpoint_every=checkpoint_every,
            log=log or (lambda line: None),
            on_report=on_report or (lambda history: None),
            board=tf.summary.create_file_writer(str(tensorboard)) if tensorboard else None,
            stop=stop or Stop(),
            name=name,
        )
        fitting.stop.last_words = fitting.save
        try:
            fitting.run()
            return fitting.finish(final_samples, refit)
        except Interrupted as asked:
            if keep:
                fitting.log(f"{asked}: ends at step {fitting.step}")
                return fitting.finish(final_samples, refit)
            fitting.save()
            raise Interrupted(f"{asked}; saved at step {int(fitting.good.values['step'])}") from None


def final_scheme(scheme: Scheme, samples: int) -> Scheme:
    """The scheme of the last passes over all data: two Sobol groups of ``samples``/2; without groups, no change."""
    return Groups(2, samples // 2) if isinstance(scheme, Groups) else scheme


@dataclass
class _Fitting:
    """One training: its arguments and its state."""

    model: InvariantSVGP
    data: Data
    recipe: Recipe
    seed: int
    test_data: Data | None
    evaluations: int
    folder: Path | None
    identity: str
    checkpoint_every: float
    log: Callable[[str], None]
    on_report: Callable[[History], None]
    board: Any
    stop: Stop
    name: str

    def __post_init__(self) -> None:
        self.optimizer = Optimizer(self.model, self.data, self.recipe, self.seed)
        self.variables = self.optimizer.state()
        self.diverged = False
        self.test = self._tester()
        self._begin()

    def _tester(self, probabilities: bool = False) -> Tester | None:
        return None if self.test_data is None else Tester(self.model, *self.test_data, probabilities)

    @property
    def step(self) -> int:
        return int(self.optimizer.step.numpy())

    def run(self) -> None:
        """Trains to the end, or until it is given up."""
        steps = self.recipe.steps
        hidden = not self.name or not sys.stderr.isatty()
        progress = tqdm(desc=self.name, total=steps, initial=self.step, unit="step", disable=hidden)
        with progress as bar, self.stop.only_noted():
            while self.step < steps and not self.diverged:
                start, total = self.step, 0.0
                until = self._next_report(start)
                while self.step < until:
                    if self.stop.asked:
                        raise Interrupted(self.stop.asked)
                    bound = self._advance(min(TOGETHER, until - self.step))
                    if not np.isfinite(bound):
                        self._go_back()
                        break
                    total += bound
                else:
                    self.good = self.reported = self._report(total / (until - start))
                    if time.monotonic() - self.saved_at > self.checkpoint_every:
                        self.save()
                bar.update(self.step - bar.n)

    def _begin(self) -> None:
        """Begins at the newest checkpoint, or at the start."""
        found = None
        if self.folder is not None:
            checkpoint.discard_leftovers(self.folder)
            found, trouble = checkpoint.newest(self.folder, self.variables, self.identity)
            for line in trouble:
                self.log(line)
        self.saved_at = self.clock = time.monotonic()
        if found is None:
            self.history = History()
            self.good = self._report(bound=None)
        else:
            self.history = found.bring_back(self.variables)
            self.history.resumed += 1
            self.log(f"resumed at step {self.step} of {self.recipe.steps}")
            self.clock -= self.history.seconds
            self.good = Snapshot.take(self.variables, self.history)
        self.reported = self.good

    def _advance(self, steps: int) -> float:
        """Makes steps and returns the sum of their bounds; NaN if anything is not finite after them."""
        try:
            bound, finite = self.optimizer.advance(tf.constant(steps))
        except tf.errors.InvalidArgumentError:  # a CPU refuses an index that was computed from NaN, a GPU does not
            if all(np.all(np.isfinite(variable)) for variable in self.variables.values()):
                raise
            return np.nan
        return float(bound) if finite else np.nan

    def _next_report(self, step: int) -> int:
        places = (round(i * self.recipe.steps / self.evaluations) for i in range(1, self.evaluations + 1))
        return next(at for at in places if at > step)

    def _report(self, bound: float | None) -> Snapshot:
        """Adds a row to the metrics, and takes a snapshot to come back to."""
        self.optimizer.write_back()
        score = self.test() if self.test is not None else None
        self.history.seconds = time.monotonic() - self.clock
        row: dict[str, Any] = {"step": self.step, "elbo": bound}
        said = "" if bound is None else f"bound {bound:.6g}, "
        if score is not None:
            row |= {"test_error": score.error, "test_nll": score.nll}
            said += f"test error {score.error:.2f} %, "
        self.history.rows.append(row | named_parameters(self.model))
        self.history.timing.append((self.step, round(self.history.seconds, 3)))
        self.on_report(self.history)
        self.log(f"step {self.step} of {self.recipe.steps}: {said}{self.history.seconds:.0f} s")
        if self.board is not None:
            with self.board.as_default(self.step):
                for name, value in self.history.rows[-1].items():
                    if value is not None and name != "step":
                        tf.summary.scalar(name, value)
        return Snapshot.take(self.variables, self.history)

    def save(self) -> None:
        """Writes a checkpoint of the last good state."""
        if self.folder is not None:
            checkpoint.save(self.folder, self.good, self.identity)
        self.saved_at = time.monotonic()

    def _go_back(self) -> None:
        """A value is not finite: return to the last good state with ten times the jitter, or give up."""
        failed_at = self.step
        self.history = self.good.bring_back(self.variables)
        tries = sum(event["kind"] == "not finite" for event in self.history.events)
        if tries == TRIES:
            self.diverged = True
            self.reported.bring_back(self.variables)  # with the jitter that the last numbers were made with
            detail = f"given up after {TRIES} returns to a good state; the numbers are those of step {self.step}"
            self._record(failed_at, "given up", detail)
            return
        self.model.jitter.assign(10 * self.model.jitter)
        self.optimizer.mend()
        detail = f"back to step {self.step}, jitter {self.model.jitter.numpy():.0e}"
        self._record(failed_at, "not finite", detail)
        self.good = Snapshot.take(self.variables, self.history)

    def _record(self, step: int, kind: str, detail: str) -> None:
        self.history.events.append({"step": step, "kind": kind, "detail": detail})
        self.log(f"step {step}: {kind}: {detail}")

    def finish(self, samples: int, refit: bool) -> Fitted:
        """Sets q to its optimum if that raises the bound, and measures bound and score."""
        model = self.model
        self.optimizer.write_back()
        model.scheme = final_scheme(model.scheme, samples)
        self.test = self._tester(probabilities=True)  # the old one was compiled with the old scheme
        whole = WholeBound(model, *self.data, self.recipe.batch)
        # on the draws that chose it, q would look too good: it comes from pass 0, its bound from passes 1, 2, …
        judges = [whole(self.seed, number) for number in range(1, 1 + BOUND_PASSES)]
        bounds = bounds_of(model, judges)
        if refit and not self.diverged:
            before = model.q_mu.numpy(), model.q_sqrt.numpy()
            mean, root = best_posterior(whole(self.seed, 0))
            if np.all(np.isfinite(mean)) and np.all(np.isfinite(root)):
                model.q_mu.assign(mean)
                model.q_sqrt.assign(tf.broadcast_to(root, model.q_sqrt.shape))
                refitted = bounds_of(model, judges)
                if refitted.mean() > bounds.mean():
                    bounds = refitted
                else:
                    model.q_mu.assign(before[0])
                    model.q_sqrt.assign(before[1])
        score = self.test() if self.test is not None else None
        self.history.seconds = time.monotonic() - self.clock
        said = "" if score is None else f"test error {score.error:.2f} %, "
        self.log(f"ended: bound {bounds.mean():.6g}, {said}{self.history.seconds:.0f} s")
        return Fitted(bounds, score, self.history, self.step, self.diverged)
