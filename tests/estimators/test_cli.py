"""The command ``orbitgp``: arguments, exit codes and files with a stand-in for the models, then once with real ones."""

import csv
import importlib.util
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.figure
import numpy as np
import pytest

import orbitgp
from orbitgp import cli
from orbitgp.files import DamagedFile
from orbitgp.fitting.stopping import Interrupted

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (6, 8, 8), np.uint8)
WORDS = np.array(["cat", "dog", "dog", "cat", "dog", "cat"])


class StandIn:
    """What the command asks of a fitted classifier, and what it was asked."""

    classes_ = np.array(["cat", "dog"])
    image_shape_ = (8, 8, 1)
    evidence_, evidence_std_error_, interrupted_ = -1234.5, 0.25, False
    made: ClassVar[dict[str, Any]] = {}

    def __init__(self, orbit: str = "affine", **settings: Any) -> None:
        StandIn.made = {"orbit": orbit, **settings}

    def fit(self, images: np.ndarray, labels: np.ndarray) -> "StandIn":
        StandIn.made |= {"images": images, "labels": labels}
        return self

    def save(self, path: Path) -> None:
        Path(path).write_text("a model")

    def predict_proba(self, images: np.ndarray) -> np.ndarray:
        return np.array([[2 / 3, 1 / 3], [1 / 3, 2 / 3]])[np.arange(len(images)) % 2]

    def describe(self) -> dict[str, Any]:
        return {"orbit": "affine", "image_shape": [8, 8, 1], "evidence": -1234.5, "learned": {"kernel.variance": 0.02}}

    def plot_orbit(self, images: np.ndarray, draws: int = 8) -> matplotlib.figure.Figure:
        StandIn.made |= {"shown": images, "draws": draws}
        return matplotlib.figure.Figure(figsize=(1, 1))


class Regressor:
    """Of two targets."""

    image_shape_ = (8, 8, 1)

    def predict(self, images: np.ndarray, return_std: bool = False) -> tuple[np.ndarray, np.ndarray]:
        mean = np.stack([np.arange(len(images)), 0.5 + np.arange(len(images))], axis=1)
        return mean, 0.1 * np.ones_like(mean)


class Comparison:
    def table(self) -> str:
        return "orbit   evidence"

    def plot(self) -> matplotlib.figure.Figure:
        return matplotlib.figure.Figure(figsize=(1, 1))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    def compare(images: np.ndarray, labels: np.ndarray, orbits: list[str], **settings: Any) -> Comparison:
        StandIn.made = {"orbits": orbits, **settings}
        return Comparison()

    def load(path: Path, orbit: str | None) -> StandIn:
        return StandIn(orbit or "affine")

    monkeypatch.setattr(cli, "load_tensorflow", lambda: None)
    monkeypatch.setattr(orbitgp, "InvariantClassifier", StandIn, raising=False)
    monkeypatch.setattr(orbitgp, "load", load, raising=False)
    monkeypatch.setattr(orbitgp, "compare", compare, raising=False)
    return StandIn


@pytest.fixture
def data(tmp_path: Path) -> Path:
    np.savez(tmp_path / "data.npz", images=PIXELS, labels=WORDS)
    return tmp_path / "data.npz"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "a.model").write_text("a model")
    return tmp_path / "a.model"


def run(*arguments: Any) -> int:
    return cli.main([str(argument) for argument in arguments])


