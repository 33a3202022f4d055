import csv
import json
import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from orbitgp import files
from orbitgp.datasets import ImageData, Images
from orbitgp.fitting import loop
from orbitgp.fitting.lock import FolderInUse, hold
from orbitgp.fitting.scores import Tester, WholeBound, bounds_of
from orbitgp.fitting.stopping import Interrupted
from orbitgp.optimizers.steps import Optimizer
from orbitgp_paper.experiments.build import build_model, load_trained, make_scheme, recipe, targets
from orbitgp_paper.runs.reading import read_runs
from orbitgp_paper.runs.train import train
from orbitgp_paper.spec import digest, read_spec

NO_ORBIT = {"orbit": {"kind": "identity"}, "scheme": {"kind": "full"}}
LOGISTIC = {"kind": "polya_gamma", "tilt": "network", "hidden": [4]}
ADAM = {
    "kind": "adam",
    "steps": 2,
    "batch": 20,
    "rates": dict.fromkeys(("inducing", "kernel", "likelihood", "orbit", "variational"), 0.01),
    "warmup": 0.0,
    "floor": 0.1,
}

SAME = ("metrics.csv", "final.json", "params.npz", "config.yaml")  # in every run of one specification


def read_rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def read_final(folder):
    return json.loads((folder / "final.json").read_text())


def contents(folder):
    return {name: (folder / name).read_bytes() for name in SAME}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small_spec, small_images):
    """An undisturbed training: where its files are, and what it said."""
    base = tmp_path_factory.mktemp("finished")
    said = []
    folder, spec = base / "small" / "rotation" / "seed3", small_spec()
    train(spec, small_images, folder, base / "work", said.append, tensorboard=base / "board")
    return SimpleNamespace(spec=spec, folder=folder, work=base / "work", board=base / "board", said=said)


# -- the files of a run --------------------------------------------------------------------------------------------


def test_the_files_are_there_and_no_others(finished):
    names = ["config.yaml", "final.json", "metrics.csv", "params.npz", "provenance.json", "timing.csv"]
    assert sorted(path.name for path in finished.folder.iterdir()) == names
    (workplace,) = finished.work.glob("small-*")
    assert workplace.name.startswith("small-rotation-seed3-")
    assert sorted(path.name for path in workplace.iterdir()) == ["lock", "metrics.csv", "timing.csv"]


def test_the_metrics_begin_with_step_zero_and_name_the_parameters(finished):
    rows = read_rows(finished.folder / "metrics.csv")
    parameters = ["kernel.variance", "kernel.lengthscale", "likelihood.variance", "orbit.alpha"]
    assert list(rows[0]) == ["step", "elbo", "test_error", "test_nll", *parameters]
    assert [int(row["step"]) for row in rows] == [0, 2, 4, 6, 8]
    assert rows[0]["elbo"] == ""
    assert float(rows[0]["orbit.alpha"]) == pytest.approx(30.0)
    assert all(np.isfinite(float(value)) for row in rows[1:] for value in row.values())
    timing = read_rows(finished.folder / "timing.csv")
    assert [row["step"] for row in timing] == [row["step"] for row in rows]
    assert np.all(np.diff([float(row["wall_s"]) for row in timing]) > 0)


def test_the_final_numbers_are_whole(finished):
    final = read_final(finished.folder)
    assert set(final) == {
        *("experiment", "variant", "label", "seed", "steps", "elbo", "elbo_std_error", "test_error", "test_nll"),
        *("train_size", "test_size", "parameters", "events", "diverged", "config_digest", "files"),
    }
    expected = {"experiment": "small", "variant": "rotation", "label": "from 30°", "seed": 3, "steps": 8}
    expected |= {"train_size": 60, "test_size": 30, "events": [], "diverged": False}
    assert final | expected == final
    assert final["config_digest"] == digest(finished.spec)
    assert final["elbo_std_error"] > 0
    last = read_rows(finished.folder / "metrics.csv")[-1]
    assert final["parameters"] == {name: float(last[name]) for name in list(last)[4:]}
    assert finished.said[-1].startswith(f"ended: bound {final['elbo']:.6g}, test error {final['test_error']:.2f} %")
    assert read_spec(finished.folder / "config.yaml") == finished.spec


