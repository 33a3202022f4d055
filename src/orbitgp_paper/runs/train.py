"""A whole training: from a specification and data to the files of a run."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import yaml
from gpflow.utilities import parameter_dict
from tqdm import tqdm

from orbitgp import files
from orbitgp.datasets import ImageData
from orbitgp.fitting import checkpoint
from orbitgp.fitting.checkpoint import History, Snapshot
from orbitgp.fitting.lock import beside, hold
from orbitgp.fitting.scores import Tester, WholeBound, named_parameters
from orbitgp.fitting.stopping import Interrupted, Stop, listen
from orbitgp.models import InvariantSVGP
from orbitgp.optimizers.natural import best_posterior
from orbitgp.optimizers.steps import Optimiser
from orbitgp_paper import config as configuration
from orbitgp_paper import sources
from orbitgp_paper.experiments.build import build_model, final_scheme, targets
from orbitgp_paper.runs.provenance import provenance

TOGETHER = 20  # steps between two looks at the clock and at signals
TRIES = 5  # returns to a good state before a training is given up
BOUND_PASSES = 3  # over all data, for the bound that is reported and its standard error

Log = Callable[[str], None]


def train(
    spec: Mapping[str, Any],
    data: ImageData,
    folder: Path,
    checkpoints: Path,
    log: Log,
    *,
    checkpoint_every: float = 60.0,
    tensorboard: Path | None = None,
) -> None:
    """
    Trains, and leaves metrics.csv, timing.csv, final.json, provenance.json, params.npz and config.yaml in ``folder``,
    each whole. While it trains, they grow in a folder of its own under ``checkpoints``, from which a killed training
    goes on as if nothing had happened.

    :param spec: as :func:`orbitgp_paper.config.run_spec` makes it.
    :param log: gets a line now and then.
    :param checkpoint_every: seconds between two checkpoints.
    :param tensorboard: a folder for TensorBoard, if wanted.
    """
    identity = hashlib.sha256((configuration.canonical(spec) + sources.training_digest()).encode()).hexdigest()
    workplace = checkpoints / f"{spec['experiment']}-{spec['variant']}-seed{spec['seed']}-{identity[:16]}"
    # both: an edited specification has another workplace, and the same folder for its results
    with hold(folder, beside(checkpoints, folder)), hold(workplace), listen(log) as stop:
        checkpoint.discard_leftovers(workplace)
        checkpoint.discard_leftovers(folder)
        training = _Training(spec, data, workplace, identity, log, stop, checkpoint_every, tensorboard)
        stop.last_words = training.save
        try:
            training.run()
        except Interrupted as asked:
            training.save()
            raise Interrupted(f"{asked}; saved at step {int(training.good.values['step'])}") from None
        with stop.only_noted():  # it takes no time worth stopping for
            training.write(folder)
            checkpoint.clear(workplace)


class _Training:
    """The state of one training between its parts."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        data: ImageData,
        workplace: Path,
        identity: str,
        log: Log,
        stop: Stop,
        checkpoint_every: float,
        tensorboard: Path | None,
    ) -> None:
        self.spec, self.data, self.workplace, self.identity = spec, data, workplace, identity
        self.log, self.stop, self.checkpoint_every = log, stop, checkpoint_every
        self.X, self.Y = data.train.inputs(np.float32), targets(spec, data, data.train)
        self.model = build_model(spec, data)
        self.optimiser = Optimiser(self.model, (self.X, self.Y), spec["optimiser"], spec["seed"])
        self.test = self._tester()
        self.variables = self.optimiser.state()
        self.board = tf.summary.create_file_writer(str(tensorboard)) if tensorboard else None
        self.steps = spec["optimiser"]["steps"]
        self.diverged = False
        self.history, self.good = self._begin()
        self.reported = self.good
        self.saved_at = time.monotonic()

    def _tester(self) -> Tester:
        test = self.data.test
        return Tester(
            self.model, test.inputs(np.float32), targets(self.spec, self.data, test), self.spec["evaluation"]["samples"]
        )

    def _begin(self) -> tuple[History, Snapshot]:
        """From the newest checkpoint, or from the start."""
        found, trouble = checkpoint.newest(self.workplace, self.variables, self.identity)
        for line in trouble:
            self.log(line)
        if found is None:
            self.clock = time.monotonic()
            self.history = History()
            return self.history, self._report(bound=None)
        history = found.bring_back(self.variables)
        history.resumed += 1
        self.log(f"resumed at step {self.step} of {self.steps}")
        self.clock = time.monotonic() - history.seconds
        return history, Snapshot.take(self.variables, history)

    @property
    def step(self) -> int:
        return int(self.optimiser.step.numpy())

    def run(self) -> None:
        """Trains to the end, or to the point where it is given up."""
        name = f"{self.spec['variant']}, seed {self.spec['seed']}"
        progress = tqdm(desc=name, total=self.steps, initial=self.step, unit="step", disable=not sys.stderr.isatty())
        with progress as bar, self.stop.only_noted():
            while self.step < self.steps and not self.diverged:
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
        self._finish()

    def _advance(self, steps: int) -> float:
        """The sum of the bounds of so many steps; NaN if anything is not finite after them."""
        try:
            bound, finite = self.optimiser.advance(tf.constant(steps))
        except tf.errors.InvalidArgumentError:  # a CPU refuses an index that was computed from NaN, a GPU does not
            if all(np.all(np.isfinite(variable)) for variable in self.variables.values()):
                raise
            return np.nan
        return float(bound) if finite else np.nan

    def _next_report(self, step: int) -> int:
        count = self.spec["evaluation"]["count"]
        return next(at for at in (round(i * self.steps / count) for i in range(1, count + 1)) if at > step)

    def _report(self, bound: float | None) -> Snapshot:
        """Adds a row to the metrics, and takes a snapshot to come back to."""
        self.optimiser.write_back()
        score = self.test()
        self.history.seconds = time.monotonic() - self.clock
        row = {"step": self.step, "elbo": bound, "test_error": score.error, "test_nll": score.nll}
        self.history.rows.append({**row, **named_parameters(self.model)})
        self.history.timing.append((self.step, round(self.history.seconds, 3)))
        _write_rows(self.workplace, self.history)
        said = "" if bound is None else f"bound {bound:.6g}, "
        self.log(
            f"step {self.step} of {self.steps}: {said}test error {score.error:.2f} %, {self.history.seconds:.0f} s"
        )
        if self.board is not None:
            with self.board.as_default(self.step):
                for name, value in self.history.rows[-1].items():
                    if value is not None and name != "step":
                        tf.summary.scalar(name, value)
        return Snapshot.take(self.variables, self.history)

    def save(self) -> None:
        """A checkpoint of the last good state, whatever is going on."""
        checkpoint.save(self.workplace, self.good, self.identity)
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
        self.optimiser.mend()
        detail = f"back to step {self.step}, jitter {self.model.jitter.numpy():.0e}"
        self._record(failed_at, "not finite", detail)
        self.good = Snapshot.take(self.variables, self.history)

    def _record(self, step: int, kind: str, detail: str) -> None:
        self.history.events.append({"step": step, "kind": kind, "detail": detail})
        self.log(f"step {step}: {kind}: {detail}")

    def _finish(self) -> None:
        """The best q given everything else, if that raises the bound; the bound itself on all data."""
        self.optimiser.write_back()
        self.model.scheme = final_scheme(self.spec)
        self.test = self._tester()  # the one before keeps the draws that it was compiled with
        whole = WholeBound(self.model, self.X, self.Y, self.spec["optimiser"]["batch"])
        # draws that chose q would flatter it: passes 1 … judge what pass 0 found
        judges = [whole(self.spec["seed"], number) for number in range(1, 1 + BOUND_PASSES)]
        bounds = _bounds(self.model, judges)
        if self.spec["final_pass"]["refit"] and not self.diverged:
            before = self.model.q_mu.numpy(), self.model.q_sqrt.numpy()
            mean, root = best_posterior(whole(self.spec["seed"], 0))
            if np.all(np.isfinite(mean)) and np.all(np.isfinite(root)):
                self.model.q_mu.assign(mean)
                self.model.q_sqrt.assign(root[None])
                refitted = _bounds(self.model, judges)
                if refitted.mean() > bounds.mean():
                    bounds = refitted
                else:
                    self.model.q_mu.assign(before[0])
                    self.model.q_sqrt.assign(before[1])
        self.bounds, self.score = bounds, self.test()
        self.history.seconds = time.monotonic() - self.clock
        self.log(f"ended: bound {bounds.mean():.6g}, test error {self.score.error:.2f} %, {self.history.seconds:.0f} s")

    def write(self, folder: Path) -> None:
        """
        The files of the run; final.json last, so that its presence says that all are there. It has the sums of those
        that are the same in every run of this specification, and provenance.json has those of the rest.
        """
        digest = configuration.digest(self.spec)
        identity = {key: self.spec[key] for key in ("experiment", "variant", "label", "seed")}
        final = identity | {
            "steps": self.step,
            "elbo": _finite(self.bounds.mean()),
            "elbo_std_error": _finite(self.bounds.std(ddof=1) / np.sqrt(len(self.bounds))),
            "test_error": _finite(self.score.error),
            "test_nll": _finite(self.score.nll),
            "train_size": len(self.data.train),
            "test_size": len(self.data.test),
            "parameters": named_parameters(self.model),
            "events": self.history.events,
            "diverged": self.diverged,
            "config_digest": digest,
        }
        _write_rows(folder, self.history)
        files.write_npz(folder / "params.npz", _parameters(self.model), compress=True)
        files.write_text(folder / "config.yaml", yaml.safe_dump(dict(self.spec), sort_keys=True, allow_unicode=True))
        final["files"] = files.sums(folder, ("config.yaml", "metrics.csv", "params.npz"))
        text = files.json_text(final)
        origin = {
            "wall_s": round(self.history.seconds, 1),
            "resumed": self.history.resumed,
            "config_digest": digest,
            "files": {"final.json": hashlib.sha256(text.encode()).hexdigest()} | files.sums(folder, ["timing.csv"]),
        }
        files.write_json(folder / "provenance.json", provenance() | origin)
        files.write_text(folder / "final.json", text)


def _bounds(model: InvariantSVGP, quadratics: list[Any]) -> np.ndarray:
    """The bound of the model's q under each estimate, [passes]"""
    root = tf.convert_to_tensor(model.q_sqrt)[0]
    covariance = tf.matmul(root, root, transpose_b=True)
    return np.array([float(q(tf.convert_to_tensor(model.q_mu), covariance) - model.prior_kl()) for q in quadratics])


def _finite(number: float) -> float | None:
    """None where there is no number: JSON has no NaN, and a training that was given up may have nothing else."""
    return float(number) if np.isfinite(number) else None


def _parameters(model: InvariantSVGP) -> dict[str, np.ndarray]:
    """By GPflow's path, less the leading dot, and the jitter that the training ended with."""
    found = {path.lstrip("."): np.asarray(parameter) for path, parameter in parameter_dict(model).items()}
    return found | {"jitter": model.jitter.numpy()}


def _write_rows(folder: Path, history: History) -> None:
    header = list(history.rows[0])
    files.write_csv(folder / "metrics.csv", header, [[row[name] for name in header] for row in history.rows])
    files.write_csv(folder / "timing.csv", ["step", "wall_s"], history.timing)
