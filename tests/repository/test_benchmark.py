"""The benchmarks run and say what they should; how fast they are, is no matter of tests."""

import importlib.util
import shutil
import sys
from argparse import Namespace
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import gpflow
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from orbitgp import orbits
from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant
from orbitgp.likelihoods import polya_gamma_bound
from orbitgp.models import InvariantSVGP
from orbitgp.optimizers.batches import HardBatches
from orbitgp.orbits.sampling import split
from orbitgp.schemes import Groups

FOLDER = Path(__file__).parents[2] / "benchmarks"


def load(name):
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def step():
    return load("step")


@pytest.fixture(scope="module")
def gpu():
    return load("gpu")


@pytest.fixture(scope="module")
def angle():
    return load("angle")


@pytest.fixture(scope="module")
def network():
    return load("network")


@pytest.fixture(scope="module")
def batches():
    return load("batches")


def test_every_orbit_and_estimator_is_measured(step):
    tiny = step.Setting(batch=4, samples=4, inducing=6)
    settings = [replace(row, batch=4, samples=4, inducing=6, block=row.block and 2)
                for row in (*step.COMPARISONS["reference"], *step.COMPARISONS["orbit"])]  # fmt: skip
    assert tiny in settings
    for setting in settings:
        found = step.measure(setting, repeats=1, parts=setting == tiny)
        assert found["step_ms"] > 0
        assert np.isfinite(found["peak_mb"])
    assert {"draw_ms", "forward_ms"} <= set(step.measure(tiny, repeats=1, parts=True))


def test_the_table_has_ratios_to_its_first_row(step, monkeypatch, tmp_path):
    stages = dict.fromkeys(("draw_ms", "draw_and_kernel_ms", "forward_ms", "forward_and_backward_ms"), 1.0)
    times = iter([8.0, 2.0, 8.0, 2.0])
    monkeypatch.setattr(step, "in_own_process", lambda *_, **__: {"step_ms": next(times), "peak_mb": 10.0, **stages})
    monkeypatch.setattr(step, "COMPARISONS", {"pair": [step.PAPER, step.Setting()]})
    frame = step.run(["pair"], turns=2, repeats=1)
    assert list(frame.time_ratio) == [1.0, 0.25]
    step.write(frame, tmp_path, "the command")
    assert pd.read_csv(tmp_path / "step.csv").shape[0] == 2
    assert "the command" in (tmp_path / "step.md").read_text()


def test_every_trick_is_a_change_of_the_settings_that_are_measured(gpu):
    specs = {name: gpu.specification(changes, 2000, 750) for name, changes in gpu.TRICKS.items()}
    assert specs["all tricks"] == gpu.specification({}, 2000, 750)
    assert len({repr(spec) for spec in specs.values()}) == len(specs)
    assert specs["Adam for q as well"]["optimiser"]["rates"].keys() > {"inducing", "variational"}


def test_a_step_on_the_gpu_is_compared_with_what_it_would_take_at_least(gpu, tmp_path):
    spec, ceiling = gpu.specification({}, 2000, 750), {"float32 product": 5e13, "float64 product": 5e13, "memory": 4e12}
    floors = gpu.floors(spec, ceiling)
    assert floors["draws and kernel"] == pytest.approx(1e3 * 2 * 2000 * 16 * 784 * 750 / 5e13)
    slow, moved = ceiling | {"memory": 1e9}, 2 * 2000 * 16 * 784 * 4 + 2000 * 2 * 750 * 8
    assert gpu.floors(spec, slow)["draws and kernel"] == pytest.approx(1e3 * moved / 1e9)
    rows = [{"table": "ceiling", "name": name, "value": value} for name, value in ceiling.items()]
    rows += [{"table": "part", "name": name, "value": 2 * value, "floor": value} for name, value in floors.items()]
    rows += [{"table": "trick", "name": name, "value": value} for name, value in (("all", 10.0), ("one less", 20.0))]
    rows += [{"table": "lanes", "name": name, "value": value} for name, value in (("1", 80.0), ("3", np.nan))]
    gpu.write(pd.DataFrame(rows).assign(command="the command", device="the device", commit="abc"), tmp_path)
    text = (tmp_path / "gpu.md").read_text()
    assert "| one less | 20.00 | 2.00 |" in text and "`the command` on the device" in text
    assert "| 1 | 80 | 1.00 |" in text and "| 3 | not to be had here |  |" in text