def test_the_provenance_belongs_to_the_run(finished):
    found = json.loads((finished.folder / "provenance.json").read_text())
    assert found["resumed"] == 0
    assert found["config_digest"] == digest(finished.spec)
    assert found["wall_s"] > 0
    assert {"commit", "dirty", "versions", "device", "peak_memory_mb", "source_digest"} <= set(found)


def test_every_file_is_known_by_its_sum(finished):
    final, origin = read_final(finished.folder), json.loads((finished.folder / "provenance.json").read_text())
    assert final["files"] == files.sums(finished.folder, ["config.yaml", "metrics.csv", "params.npz"])
    assert origin["files"] == files.sums(finished.folder, ["final.json", "timing.csv"])


def test_the_analysis_reads_them(finished):
    runs = read_runs([finished.folder])
    assert list(runs.metrics.step) == [0, 2, 4, 6, 8]
    assert runs.finals.elbo[0] == read_final(finished.folder)["elbo"]


def test_training_has_learned_something(finished):
    rows, final = read_rows(finished.folder / "metrics.csv"), read_final(finished.folder)
    assert final["test_error"] < 20
    assert final["elbo"] > float(rows[1]["elbo"])
    assert float(rows[-1]["orbit.alpha"]) != pytest.approx(30.0, abs=1e-3)


def test_the_rows_have_the_mean_of_the_bounds_since_the_last_row(finished, small_images, eagerly):
    spec = finished.spec
    model = build_model(spec, small_images)
    data = small_images.train.inputs(np.float32), targets(spec, small_images, small_images.train)
    optimizer = Optimizer(model, data, recipe(spec), spec.seed)
    bounds = [float(optimizer.advance(tf.constant(1))[0]) for _ in range(8)]
    found = [float(row["elbo"]) for row in read_rows(finished.folder / "metrics.csv")[1:]]
    np.testing.assert_allclose(found, np.reshape(bounds, (4, 2)).mean(axis=1), rtol=1e-4)


def test_tensorboard_gets_every_row(finished):
    (file,) = finished.board.iterdir()
    found = {}
    for event in tf.compat.v1.train.summary_iterator(str(file)):
        for value in event.summary.value:
            found[event.step, value.tag] = float(tf.make_ndarray(value.tensor))
    for row in read_rows(finished.folder / "metrics.csv"):
        for name, value in row.items():
            if name != "step" and value:
                assert found.pop((int(row["step"]), name)) == pytest.approx(float(value), rel=1e-6)
    assert not found


def test_a_trained_model_predicts_what_the_run_reports(finished, small_images, eagerly):
    final = read_final(finished.folder)
    model = load_trained(finished.folder, small_images)
    test = small_images.test.inputs(np.float32), targets(finished.spec, small_images, small_images.test)
    score = Tester(model, *test)()
    assert score.error == final["test_error"]
    assert score.nll == pytest.approx(final["test_nll"], rel=1e-5)
    train_data = small_images.train.inputs(np.float32), targets(finished.spec, small_images, small_images.train)
    whole = WholeBound(model, *train_data, 20)
    bounds = bounds_of(model, [whole(3, number) for number in range(1, 1 + loop.BOUND_PASSES)])
    assert np.mean(bounds) == pytest.approx(final["elbo"], rel=1e-5, abs=1e-4)
    error = np.std(bounds, ddof=1) / np.sqrt(len(bounds))
    assert error == pytest.approx(final["elbo_std_error"], rel=1e-3)


def test_whatever_draws_it_is_trained_with_a_run_is_scored_as_its_trained_model_is(small_spec, small_images, tmp_path):
    """Compiled, as runs are: a compiled function keeps the draws of the scheme that it was traced with."""
    spec = small_spec(scheme={"kind": "paper", "samples": 4})
    folder = tmp_path / "small" / "rotation" / "seed3"
    train(spec, small_images, folder, tmp_path / "work", print)
    final, model = read_final(folder), load_trained(folder, small_images)
    test = small_images.test.inputs(np.float32), targets(spec, small_images, small_images.test)
    score = Tester(model, *test)()
    assert score.nll == pytest.approx(final["test_nll"], rel=1e-5)
    model.scheme = make_scheme(spec.scheme)
    as_trained = Tester(model, *test)()
    assert abs(as_trained.nll - score.nll) > 1e-3 * abs(score.nll)


