import csv
import json
import os
import shutil
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from orbitgp import files
from orbitgp.datasets import ImageData, Images
from orbitgp.fitting import loop
from orbitgp.fitting.lock import FolderInUse
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
    "batch": 30,
    "rates": dict.fromkeys(("inducing", "kernel", "likelihood", "orbit", "variational"), 0.01),
    "warmup": 0.0,
    "floor": 0.1,
}

SAME = ("metrics.csv", "final.json", "params.npz", "config.yaml")  # in every run of one specification


def read_rows(folder):
    with open(folder / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


def read_final(folder):
    return json.loads((folder / "final.json").read_text())


def contents(folder):
    return {name: (folder / name).read_bytes() for name in SAME}


def score_of(folder, spec, data):
    """Error and −log p of the trained model, and the model."""
    model = load_trained(folder, data)
    return Tester(model, data.test.inputs(np.float32), targets(spec, data, data.test))(), model


def stop_at_four(line):
    if line.startswith("step 4 of 8"):
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small_spec, small_images):
    """An undisturbed training: where its files are, and what it said."""
    base = tmp_path_factory.mktemp("finished")
    said = []
    folder, spec = base / "small" / "rotation" / "seed3", small_spec()
    train(spec, small_images, folder, base / "work", said.append, tensorboard=base / "board")
    return SimpleNamespace(spec=spec, folder=folder, work=base / "work", board=base / "board", said=said)


@pytest.fixture
def places(tmp_path):
    """Folders for results and for work, where a test has one training."""
    return tmp_path / "small" / "rotation" / "seed3", tmp_path / "work"


@pytest.fixture
def trained(places, eagerly):
    """Trains step by step, and reads the final numbers, the rows and the parameters."""

    def finish(spec, data, say=lambda line: None):
        train(spec, data, *places, say)
        return read_final(places[0]), read_rows(places[0]), files.read_npz(places[0] / "params.npz")

    return finish


# -- the files of a run --------------------------------------------------------------------------------------------


def test_the_metrics_begin_with_step_zero_and_name_the_parameters(finished):
    rows = read_rows(finished.folder)
    parameters = ["kernel.variance", "kernel.lengthscale", "likelihood.variance", "orbit.alpha"]
    assert list(rows[0]) == ["step", "elbo", "test_error", "test_nll", *parameters]
    assert [int(row["step"]) for row in rows] == [0, 2, 4, 6, 8]
    assert rows[0]["elbo"] == "" and float(rows[0]["orbit.alpha"]) == pytest.approx(30.0)
    assert all(np.isfinite(float(value)) for row in rows[1:] for value in row.values())
    timing = [line.split(",") for line in (finished.folder / "timing.csv").read_text().splitlines()[1:]]
    assert [step for step, _ in timing] == [row["step"] for row in rows]
    assert np.all(np.diff([float(wall) for _, wall in timing]) > 0)


def test_the_files_are_whole_know_each_other_by_their_sums_and_no_others_are_there(finished):
    names = ["config.yaml", "final.json", "metrics.csv", "params.npz", "provenance.json", "timing.csv"]
    assert sorted(path.name for path in finished.folder.iterdir()) == names
    (workplace,) = finished.work.glob("small-rotation-seed3-*")
    assert sorted(path.name for path in workplace.iterdir()) == ["lock", "metrics.csv", "timing.csv"]
    final, origin = read_final(finished.folder), json.loads((finished.folder / "provenance.json").read_text())
    assert final["files"] == files.sums(finished.folder, ["config.yaml", "metrics.csv", "params.npz"])
    assert origin["files"] == files.sums(finished.folder, ["final.json", "timing.csv"])
    assert origin["resumed"] == 0 and origin["wall_s"] > 0
    assert origin["config_digest"] == final["config_digest"] == digest(finished.spec)
    assert read_spec(finished.folder / "config.yaml") == finished.spec
    runs = read_runs([finished.folder])  # has all that the analysis reads
    assert list(runs.metrics.step) == [0, 2, 4, 6, 8] and runs.finals.elbo[0] == final["elbo"]


def test_training_has_learned_something_and_its_final_numbers_are_those_of_the_last_row(finished):
    rows, final = read_rows(finished.folder), read_final(finished.folder)
    expected = {"experiment": "small", "variant": "rotation", "label": "from 30°", "seed": 3, "steps": 8}
    expected |= {"train_size": 60, "test_size": 30, "events": [], "diverged": False}
    expected |= {"parameters": {name: float(rows[-1][name]) for name in list(rows[-1])[4:]}}
    assert final | expected == final
    assert final["test_error"] < 20 and final["elbo"] > float(rows[1]["elbo"])
    assert float(rows[-1]["orbit.alpha"]) != pytest.approx(30.0, abs=1e-3)
    assert finished.said[-1].startswith(f"ended: bound {final['elbo']:.6g}, test error {final['test_error']:.2f} %")