def test_a_table_measured_anew_leaves_the_others_as_they_are(gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "TABLES", {"tricks": lambda given: [{"table": "trick", "name": "all", "value": 1.0}]})
    earlier = [{"table": table, "name": "earlier", "value": 2.0} for table in ("trick", "variant")]
    pd.DataFrame(earlier).assign(command="old", device="old").to_csv(tmp_path / "gpu.csv", index=False)
    found = gpu.measured(Namespace(only=["tricks"], folder=tmp_path), "new")
    assert list(zip(found.table, found.name, found.command, strict=True)) == [
        ("variant", "earlier", "old"),
        ("trick", "all", "new"),
    ]
    gpu.write(found, tmp_path)
    text = (tmp_path / "gpu.md").read_text()
    assert "- variant: `old` on old, an earlier commit" in text
    assert f"- trick: `new` on CPU, {found.commit.iloc[1]}" in text


def test_the_command_is_recorded_without_the_folder(gpu):
    assert gpu._command(["--only", "lanes", "--folder", "away", "--repeats", "3"]) == (
        "python benchmarks/gpu.py --only lanes --repeats 3"
    )


def test_the_time_to_the_papers_error_is_read_from_the_runs(gpu, tmp_path):
    run = tmp_path / "mnist" / "affine" / "seed3"
    run.mkdir(parents=True)
    pd.DataFrame({"step": [0, 10, 20, 30], "test_error": [9.0, 1.36, 1.35, 1.4]}).to_csv(run / "metrics.csv")
    pd.DataFrame({"step": [0, 10, 20, 30], "wall_s": [1.0, 2.0, 4.0, 8.0]}).to_csv(run / "timing.csv")
    (run / "provenance.json").write_text('{"device": "its GPU"}')
    shutil.copytree(run, tmp_path / "mnist" / "rbf" / "seed0")
    (tmp_path / "mnist" / "rbf" / "seed0" / "metrics.csv").write_text("step,test_error\n0,9.0\n")
    rows = gpu.measure_targets(Namespace(runs=tmp_path))
    assert {row["name"]: (row["value"], row["seconds"]) for row in rows if row["value"] == row["value"]} == {
        "mnist/affine, seed3": (20, 4.0)
    }
    rows += [{"table": "variant", "name": f"mnist/{name}", "value": 50.0} for name in ("affine", "rbf")]
    gpu.write(pd.DataFrame(rows).assign(command="the command", commit="abc").fillna({"device": "the device"}), tmp_path)
    text = (tmp_path / "gpu.md").read_text()
    assert "- target: `the command` on its GPU, abc" in text
    assert "| mnist/affine, seed3 | 1.35 % | 20 | 1 | 4 |" in text
    assert "| mnist/rbf, seed0 | 2.15 % | not reached |  |  |" in text


def test_trainings_side_by_side_are_added_up(gpu):
    given = Namespace(variant_batch=4, inducing=6, seconds=0.1)
    with gpu.trainings(given, 2) as workers:
        first, both = gpu.together(workers[:1]), gpu.together(workers)
    assert first > 0
    assert both > 0
    assert [worker.returncode for worker in workers] == [-9, -9]
    with gpu.trainings(given, 1, run="mnist/no_such_run") as workers:
        assert np.isnan(gpu.together(workers))


def test_an_earlier_commit_stands_beside_this_one(gpu, tmp_path, monkeypatch):
    began = []

    @contextmanager
    def trainings(given, lanes, run, checkout=None):
        began.append((lanes, run, checkout))
        yield [2.0 if checkout else 3.0] * lanes

    monkeypatch.setattr(gpu, "trainings", trainings)
    monkeypatch.setattr(gpu, "together", sum)
    monkeypatch.setattr(gpu, "multi_process_service", lambda: nullcontext(True))
    monkeypatch.setattr(gpu, "_commit", lambda folder: "abc" if folder == tmp_path else "def+")
    rows = gpu.measure_earlier(Namespace(earlier=tmp_path))
    assert began == [(6, run, place) for run in gpu.COMPARED for place in (tmp_path, None)]
    gpu.write(pd.DataFrame(rows).assign(command="the command", device="the device", commit="abc"), tmp_path)
    text = (tmp_path / "gpu.md").read_text()
    assert "| steps a second, all together | abc | def+ | ratio |" in text
    assert "| mnist/affine, alone | 2 | 3 | 1.50 |" in text
    assert "| mnist/affine, 6 at once, MPS | 12 | 18 | 1.50 |" in text