def test_a_folder_in_use_is_refused(finished, small_images):
    (workplace,) = finished.work.glob("small-*")
    before = contents(finished.folder)
    with hold(workplace), pytest.raises(FolderInUse, match=f"{workplace} is in use by process {os.getpid()}"):
        train(finished.spec, small_images, finished.folder, finished.work, print)
    assert contents(finished.folder) == before


def test_another_specification_may_not_write_to_the_same_results(finished, small_spec, small_images, tmp_path, eagerly):
    """As when the configuration is edited while a training still runs: it has another workplace."""
    other, refused = small_spec(jitter=1e-5), []

    def meanwhile(line):
        if line.startswith("step 4 of 8"):
            with pytest.raises(FolderInUse, match=rf"{tmp_path / 'run'} is in use by process {os.getpid()}") as error:
                train(other, small_images, tmp_path / "run", tmp_path / "work", refused.append)
            refused.append(str(error.value))

    train(finished.spec, small_images, tmp_path / "run", tmp_path / "work", meanwhile)
    assert len(refused) == 1
    assert read_spec(tmp_path / "run" / "config.yaml") == finished.spec


# -- stopped, killed and taken up again ----------------------------------------------------------------------------


def test_asked_to_stop_it_saves_says_so_and_goes_on_later(finished, small_images, tmp_path):
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]

    def stop_at_four(line):
        if line.startswith("step 4 of 8"):
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted, match="asked to stop by SIGTERM; saved at step 4") as caught:
        train(finished.spec, small_images, tmp_path / "run", tmp_path / "work", stop_at_four, checkpoint_every=1e9)
    assert isinstance(caught.value, SystemExit)
    assert caught.value.code  # not zero
    assert not (tmp_path / "run").exists()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == handlers
    (workplace,) = (tmp_path / "work").glob("small-*")
    (saved,) = workplace.glob("*.npz")
    (workplace / "checkpoint-000000006.npz").write_bytes(saved.read_bytes()[:-100])  # damaged, and newer

    said = []
    train(finished.spec, small_images, tmp_path / "run", tmp_path / "work", said.append, checkpoint_every=1e9)
    assert "checkpoint passed over" in said[0]
    assert said[1] == "resumed at step 4 of 8"
    assert contents(tmp_path / "run") == contents(finished.folder)
    assert json.loads((tmp_path / "run" / "provenance.json").read_text())["resumed"] == 1
    assert not [*workplace.glob("*.npz")]


def test_other_images_behind_the_same_settings_start_anew(finished, small_images, tmp_path, eagerly):
    def stop_at_four(line):
        if line.startswith("step 4 of 8"):
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        train(finished.spec, small_images, tmp_path / "run", tmp_path / "work", stop_at_four)
    other = ImageData("small", Images(1 - small_images.train.images, small_images.train.labels), small_images.test)
    said = []
    train(finished.spec, other, tmp_path / "run", tmp_path / "work", said.append)
    assert said[0].startswith("step 0 of 8")


# -- numbers that are not finite -----------------------------------------------------------------------------------


@pytest.fixture
def failing(monkeypatch):
    """Makes the steps after a given one fail, so many times: in q, or in what only the next step's q depends on."""

    def plant(step, times, name="posterior/mean"):
        left = [times]

        class Failing(Optimizer):
            def __init__(self, *arguments):
                super().__init__(*arguments)
                advance = self.advance

                def fail(steps):
                    if int(self.step) >= step and left[0]:
                        left[0] -= 1
                        self.state()[name].assign(np.nan * self.state()[name])
                    return advance(steps)

                self.advance = fail

        monkeypatch.setattr(loop, "Optimizer", Failing)

    return plant