def test_a_sum_of_processes_trains_and_leaves_its_files(places, trained, small_spec, small_images):
    components = [{"patch": 3, "stride": 2, "inducing": 6}, {"inducing": 4}]
    final, rows, parameters = trained(small_spec(components=components), small_images)
    assert not final["diverged"] and final["elbo"] > float(rows[1]["elbo"])
    names = [f"kernel.kernels[{place}].variance" for place in ("0].base.kernels[0", "1")]
    assert all(float(rows[-1][name]) != float(rows[0][name]) for name in names)
    assert parameters["inducing_variable.parts[0].Z"].shape == (6, 11)
    assert parameters["inducing_variable.parts[1].Z"].shape == (4, 64)
    assert read_runs([places[0]]).finals.inducing[0] == 10


def test_the_rows_have_the_mean_of_the_bounds_since_the_last_row(finished, small_images, eagerly):
    spec = finished.spec
    model = build_model(spec, small_images)
    data = small_images.train.inputs(np.float32), targets(spec, small_images, small_images.train)
    optimizer = Optimizer(model, data, recipe(spec), spec.seed)
    bounds = [float(optimizer.advance(tf.constant(1))[0]) for _ in range(8)]
    found = [float(row["elbo"]) for row in read_rows(finished.folder)[1:]]
    np.testing.assert_allclose(found, np.reshape(bounds, (4, 2)).mean(axis=1), rtol=1e-4)


def test_tensorboard_gets_every_row(finished):
    (file,) = finished.board.iterdir()
    found = {}
    for event in tf.compat.v1.train.summary_iterator(str(file)):
        for value in event.summary.value:
            found[event.step, value.tag] = float(tf.make_ndarray(value.tensor))
    for row in read_rows(finished.folder):
        for name, value in row.items():
            if name != "step" and value:
                assert found.pop((int(row["step"]), name)) == pytest.approx(float(value), rel=1e-6)
    assert not found


def test_a_trained_model_predicts_what_the_run_reports(finished, small_images, eagerly):
    final = read_final(finished.folder)
    score, model = score_of(finished.folder, finished.spec, small_images)
    assert score.error == final["test_error"]
    assert score.nll == pytest.approx(final["test_nll"], rel=1e-5)
    train_data = small_images.train.inputs(np.float32), targets(finished.spec, small_images, small_images.train)
    whole = WholeBound(model, *train_data, 30)
    bounds = bounds_of(model, [whole(3, number) for number in range(1, 1 + loop.BOUND_PASSES)])
    assert np.mean(bounds) == pytest.approx(final["elbo"], rel=1e-5, abs=1e-4)
    error = np.std(bounds, ddof=1) / np.sqrt(len(bounds))
    assert error == pytest.approx(final["elbo_std_error"], rel=1e-3)


def test_whatever_draws_it_is_trained_with_a_run_is_scored_as_its_trained_model_is(small_spec, small_images, places):
    """Compiled, as runs are: a compiled function keeps the draws of the scheme that it was traced with."""
    drawn = {"orbit": {"kind": "right_angles"}, "scheme": {"kind": "paper", "samples": 2}}
    spec = small_spec(**drawn, optimiser={"steps": 1}, evaluation={"count": 1})
    train(spec, small_images, *places, print)
    score, model = score_of(places[0], spec, small_images)
    assert score.nll == pytest.approx(read_final(places[0])["test_nll"], rel=1e-5)
    model.scheme = make_scheme(spec.scheme)
    test = small_images.test.inputs(np.float32), targets(spec, small_images, small_images.test)
    assert abs(Tester(model, *test)().nll - score.nll) > 1e-3 * abs(score.nll)


def test_neither_the_same_training_nor_another_may_write_to_the_same_folders(small_spec, small_images, places, trained):
    """As when the configuration is edited while a training still runs: it has another workplace."""
    (folder, work), refused = places, []
    first = small_spec(**NO_ORBIT, optimiser={"steps": 1}, evaluation={"count": 1})

    def meanwhile(line):
        if line.startswith("step 1 of 1"):
            tries = (first, folder.parent, rf"{work}/small-\S+"), (first.changed(jitter=1e-5), folder, folder)
            for spec, results, held in tries:
                with pytest.raises(FolderInUse, match=rf"{held} is in use by process {os.getpid()}"):
                    train(spec, small_images, results, work, refused.append)
                refused.append(spec)

    trained(first, small_images, meanwhile)
    assert len(refused) == 2
    assert read_spec(folder / "config.yaml") == first