# -- usage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "predict", "show", "compare", "info"])
def test_help_has_an_example_that_can_be_parsed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(command, "--help")
    assert ended.value.code == 0
    example = capsys.readouterr().out.split("example:\n")[1].split()
    assert example[:2] == ["orbitgp", command]
    cli.parser().parse_args(example[1:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["train"], "invalid choice: 'train'"),
        (["fit"], "required: DATA, -o"),
        (
            ["fit", "d", "-o", "m", "--orbit", "spiral"],
            "expected one of none, rotation",
        ),
        (["fit", "d", "-o", "m", "--steps", "0"], "--steps: expected an integer of at least 1, got '0'"),
        (["fit", "d", "-o", "m", "--steps", "1.5"], "expected an integer of at least 1, got '1.5'"),
        (["fit", "d", "-o", "m", "--steps", "5", "--time-budget", "9"], "not allowed with argument --steps"),
        (["fit", "d", "-o", "m", "--time-budget", "0"], "expected a number of seconds above 0, got '0'"),
        (["fit", "d", "-o", "m", "--time-budget", "inf"], "expected a number of seconds above 0, got 'inf'"),
        (["fit", "d", "-o", "m", "--time-budget", "soon"], "expected a number of seconds above 0, got 'soon'"),
        (["fit", "d", "-o", "m", "--seed", "-1"], "--seed: expected an integer of at least 0, got '-1'"),
        (["predict", "m"], "required: DATA"),
        (["show", "m", "d"], "required: -o"),
        (["show", "m", "d", "-o", "orbit.txt"], "expected a name that ends in .png, .pdf, .svg, got 'orbit.txt'"),
        (["show", "m", "d", "-o", "o.png", "--count", "0"], "expected an integer of at least 1"),
        (
            ["compare", "d", "--orbits", "none", "spiral"],
            "expected one of none, rotation",
        ),
        (["compare", "d", "--orbits"], "expected at least one argument"),
        (["info", "m", "n"], "unrecognized arguments: n"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_help_and_wrong_usage_load_no_tensorflow() -> None:
    code = """
import sys
from orbitgp import cli
for arguments in (["fit", "--help"], ["fit"], ["fit", "nowhere", "-o", "m"]):
    try:
        cli.main(arguments)
    except SystemExit:
        pass
assert "tensorflow" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_orbits_are_those_that_estimators_know_by_name() -> None:
    from orbitgp.estimators.orbit_names import NAMED

    assert tuple(NAMED) == cli.ORBITS


# -- fit -----------------------------------------------------------------------------------------------------------


def test_fit_passes_everything_on(
    stand_in: type[StandIn], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["--orbit", "local", "--steps", 7, "--inducing", 5, "--seed", 3, "--likelihood", "dirichlet"]
    assert run("fit", data, "-o", tmp_path / "deep/er/a.model", *settings) == 0
    made = stand_in.made
    assert {name: made[name] for name in ("orbit", "steps", "time_budget", "inducing", "likelihood", "seed")} == {
        "orbit": "local",
        "likelihood": "dirichlet",
        "steps": 7,
        "time_budget": None,
        "inducing": 5,
        "seed": 3,
    }
    assert made["images"].shape == (6, 8, 8, 1)
    assert made["labels"].tolist() == WORDS.tolist()
    assert "6 images of 2 classes, orbit local, evidence at least -1,234.5 ± 0.2 nats" in capsys.readouterr().out


def test_fit_takes_a_time_budget_and_chooses_the_rest(stand_in: type[StandIn], data: Path, tmp_path: Path) -> None:
    assert run("fit", data, "-o", tmp_path / "a.model", "--time-budget", "2.5") == 0
    made = {name: stand_in.made[name] for name in ("orbit", "steps", "time_budget", "inducing", "seed")}
    assert made == {"orbit": "affine", "steps": None, "time_budget": 2.5, "inducing": None, "seed": 0}


# -- predict -------------------------------------------------------------------------------------------------------


def test_predictions_go_to_standard_output(
    stand_in: type[StandIn], model: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("predict", model, data) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0] == ["index", "label", "p(cat)", "p(dog)"]
    assert rows[1:3] == [["0", "cat", "0.666667", "0.333333"], ["1", "dog", "0.333333", "0.666667"]]
    assert len(rows) == 7


def test_predictions_of_files_have_their_names(
    stand_in: type[StandIn], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import tensorflow as tf

    (tmp_path / "new").mkdir()
    for name, pixels in zip(("b, too.png", "a.png"), PIXELS, strict=False):
        (tmp_path / "new" / name).write_bytes(tf.io.encode_png(pixels[..., None]).numpy())
    assert run("predict", model, tmp_path / "new", "-o", tmp_path / "out.csv") == 0
    rows = list(csv.reader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert [row[0] for row in rows] == ["name", "a.png", "b, too.png"]
    assert capsys.readouterr().out == ""


def test_a_regressor_predicts_a_mean_and_a_deviation_of_each_target(
    stand_in: type[StandIn],
    model: Path,
    data: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(orbitgp, "load", lambda path, orbit: Regressor())
    assert run("predict", model, data) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0] == ["index", "mean(0)", "mean(1)", "std(0)", "std(1)"]
    assert rows[2] == ["1", "1", "1.5", "0.1", "0.1"] and len(rows) == 7


def test_an_orbit_of_ones_own_is_passed_on(stand_in: type[StandIn], model: Path, data: Path, tmp_path: Path) -> None:
    assert run("fit", data, "-o", tmp_path / "b.model", "--orbit", "mine:Shear") == 0
    assert stand_in.made["orbit"] == "mine:Shear"
    for command in (["predict", model, data], ["show", model, data, "-o", tmp_path / "a.png"], ["info", model]):
        assert run(*command, "--orbit", "mine:Twist") == 0
        assert stand_in.made["orbit"] == "mine:Twist"


def test_predict_refuses_other_images(
    stand_in: type[StandIn], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "small.npz", images=PIXELS[:, :4])
    assert run("predict", model, tmp_path / "small.npz", "-o", tmp_path / "out.csv") == 1
    assert "small.npz: expected images of 8 × 8 × 1" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_a_reader_that_has_had_enough(data: Path, model: Path) -> None:
    """As with ``| head``: no traceback, and no complaint of Python's as it ends."""
    code = f"""
import sys
import numpy as np
import orbitgp
from orbitgp import cli

class Model:
    classes_, image_shape_ = np.array([0, 1]), (8, 8, 1)
    def predict_proba(self, images):
        sys.stdin.read()  # until the reader is gone
        return np.zeros((len(images), 2))

cli.load_tensorflow, orbitgp.load = lambda: None, lambda path, orbit: Model()
sys.exit(cli.main(["predict", {str(model)!r}, {str(data)!r}]))
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:  # type: ignore[call-overload]
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


# -- show, compare, info -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ending", "mark"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("SVG", b"<?xml")])
def test_show_draws_images_spread_over_the_data(
    stand_in: type[StandIn], model: Path, data: Path, tmp_path: Path, ending: str, mark: bytes
) -> None:
    assert run("show", model, data, "-o", tmp_path / f"orbit.{ending}", "--count", 2, "--draws", 3) == 0
    assert (tmp_path / f"orbit.{ending}").read_bytes().startswith(mark)
    assert np.array_equal(stand_in.made["shown"][..., 0] * 255, PIXELS[[0, 5]])
    assert stand_in.made["draws"] == 3


def test_show_draws_what_there_is(stand_in: type[StandIn], model: Path, data: Path, tmp_path: Path) -> None:
    assert run("show", model, data, "-o", tmp_path / "orbit.png", "--count", 100) == 0
    assert len(stand_in.made["shown"]) == 6


def test_figures_need_matplotlib(
    stand_in: type[StandIn],
    model: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for command in (["show", model, data], ["compare", data]):
        assert run(*command, "-o", tmp_path / "figure.png") == 1
        assert capsys.readouterr().err == "orbitgp: error: figures need matplotlib: pip install 'orbitgp[plots]'\n"
    assert run("compare", data) == 0


def test_compare_prints_a_table_and_draws_if_asked(
    stand_in: type[StandIn], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compare", data) == 0
    assert capsys.readouterr().out == "orbit   evidence\n"
    assert stand_in.made["orbits"] == ["none", "rotation", "affine", "local"]
    orbits = ["--orbits", "scale", "none", "scale"]
    assert run("compare", data, "-o", tmp_path / "c.png", *orbits, "--steps", 3, "--seed", 2) == 0
    rest = {"time_budget": None, "inducing": None, "likelihood": "auto"}
    assert stand_in.made == {"orbits": ["scale", "none"], "steps": 3, "seed": 2, **rest}
    assert (tmp_path / "c.png").stat().st_size > 0


def test_info_for_people_and_for_programs(
    stand_in: type[StandIn], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("info", model) == 0
    assert capsys.readouterr().out.splitlines() == [
        "orbit: affine",
        "image shape: 8, 8, 1",
        "evidence: -1234.5",
        "learned:",
        "  kernel.variance: 0.02",
    ]
    assert run("info", model, "--json") == 0
    assert json.loads(capsys.readouterr().out) == StandIn().describe()


# -- errors --------------------------------------------------------------------------------------------------------


def test_files_are_looked_at_before_anything_takes_long(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise AssertionError("too late")

    monkeypatch.setattr(cli, "load_tensorflow", refuse)
    content = data.read_bytes()
    cases = [
        (["fit", tmp_path / "nowhere", "-o", tmp_path / "m"], "nowhere: no such file or folder"),
        (["fit", data, "--labels", tmp_path / "none", "-o", tmp_path / "m"], "none: no such file or folder"),
        (["fit", data, "-o", tmp_path], "expected the name of a file to write, but it is a folder"),
        (["fit", data, "-o", data], "data.npz: is an input, and would be overwritten; give another name after -o"),
        (["fit", data, "-o", data / "m"], "cannot be written: "),
        (["predict", tmp_path / "nowhere", data], "nowhere: no such file or folder"),
    ]
    for arguments, message in cases:
        assert run(*arguments) == 1
        error = capsys.readouterr().err
        assert error.startswith("orbitgp: error: ")
        assert error.count("\n") == 1
        assert message in error
    assert data.read_bytes() == content


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("two\n  lines"), "two lines"),
        (DamagedFile("a.model is not whole"), "a.model is not whole"),
        (FloatingPointError("training diverged"), "training diverged"),
        (OSError(28, "cannot write a.model: No space left on device"), "cannot write a.model: No space left on device"),
        (PermissionError(13, "Permission denied", "a.model"), "a.model: Permission denied"),
        (ValueError(), "ValueError"),
    ],
)
def test_errors_are_one_line(
    stand_in: type[StandIn],
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    line: str,
) -> None:
    def fail(path: Path, orbit: str | None) -> None:
        raise error

    monkeypatch.setattr(orbitgp, "load", fail)
    assert run("info", model) == 1
    assert capsys.readouterr().err == f"orbitgp: error: {line}\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyboardInterrupt(), "orbitgp: stopped\n"),
        (Interrupted("asked to stop by SIGINT"), "orbitgp: stopped: asked to stop by SIGINT\n"),
    ],
)
def test_stopped(
    stand_in: type[StandIn],
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    line: str,
) -> None:
    def fit(*arguments: Any) -> None:
        raise error

    monkeypatch.setattr(StandIn, "fit", fit)
    assert run("fit", data, "-o", tmp_path / "a.model") == 130
    assert capsys.readouterr().err == line
    assert not (tmp_path / "a.model").exists()


def test_a_training_that_was_stopped_leaves_its_model(
    stand_in: type[StandIn],
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(StandIn, "interrupted_", True)
    model = tmp_path / "a.model"
    assert run("fit", data, "-o", model) == 130
    assert capsys.readouterr().err == f"orbitgp: stopped: {model} has the model as trained so far\n"
    assert model.read_text() == "a model"


def test_a_bug_is_not_hidden(stand_in: type[StandIn], model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandIn, "describe", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("info", model)


def test_a_figure_is_whole_or_not_there(
    stand_in: type[StandIn], model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(self: Any, file: Any, **settings: Any) -> None:
        file.write(b"half a figure")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", half)
    before = sorted(tmp_path.iterdir())
    assert run("show", model, data, "-o", tmp_path / "orbit.png") == 1
    assert sorted(tmp_path.iterdir()) == before


# -- the real thing ------------------------------------------------------------------------------------------------


def bars(folder: Path) -> Path:
    """Sixty 8 × 8 images of horizontal and vertical bars, with noise."""
    rng = np.random.default_rng(1)
    images, words = rng.integers(0, 60, (60, 8, 8), np.uint8), np.array(["flat", "upright"] * 30)
    for image, word, place in zip(images, words, rng.integers(1, 7, 60), strict=True):
        image[(place, slice(1, 7)) if word == "flat" else (slice(1, 7), place)] += 190
    np.savez(folder / "bars.npz", images=images, labels=words)
    return folder / "bars.npz"


def orbitgp_command(*arguments: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "orbitgp", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_from_images_to_predictions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fit, info, predict, show and compare on real models, in this process; the last as a command."""
    data, model = bars(tmp_path), tmp_path / "bars.model"
    small = ["--steps", 30, "--inducing", 12]
    assert run("fit", data, "-o", model, "--orbit", "translation", *small) == 0
    assert "60 images of 2 classes, orbit translation, evidence at least" in capsys.readouterr().out
    assert isinstance(orbitgp.load(model), orbitgp.InvariantClassifier)
    assert run("info", model, "--json") == 0
    assert json.loads(capsys.readouterr().out) == orbitgp.load(model).describe()
    assert run("predict", model, data, "-o", tmp_path / "out.csv") == 0
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert np.mean([row["label"] == word for row, word in zip(rows, ["flat", "upright"] * 30, strict=True)]) > 0.7
    for row in rows:
        shares = {name: float(row[f"p({name})"]) for name in ("flat", "upright")}
        assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
        assert row["label"] == max(shares, key=lambda name: shares[name])
    assert run("show", model, data, "-o", tmp_path / "orbit.png", "--count", 2, "--draws", 2) == 0
    figure = tmp_path / "comparison.svg"
    assert run("compare", data, "-o", figure, "--orbits", "none", "rotation", *small) == 0
    assert "rotation" in capsys.readouterr().out
    assert figure.stat().st_size > 0
    done = orbitgp_command("info", model)
    assert (done.returncode, done.stderr) == (0, "")
    assert "orbit: translation" in done.stdout


def test_regressors_and_orbits_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model, small = bars(tmp_path), tmp_path / "bars.model", {"inducing": 6, "steps": 3, "verbose": False}
    (tmp_path / "orbit_of_mine.py").write_text(
        "from orbitgp.orbits import Rotation\n\ndef little(shape):\n    return Rotation(shape, alpha=5.0)\n"
    )
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.chdir(tmp_path)
    own = ["--orbit", "orbit_of_mine:little"]
    assert run("fit", data, "-o", model, *own, "--steps", 3, "--inducing", 6) == 0
    assert run("predict", model, data) == 1
    assert "an orbit of the user's own: pass it again, as orbit= or --orbit" in capsys.readouterr().err
    assert run("predict", model, data, *own) == 0
    capsys.readouterr()
    with np.load(data) as arrays:
        images = arrays["images"]
    regressor = orbitgp.InvariantRegressor("none", **small).fit(images, images.mean((1, 2)))
    regressor.save(model)
    assert run("predict", model, data) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    mean, std = regressor.predict(images, return_std=True)
    np.testing.assert_allclose(
        [[float(row["mean"]), float(row["std"])] for row in rows], np.stack([mean, std], 1), 1e-5
    )
    assert run("info", model) == 0 and "estimator: InvariantRegressor" in capsys.readouterr().out
    assert run("show", model, data, "-o", tmp_path / "orbit.png") == 0


def test_a_file_that_is_no_model_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.model").write_text("not a model")
    done = orbitgp_command("info", tmp_path / "a.model")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("orbitgp: error: ")
    assert done.stderr.count("\n") == 1
    assert "a.model" in done.stderr


def test_ctrl_c(tmp_path: Path) -> None:
    """While TensorFlow loads or images are read, before there is anything to keep."""
    data = bars(tmp_path)
    code = f"""
import signal, sys, time
from orbitgp import cli

signal.signal(signal.SIGINT, signal.default_int_handler)  # which Python leaves out where a background job ignores it

def slow():
    print("loading", flush=True)
    time.sleep(60)

cli.load_tensorflow = slow
sys.exit(cli.main(["fit", {str(data)!r}, "-o", {str(tmp_path / "a.model")!r}]))
"""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == b"loading\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"orbitgp: stopped\n"
    assert process.returncode == 130
    assert sorted(tmp_path.iterdir()) == [data]


def test_likelihoods_of_the_command_are_those_of_the_classifier() -> None:
    from orbitgp.estimators import classifier

    assert cli.LIKELIHOODS == classifier.LIKELIHOODS