def test_it_goes_back_raises_the_jitter_and_records_it(failing, finished, small_images, tmp_path, eagerly):
    failing(step=4, times=1)
    said = []
    train(finished.spec, small_images, tmp_path / "run", tmp_path / "work", said.append)
    final = read_final(tmp_path / "run")
    (event,) = final["events"]
    assert event | {"kind": "not finite", "detail": "back to step 4, jitter 1e-05"} == event
    assert event["step"] in (5, 6)  # a CPU stops at the first rotation by NaN, a GPU at the next look
    assert f"step {event['step']}: not finite: back to step 4, jitter 1e-05" in said
    assert final["diverged"] is False
    assert final["steps"] == 8
    assert files.read_npz(tmp_path / "run" / "params.npz")["jitter"] == pytest.approx(1e-5)
    rows, undisturbed = (read_rows(folder / "metrics.csv") for folder in (tmp_path / "run", finished.folder))
    assert [row["step"] for row in rows] == ["0", "2", "4", "6", "8"]
    for name in ("elbo", "orbit.alpha"):
        assert float(rows[2][name]) == pytest.approx(float(undisturbed[2][name]), rel=1e-4)
        assert float(rows[4][name]) == pytest.approx(float(undisturbed[4][name]), rel=0.01)  # all but the jitter


def test_it_goes_back_from_a_step_whose_own_bound_was_finite(failing, small_spec, small_images, tmp_path, eagerly):
    """The bound is that before the step, so that it says nothing of what the last step before a row has done."""
    failing(step=4, times=1, name="adam/kernel/2")  # a mean of gradients
    spec = small_spec(evaluation={"count": 8})
    train(spec, small_images, tmp_path / "run", tmp_path / "work", lambda line: None)
    final = read_final(tmp_path / "run")
    (event,) = final["events"]
    assert event == {"step": 5, "kind": "not finite", "detail": "back to step 4, jitter 1e-05"}
    assert final["steps"] == 8
    assert all(np.isfinite(float(row["kernel.variance"])) for row in read_rows(tmp_path / "run" / "metrics.csv"))


def test_after_five_returns_it_is_given_up(failing, finished, small_images, tmp_path, eagerly):
    failing(step=4, times=99)
    train(finished.spec, small_images, tmp_path / "run", tmp_path / "work", lambda line: None)
    final = read_final(tmp_path / "run")
    assert [event["kind"] for event in final["events"]] == ["not finite"] * 5 + ["given up"]
    assert [event["detail"].split("jitter ")[1] for event in final["events"][:5]] == [
        f"1e-0{power}" for power in (5, 4, 3, 2, 1)
    ]
    assert "the numbers are those of step 4" in final["events"][5]["detail"]
    assert final["diverged"] is True
    assert final["steps"] == 4
    rows = read_rows(tmp_path / "run" / "metrics.csv")
    assert [row["step"] for row in rows] == ["0", "2", "4"]
    assert final["parameters"]["orbit.alpha"] == float(rows[2]["orbit.alpha"])
    assert final["test_nll"] == pytest.approx(float(rows[2]["test_nll"]), rel=0.3)  # but for the draws of the last pass
    assert files.read_npz(tmp_path / "run" / "params.npz")["jitter"] == pytest.approx(1e-6)
    assert np.isfinite(final["elbo"])


def test_another_error_is_not_taken_for_a_number(finished, small_images, tmp_path, monkeypatch):
    def fail(self, steps):
        raise tf.errors.InvalidArgumentError(None, None, "labels must be −1 or +1")

    monkeypatch.setattr(Optimizer, "advance", fail)
    said = []
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels must be −1 or"):
        train(finished.spec, small_images, tmp_path / "run", tmp_path / "work", said.append)
    assert len(said) == 1


HOPELESS = NO_ORBIT | {"kernel": {"variance": 1.0, "lengthscale": 1e6}, "precision": "float64"}


@pytest.fixture
def dim(small_images):
    """So dark that to such a kernel all images are one."""
    parts = (Images(1e-5 * part.images, part.labels) for part in (small_images.train, small_images.test))
    return ImageData("dim", *parts)


def test_a_start_that_cannot_be_factorised_is_mended_by_jitter(small_spec, dim, tmp_path, eagerly):
    spec = small_spec(**HOPELESS, jitter=1e-17, evaluation={"count": 1})
    train(spec, dim, tmp_path / "run", tmp_path / "work", lambda line: None)
    final = read_final(tmp_path / "run")
    assert final["events"]
    assert final["diverged"] is False
    assert np.isfinite(final["elbo"])