def test_without_a_checkout_there_is_no_earlier_commit(gpu, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--only", "earlier", "--earlier", str(tmp_path)])
    with pytest.raises(SystemExit):
        gpu.main()
    assert f"--earlier must name a checkout of this project, got {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize("run", ["mnist/rbf", "rotated/rotation_plain", "parity/rotation_90_from_20"])
def test_a_step_of_each_experiment_can_be_timed(gpu, run):
    spec = gpu.specification({"compile": False}, 4, 6, run)
    spec["dataset"] |= {"train": 40, "test": 10}
    assert gpu.step_ms(gpu.build(spec), repeats=1) > 0


def test_every_part_of_a_step_is_timed(gpu):
    found = gpu.parts(gpu.build(gpu.specification({"compile": False}, 8, 6)), repeats=1)
    assert list(found) == ["draws and kernel", "solves", "backward", "q and updates"]
    assert np.all(np.isfinite(list(found.values())))


def test_kernels_by_angle_are_averages_over_the_models_own_orbit(angle):
    images = np.random.default_rng(0).uniform(size=(7, 6, 6, 1)).astype(np.float32)
    step, lengthscales = 45.0, [1.0, 2.5]
    found = angle.averaged_kernels(images, step, lengthscales, rows=3)
    assert found.shape == (2, 4, 7, 7)
    for number, lengthscale in enumerate(lengthscales):
        base = gpflow.kernels.SquaredExponential(lengthscales=lengthscale)
        for ring in range(4):
            S = 2 * (ring + 1)
            orbit = orbits.Rotation((6, 6), alpha=step * (ring + 1))
            U = np.tile((np.arange(S) + 0.5)[None, :, None] / S, (7, 1, 1))
            turned = orbit.apply(images.reshape(7, -1).astype(np.float64), U).numpy()
            expected = base(turned.reshape(7 * S, -1)).numpy().reshape(7, S, 7, S).mean((1, 3))
            np.testing.assert_allclose(found[number, ring], expected, atol=1e-5)


def test_the_best_evidence_is_that_of_an_exact_gp_and_the_best(angle):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=30))
    kernel = gpflow.kernels.SquaredExponential()
    evidence, variance, noise = angle.best_evidence(kernel(X).numpy(), y)

    def of_gp(variance, noise):
        kernel.variance.assign(variance)
        model = gpflow.models.GPR((X, y[:, None]), kernel, noise_variance=noise)
        return float(model.log_marginal_likelihood())

    np.testing.assert_allclose(evidence, of_gp(variance, noise), rtol=1e-9)
    for factor in (0.9, 1.1):
        assert of_gp(factor * variance, noise) < evidence
        assert of_gp(variance, factor * noise) < evidence


def test_the_report_names_the_best_angle(angle, tmp_path, monkeypatch, capsys):
    words = "--true 90 --images 20 30 --step 90 --lengthscales 3 4"
    monkeypatch.setattr(sys, "argv", ["angle.py", *words.split(), "--folder", str(tmp_path)])
    angle.main()
    frame, text = pd.read_csv(tmp_path / "angle.csv"), (tmp_path / "angle.md").read_text()
    assert capsys.readouterr().out == text
    assert f"    python benchmarks/angle.py {words}\n" in text
    assert list(frame.images) == [20, 20, 30, 30]
    best = frame.loc[frame[frame.images == 30].evidence.idxmax()]
    assert f"| 90 | all | 30 | {best.angle:g} | {best.evidence:.1f} | {best.lengthscale:g} |" in text
    assert text.count(" 0.0 ") == 2


def test_digits_that_are_left_out_are_in_no_column_of_the_others(angle, tmp_path, monkeypatch, capsys):
    words = "--true 45 90 --images 20 --step 90 --lengthscales 3 --without 6 9"
    monkeypatch.setattr(sys, "argv", ["angle.py", *words.split(), "--folder", str(tmp_path)])
    angle.main()
    frame, text = pd.read_csv(tmp_path / "angle.csv"), capsys.readouterr().out
    assert f"    python benchmarks/angle.py {words}\n" in text
    assert "| angle, ° | ±45°, 20 | ±45°, 20, without 6 9 | ±90°, 20 | ±90°, 20, without 6 9 |" in text
    others = angle.digits_without([6, 9])
    assert sorted(set(others.train.labels)) == sorted(set(others.test.labels)) == [0, 1, 2, 3, 4, 5, 7, 8]
    train = angle.parity(90, seed=0, data=others).train
    kernel = angle.averaged_kernels(train.images[:20], 90, [3.0])[0, 0]
    evidence, _, _ = angle.best_evidence(kernel, train.labels[:20].astype(float))
    row = frame[(frame.true_angle == 90) & (frame.digits == "without 6 9") & (frame.angle == 90)]
    assert row.evidence.item() == pytest.approx(evidence, rel=1e-5)


def test_a_step_that_does_not_fit_is_refused(angle, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["angle.py", "--step", "50"])
    with pytest.raises(SystemExit):
        angle.main()
    assert "--step must divide 180, got 50" in capsys.readouterr().err