# -- stopped, killed and taken up again ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, small_spec, small_images):
    """A folder with the work of a training that was asked to stop; tests go on from copies of it."""
    base = tmp_path_factory.mktemp("stopped")
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with pytest.raises(Interrupted, match="asked to stop by SIGTERM; saved at step 4") as caught:
        train(small_spec(), small_images, base / "results", base / "work", stop_at_four, checkpoint_every=1e9)
    assert isinstance(caught.value, SystemExit) and caught.value.code  # not zero
    assert not (base / "results").exists()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == handlers
    return base / "work"


def test_asked_to_stop_it_saves_says_so_and_goes_on_later(stopped, finished, small_images, places):
    shutil.copytree(stopped, places[1])
    (workplace,) = places[1].glob("small-*")
    (saved,) = workplace.glob("*.npz")
    (workplace / "checkpoint-000000006.npz").write_bytes(saved.read_bytes()[:-100])  # damaged, and newer

    said = []
    train(finished.spec, small_images, *places, said.append, checkpoint_every=1e9)
    assert "checkpoint passed over" in said[0] and said[1] == "resumed at step 4 of 8"
    assert contents(places[0]) == contents(finished.folder)
    assert json.loads((places[0] / "provenance.json").read_text())["resumed"] == 1
    assert not [*workplace.glob("*.npz")]


def test_other_images_behind_the_same_settings_start_anew(stopped, small_spec, small_images, places, trained):
    shutil.copytree(stopped, places[1])
    other = ImageData("small", Images(1 - small_images.train.images, small_images.train.labels), small_images.test)

    def first_line(line):
        raise EOFError(line)

    for data, line in ((small_images, "resumed at step 4 of 8"), (other, "step 0 of 8")):
        with pytest.raises(EOFError, match=rf"^{line}"):
            trained(small_spec(), data, first_line)


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


def test_it_goes_back_raises_the_jitter_and_records_it(failing, finished, small_images, trained):
    failing(step=4, times=1)
    said = []
    final, rows, arrays = trained(finished.spec, small_images, said.append)
    (event,) = final["events"]
    assert event | {"kind": "not finite", "detail": "back to step 4, jitter 1e-05"} == event
    assert event["step"] in (5, 6)  # a CPU stops at the first rotation by NaN, a GPU at the next look
    assert f"step {event['step']}: not finite: back to step 4, jitter 1e-05" in said
    assert (final["diverged"], final["steps"]) == (False, 8)
    assert arrays["jitter"] == pytest.approx(1e-5)
    undisturbed = read_rows(finished.folder)
    assert [row["step"] for row in rows] == ["0", "2", "4", "6", "8"]
    for name in ("elbo", "orbit.alpha"):
        assert float(rows[2][name]) == pytest.approx(float(undisturbed[2][name]), rel=1e-4)
        assert float(rows[4][name]) == pytest.approx(float(undisturbed[4][name]), rel=0.01)  # all but the jitter


def test_it_goes_back_from_a_step_whose_own_bound_was_finite(failing, small_spec, small_images, trained):
    """The bound is that before the step, so that it says nothing of what the last step before a row has done."""
    failing(step=2, times=1, name="adam/kernel/2")  # a mean of gradients
    spec = small_spec(**NO_ORBIT, optimiser={"steps": 4}, evaluation={"count": 4})
    final, rows, _ = trained(spec, small_images)
    assert final["events"] == [{"step": 3, "kind": "not finite", "detail": "back to step 2, jitter 1e-05"}]
    assert final["steps"] == 4
    assert all(np.isfinite(float(row["kernel.variance"])) for row in rows)


def test_after_five_returns_it_is_given_up(failing, small_spec, small_images, trained):
    failing(step=2, times=99)
    final, rows, arrays = trained(small_spec(optimiser={"steps": 4}, evaluation={"count": 4}), small_images)
    assert [event["kind"] for event in final["events"]] == ["not finite"] * 5 + ["given up"]
    raised = [event["detail"].split("jitter ")[1] for event in final["events"][:5]]
    assert raised == [f"1e-0{power}" for power in (5, 4, 3, 2, 1)]
    assert "the numbers are those of step 2" in final["events"][5]["detail"]
    assert (final["diverged"], final["steps"]) == (True, 2)
    assert [row["step"] for row in rows] == ["0", "1", "2"]
    assert final["parameters"]["orbit.alpha"] == float(rows[2]["orbit.alpha"])
    assert final["test_nll"] == pytest.approx(float(rows[2]["test_nll"]), rel=0.3)  # but for the draws of the last pass
    assert arrays["jitter"] == pytest.approx(1e-6)
    assert np.isfinite(final["elbo"])