def test_a_start_that_nothing_mends_is_given_up_with_empty_numbers(small_spec, dim, tmp_path, eagerly):
    spec = small_spec(**HOPELESS, jitter=1e-30, evaluation={"count": 1})
    train(spec, dim, tmp_path / "small" / "rotation" / "seed3", tmp_path / "work", lambda line: None)
    folder = tmp_path / "small" / "rotation" / "seed3"
    final = read_final(folder)
    assert final["diverged"] is True
    assert final["steps"] == 0
    assert (final["elbo"], final["test_nll"]) == (None, None)
    assert np.isnan(read_runs([folder]).finals.elbo[0])


# -- the last pass -------------------------------------------------------------------------------------------------


@pytest.fixture
def short(small_spec):
    """One step, far from the best q."""
    optimiser = {"steps": 1, "natural": {"first": 0.01, "last": 0.01, "scale": "ceiling"}}
    return lambda refit: small_spec(
        **NO_ORBIT, optimiser=optimiser, evaluation={"count": 1}, final_pass={"samples": 8, "refit": refit}
    )


@pytest.fixture
def end(short, small_images, tmp_path, eagerly):
    """Trains, and reads what came out."""

    def finish(name, refit):
        train(short(refit), small_images, tmp_path / name, tmp_path / f"{name}-work", lambda line: None)
        return read_final(tmp_path / name), files.read_npz(tmp_path / name / "params.npz")

    return finish


def test_the_last_pass_raises_the_bound_or_leaves_q_alone(end, monkeypatch):
    plain, q = end("plain", refit=False)
    better, refitted = end("better", refit=True)
    assert better["elbo"] > plain["elbo"] + 0.1
    assert not np.array_equal(refitted["q_mu"], q["q_mu"])
    for name in ("kernel.base.variance", "inducing_variable.Z"):
        np.testing.assert_array_equal(refitted[name], q[name])
    shape = q["q_mu"].shape
    for name, bad in (("worse", (np.full(shape, 9.0), np.eye(8))), ("none", (np.full(shape, np.nan), np.eye(8)))):
        monkeypatch.setattr(loop, "best_posterior", lambda quadratic, bad=bad: bad)
        same, kept = end(name, refit=True)
        assert same["elbo"] == plain["elbo"]
        assert same["test_nll"] == plain["test_nll"]
        np.testing.assert_array_equal(kept["q_mu"], q["q_mu"])
        np.testing.assert_array_equal(kept["q_sqrt"], q["q_sqrt"])


# -- other kinds ---------------------------------------------------------------------------------------------------

OTHERS = {
    "adam with the paper's estimator": {"optimiser": ADAM, "scheme": {"kind": "paper", "samples": 2}},
    "no orbit": NO_ORBIT,
    "signs": {"likelihood": LOGISTIC},
    "signs, a table": {"likelihood": {"kind": "polya_gamma", "tilt": "table"}, "optimiser": ADAM},
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_kinds_train_too(kind, small_spec, small_images, small_signs, tmp_path, eagerly):
    changes = {"optimiser": {"steps": 2}, "evaluation": {"count": 1}} | OTHERS[kind]
    spec = small_spec(**changes)
    data = small_signs if "signs" in kind else small_images
    train(spec, data, tmp_path / "run", tmp_path / "work", lambda line: None)
    final, rows = read_final(tmp_path / "run"), read_rows(tmp_path / "run" / "metrics.csv")
    assert [row["step"] for row in rows] == ["0", "2"]
    assert all(np.isfinite(final[name]) for name in ("elbo", "test_error", "test_nll"))
    assert ("likelihood.variance" in rows[0]) == ("signs" not in kind)
    assert ("orbit.alpha" in rows[0]) == (kind != "no orbit")
    model = load_trained(tmp_path / "run", data)
    test = data.test.inputs(np.float32), targets(spec, data, data.test)
    score = Tester(model, *test)()
    assert score.nll == pytest.approx(final["test_nll"], rel=1e-5)


def test_evaluations_are_spread_over_the_steps(small_spec, small_images, tmp_path, eagerly):
    spec = small_spec(**NO_ORBIT, optimiser={"steps": 5}, evaluation={"count": 3})
    train(spec, small_images, tmp_path / "run", tmp_path / "work", lambda line: None)
    assert [row["step"] for row in read_rows(tmp_path / "run" / "metrics.csv")] == ["0", "2", "3", "5"]