def test_a_single_tilt_loses_what_a_slow_search_says(network):
    rng = np.random.default_rng(3)
    second, Y = rng.gamma(1.0, 8.0, size=(40, 1)), np.sign(rng.normal(size=(40, 1)))

    def bound(tilt):
        return polya_gamma_bound(Y, np.zeros_like(Y), second, np.broadcast_to(tilt, Y.shape)).numpy().sum()

    slow = bound(np.sqrt(second)) - max(bound(c) for c in np.linspace(0.05, 20, 400))
    assert slow > 1
    np.testing.assert_allclose(network.gap_of_one_for_all(Y, second), slow, rtol=1e-3)


def test_a_networks_gap_is_never_below_zero_and_falls_with_training(network):
    rng = np.random.default_rng(4)
    X, Y = rng.uniform(size=(60, 5)), np.sign(rng.normal(size=(60, 1)))
    second = 20 * X[:, :1]
    gaps = [network.gap_of_network(X, Y, second, (16, 16), 0.01, steps, batch=20) for steps in (1, 50, 1000)]
    assert gaps[0] > gaps[1] > gaps[2] >= 0
    assert gaps[2] < 0.1 * network.gap_of_one_for_all(Y, second)


def test_the_report_of_networks_has_a_row_for_each(network, tmp_path, monkeypatch, capsys):
    words = "--images 60 --inducing 5 --draws 2 --model-steps 2 --model-batch 20 --steps 3 --batch 20 --rates 0.003"
    monkeypatch.setattr(network, "LAYERS", ((4,), (4, 3)))
    monkeypatch.setattr(sys, "argv", ["network.py", *words.split(), "--folder", str(tmp_path)])
    network.main()
    frame, text = pd.read_csv(tmp_path / "network.csv"), (tmp_path / "network.md").read_text()
    assert list(frame.layers) == ["none: one c for all", "4", "4 3"]
    assert np.all(frame.gap > 0)
    assert f"| 4 3 | {frame.gap[2]:,.0f} |" in text and "--model-steps 2" in text
    assert capsys.readouterr().out == text


def test_the_noise_of_a_gradient_is_that_of_a_slow_loop(batches):
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(12, 9)), rng.normal(size=(12, 2))
    model = InvariantSVGP(
        Invariant(gpflow.kernels.SquaredExponential(1.3, 2.0), orbits.GaussianNoise(9, 0.5)),
        gpflow.likelihoods.Gaussian(0.3),
        BasePoints(rng.normal(size=(4, 9))),
        num_latent_gps=2,
        num_data=12,
        scheme=Groups(2, 2),
    )
    model.q_mu.assign(rng.normal(size=(4, 2)))  # under the prior inducing points would not matter
    drawn = HardBatches(12, 5)
    drawn.weigh(tf.constant(rng.gamma(0.5, size=12)))
    found = batches.variances(model, (X, Y), drawn, repeats=6)
    parts = {
        "inducing points": model.inducing_variable,
        "kernel": model.kernel.base,
        "orbit": model.kernel.orbit,
    }
    assert list(found) == list(parts)
    for name, part in parts.items():
        gradients = []
        for number in range(6):
            seed = tf.constant([0, number], tf.int64)
            rows = drawn.rows(seed, 0).numpy()
            with tf.GradientTape() as tape:
                bound = model.elbo((X[rows], Y[rows], rows, drawn.weights(rows)), split(seed, 1))
            of_each = tape.gradient(bound, part.trainable_variables)
            gradients.append(np.concatenate([np.ravel(tf.convert_to_tensor(one)) for one in of_each]))
        slow = sum(np.var(column, ddof=1) for column in np.transpose(gradients))
        assert slow > 0
        np.testing.assert_allclose(found[name], slow, rtol=1e-8)


def test_the_report_of_batches_has_a_row_for_each(batches, tmp_path, monkeypatch, capsys):
    words = "--images 60 --inducing 5 --draws 2 --steps 2 --batch 20 --repeats 3"
    monkeypatch.setattr(batches, "RUNS", {"one": ("parity", "rotation_90_from_60"), "two": ("mnist", "affine")})
    monkeypatch.setattr(batches, "SHARES", (0.0, 0.5))
    monkeypatch.setattr(sys, "argv", ["batches.py", *words.split(), "--folder", str(tmp_path)])
    batches.main()
    frame, text = pd.read_csv(tmp_path / "batches.csv"), (tmp_path / "batches.md").read_text()
    assert len(frame) == 2 * 3 * 2
    assert np.all(frame.noise[frame.share == 0] == 1) and np.all(frame.noise > 0)
    last = frame.noise.iloc[-1]
    assert frame.run.iloc[-1] == "two" and f"| two | orbit | 1.00 | {last:.2f} |" in text
    assert f"    python benchmarks/batches.py {words}\n" in text
    assert capsys.readouterr().out == text