def test_another_error_is_not_taken_for_a_number(finished, small_images, trained, monkeypatch):
    def fail(self, steps):
        raise tf.errors.InvalidArgumentError(None, None, "labels must be −1 or +1")

    monkeypatch.setattr(Optimizer, "advance", fail)
    said = []
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels must be −1 or"):
        trained(finished.spec, small_images, said.append)
    assert len(said) == 1


@pytest.mark.parametrize("jitter", [1e-17, 1e-30])
def test_a_start_that_cannot_be_factorised_is_mended_by_jitter_or_given_up(
    jitter, small_spec, small_images, trained, places
):
    """So dark that to such a kernel all images are one."""
    parts = (Images(1e-5 * part.images, part.labels) for part in (small_images.train, small_images.test))
    hopeless = NO_ORBIT | {"kernel": {"variance": 1.0, "lengthscale": 1e6}, "precision": "float64"}
    short = {"optimiser": {"steps": 2}, "evaluation": {"count": 1}}
    final = trained(small_spec(**hopeless, **short, jitter=jitter), ImageData("dim", *parts))[0]
    assert final["events"] and final["diverged"] == (jitter == 1e-30)
    if final["diverged"]:
        assert (final["steps"], final["elbo"], final["test_nll"]) == (0, None, None)
        assert np.isnan(read_runs([places[0]]).finals.elbo[0])
    else:
        assert np.isfinite(final["elbo"])


# -- the last pass -------------------------------------------------------------------------------------------------


def test_the_last_pass_raises_the_bound_or_leaves_q_alone(small_spec, small_images, trained, monkeypatch):
    """After one step, far from the best q."""
    optimiser = {"steps": 1, "natural": {"first": 0.01, "last": 0.01, "scale": "ceiling"}}

    def end(refit):
        last = {"samples": 8, "refit": refit}
        spec = small_spec(**NO_ORBIT, optimiser=optimiser, evaluation={"count": 1}, final_pass=last)
        return trained(spec, small_images)[::2]

    plain, q = end(refit=False)
    better, refitted = end(refit=True)
    assert better["elbo"] > plain["elbo"] + 0.1
    assert not np.array_equal(refitted["q_mu"], q["q_mu"])
    for name in ("kernel.base.variance", "inducing_variable.Z"):
        np.testing.assert_array_equal(refitted[name], q[name])
    for bad in (9.0, np.nan):
        monkeypatch.setattr(loop, "best_posterior", lambda _, bad=bad: (np.full(q["q_mu"].shape, bad), np.eye(8)[None]))
        same, kept = end(refit=True)
        assert (same["elbo"], same["test_nll"]) == (plain["elbo"], plain["test_nll"])
        np.testing.assert_array_equal(kept["q_mu"], q["q_mu"])
        np.testing.assert_array_equal(kept["q_sqrt"], q["q_sqrt"])


# -- other kinds ---------------------------------------------------------------------------------------------------

OTHERS = {
    "adam with the paper's estimator": {"optimiser": ADAM, "scheme": {"kind": "paper", "samples": 2}},
    "no orbit": NO_ORBIT | {"optimiser": {"steps": 5}, "evaluation": {"count": 3}},
    "softmax": {"likelihood": {"kind": "softmax", "tilt": "groups"}},
    "dirichlet": {"likelihood": {"kind": "dirichlet"}},
    "signs": {"likelihood": LOGISTIC},
    "signs, a table": {"likelihood": {"kind": "polya_gamma", "tilt": "table"}, "optimiser": ADAM},
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_kinds_train_too(kind, small_spec, small_images, small_signs, trained, places):
    spec = small_spec(**{"optimiser": {"steps": 2}, "evaluation": {"count": 1}} | OTHERS[kind])
    data = small_signs if "signs" in kind else small_images
    final, rows, _ = trained(spec, data)
    spread = ["0", "2", "3", "5"] if kind == "no orbit" else ["0", "2"]  # evaluations, over the steps
    assert [row["step"] for row in rows] == spread
    assert all(np.isfinite(final[name]) for name in ("elbo", "test_error", "test_nll"))
    assert ("likelihood.variance" in rows[0]) == (spec.likelihood.kind == "gaussian")
    assert ("orbit.alpha" in rows[0]) == (kind != "no orbit")
    assert score_of(places[0], spec, data)[0].nll == pytest.approx(final["test_nll"], rel=1e-5)
