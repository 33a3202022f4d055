"""Whatever happens to a training, it ends with the bytes of one that was left alone, or says why it did not."""

import json
import os
import random
import re
import shutil
import signal
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from faults.conftest import STEPS
from faults.trainings import SAME, Training, mounted

from orbitgp import files
from orbitgp.fitting import stopping
from orbitgp_paper.analysis.tables import runs_table
from orbitgp_paper.runs.reading import read_runs

SLURM_KILLS_AFTER = 30.0  # seconds, unless a site says otherwise


def last_line(training: Training) -> str:
    return training.logged().splitlines()[-1]


# -- killed outright -----------------------------------------------------------------------------------------------

# a training that does not give this file its name until it is told to: however late its killer comes, it finds it no
# further than there
HELD = """
import os, time
replace = os.replace
def held(source, target):
    if str(target).endswith("{file}"):
        print("held", flush=True)
        while not os.path.exists("{until}"):
            time.sleep(0.01)
    replace(source, target)
os.replace = held
"""


class Moment(NamedTuple):
    """When a training is killed: so many seconds after something happened, at the latest when it writes a file."""

    name: str
    happened: Callable[[Training], Any]
    delay: float
    held_at: str


def kill_while_loading(training: Training, delay: float) -> None:
    """Before TensorFlow is there, which this process loads for itself."""
    process = training.start_anew()
    end = time.monotonic() + delay
    while time.monotonic() < end and "training on " not in training.logged():
        time.sleep(0.003)
    process.kill()
    assert process.wait() == -signal.SIGKILL, training.told()


def eight_moments(dice: random.Random) -> Iterator[Moment]:
    """From a seed: one in each part of the training, so that each attempt has a checkpoint to train on from."""

    def reaches(step: int) -> Callable[[Training], Any]:
        return lambda training: max(training.resumed_at(), *training.rows(), 0) >= step

    def writes_after(step: int) -> Callable[[Training], Any]:
        return lambda training: reaches(step)(training) and [*training.checkpoints.glob("*/.checkpoint-*.part")]

    yield Moment("building and tracing", reaches(0), dice.uniform(0.0, 3.0), "checkpoint-000000005.npz")
    for first in (10, 40):
        at = dice.randrange(first, first + 10)
        yield Moment(f"after step {at}", reaches(at), dice.uniform(0.0, 0.02), f"checkpoint-{first + 20:09d}.npz")
    for first in (70, 95):
        at = dice.randrange(first, first + 10)
        yield Moment(f"writing after step {at}", writes_after(at), 0.0, f"checkpoint-{first + 20:09d}.npz")
    for _ in range(2):
        yield Moment("in the last pass", reaches(STEPS), dice.uniform(0.0, 1.0), "seed3/metrics.csv")
    ended = "\nended: bound "
    yield Moment("writing results", lambda it: ended in it.attempt(), dice.uniform(0.0, 0.01), "seed3/final.json")


def test_ten_kills_lose_nothing(training: Training, undisturbed: Training) -> None:
    seed = random.SystemRandom().randrange(2**32)
    dice, story, began = random.Random(seed), [f"seed {seed}"], []
    for _ in range(2):
        story.append(f"loading TensorFlow, {(delay := dice.uniform(0.0, 5.0)):.3f} s")
        kill_while_loading(training, delay)
    for moment in eight_moments(dice):
        process = training.start(HELD.format(file=moment.held_at, until="never"))
        training.wait_for(process, lambda moment=moment: moment.happened(training))
        time.sleep(moment.delay)
        process.kill()
        assert training.end(process) == -signal.SIGKILL, (moment, training.told())
        began.append(training.resumed_at())
        story.append(f"{moment.name}, {moment.delay:.3f} s: from step {began[-1]} to {training.rows()[-1:]}")
    assert len(story) == 1 + 10
    # what was not saved, or not brought back, shows only in an attempt that goes on in the middle and trains further
    in_the_middle = began[2:6]
    assert in_the_middle == sorted(set(in_the_middle)) and in_the_middle[0] > 0 and in_the_middle[-1] < STEPS, story
    assert training.run() == 0, (story, training.told())
    assert training.results() == undisturbed.results(), story
    assert json.loads((training.folder / "provenance.json").read_text())["resumed"] >= len(in_the_middle), story
    assert not [*training.base.rglob(".*.part")], story
    assert training.logged().count("the attempt before has no last line: it was killed") >= 7, (story, training.told())


def test_a_kill_loses_nothing_of_a_step_that_xla_compiles(
    make_training: Callable[..., Training], tmp_path: Path
) -> None:
    """As the paper's size has it. What a kill leaves is what lies on the disk in that moment: it is copied."""
    whole, killed = (make_training(tmp_path / name, compile=True) for name in ("undisturbed", "killed"))
    at = 5 * random.SystemRandom().randrange(2, STEPS // 5)
    process = whole.start(HELD.format(file=f"checkpoint-{at:09d}.npz", until=tmp_path / "go"))
    whole.wait_for(process, lambda: "held" in whole.spoken())
    shutil.copytree(whole.checkpoints, killed.checkpoints)
    (tmp_path / "go").touch()
    assert whole.end(process) == 0, (at, whole.told())
    assert killed.run() == 0, (at, killed.told())
    assert killed.resumed_at() == at - 5, (at, killed.told())
    assert killed.results() == whole.results(), at


# -- asked to stop, or out of memory -------------------------------------------------------------------------------


def test_asked_to_stop_while_tensorflow_is_loaded(training: Training) -> None:
    process = training.start_anew()
    while "=== " not in training.logged():
        time.sleep(0.01)
    time.sleep(1.5)
    asked = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 1
    assert time.monotonic() - asked < SLURM_KILLS_AFTER
    assert last_line(training).startswith("=== stopped: asked to stop by SIGTERM;"), training.told()
    assert "Traceback" not in training.told()


@pytest.mark.parametrize("number", stopping.SIGNALS)
@pytest.mark.parametrize("depth", [1, 2])
def test_asked_to_stop_where_python_drops_exceptions(
    number: signal.Signals, depth: int, capsys: pytest.CaptureFixture[str]
) -> None:
    class Thing:
        pass

    with pytest.raises(stopping.Interrupted, match=f"asked to stop by {number.name}"), ExitStack() as listening:
        for _ in range(depth):  # as a training does within its attempt
            listening.enter_context(stopping.listen(print))
        thing = Thing()
        seen = weakref.ref(thing, lambda _: signal.raise_signal(number))  # as importlib's locks have one
        del thing
        time.sleep(10.0)
    assert seen() is None
    assert capsys.readouterr() == ("", "")  # no traceback of what was dropped


# rows come slowly enough that one who is to stop between them is not at the end before
SLOWLY = """
import time
from orbitgp.fitting import loop
class Slow(loop.Tester):
    count = 0
    def __call__(self):
        self.count = int(self.count) + 1
        if self.count == 4:
            print("now", flush=True)
        time.sleep(0.1)
        return super().__call__()
loop.Tester = Slow
"""
# the limit is the system's; what is asked for is more than it leaves
HUNGRY = """
import resource
import numpy, tensorflow
from orbitgp.fitting import loop
class Hungry(loop.Tester):
    count = 0
    def __call__(self):
        self.count = int(self.count) + 1
        if self.count == 3:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))
            {asks}
        return super().__call__()
loop.Tester = Hungry
"""
# a call into a library that does not come back for minutes, as a step of a large model may not
LONG_STEP = """
import hashlib, itertools
from orbitgp.fitting import loop, stopping
stopping.GRACE = 1.0
class Long(loop.Optimizer):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        advance, calls = self.advance, itertools.count()
        self.advance = lambda steps: (
            print("now", flush=True) or hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)
            if next(calls) == 2 else advance(steps)
        )
loop.Optimizer = Long
"""
LONG_PASS = """
import time
from orbitgp.fitting import loop
loop.best_posterior = lambda quadratic: print("now", flush=True) or time.sleep(600)
"""


class Hit(NamedTuple):
    """What a training is hit by, the signal that it is then sent, if any, and its last word."""

    inject: str
    number: signal.Signals | None
    reason: str


HITS = [
    Hit(SLOWLY, signal.SIGTERM, "stopped: asked to stop by SIGTERM; saved at step "),
    Hit(SLOWLY, signal.SIGINT, "stopped: asked to stop by SIGINT; saved at step "),
    Hit(HUNGRY.format(asks="numpy.ones(2**29)"), None, "failed: out of memory: "),
    Hit(HUNGRY.format(asks="tensorflow.ones([2**29])"), None, "failed: out of memory: "),
    Hit(LONG_STEP, signal.SIGTERM, "asked to stop by SIGTERM, and after 1 s still busy: ended from outside"),
    Hit(LONG_PASS, signal.SIGTERM, f"stopped: asked to stop by SIGTERM; saved at step {STEPS};"),
]


def test_asked_to_stop_or_out_of_memory_it_loses_nothing(training: Training, undisturbed: Training) -> None:
    """Six times in a row, each further on."""
    saved, log = 0, ""
    for hit in HITS:
        # when it is asked to stop, there is no checkpoint but that which the signal calls for
        training.checkpoint_every = 1e9 if hit.number else 0.0
        training.said.unlink(missing_ok=True)
        process, asked = training.start(hit.inject), 0.0
        if hit.number:
            training.wait_for(process, lambda: "now" in training.spoken())
            asked = time.monotonic()
            os.kill(process.pid or 0, hit.number)
        assert training.end(process, SLURM_KILLS_AFTER if hit.number else 400.0) == 1, training.told()
        if hit.inject == LONG_STEP:
            assert 1.0 < time.monotonic() - asked < SLURM_KILLS_AFTER - stopping.GRACE
        assert hit.reason in last_line(training), training.told()
        assert ("Traceback" in training.told()[len(log) :]) == (not hit.number), training.told()
        assert training.resumed_at() == saved and saved < (saved := training.rows()[-1]), training.told()
        assert training.logged().startswith(log)  # the reason is not wiped by the attempt that follows
        assert not training.folder.exists()
        log = training.logged()
    assert training.run() == 0, training.told()
    assert training.resumed_at() == saved == STEPS and last_line(training) == "=== ended"
    assert training.results() == undisturbed.results()


# -- on a disk that is full ----------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of memory, of two megabytes."""
    with mounted(tmp_path / "disk", "size=2m") as place:
        yield place


def fill(disk: Path) -> Path:
    """Leaves not a byte."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                pass
    assert os.statvfs(disk).f_bavail == 0
    return filler


# waits before it writes its results
AT_THE_END = """
import os, time
from orbitgp_paper.runs import train as run
write = run._write
def late(*arguments):
    print("now", flush=True)
    while not os.path.exists("{disk}/filler"):
        time.sleep(0.01)
    write(*arguments)
run._write = late
"""


def test_a_full_disk_while_it_trains_and_when_it_writes_its_results(
    make_training: Callable[..., Training], undisturbed: Training, small_disk: Path
) -> None:
    training = make_training(small_disk)
    training.folder.mkdir(parents=True)
    earlier = {name: b"of other settings" for name in (*SAME, "timing.csv", "provenance.json")}
    for name, content in earlier.items():
        (training.folder / name).write_bytes(content)
    for inject in (SLOWLY, AT_THE_END.format(disk=small_disk)):
        training.said.unlink(missing_ok=True)
        process = training.start(inject)
        training.wait_for(process, lambda: "now" in training.spoken())
        filler = fill(small_disk)
        assert training.end(process) == 1, training.told()
        assert "No space left on device" in training.told()  # on the full disk too, and as whole as it could be
        assert {path.name: path.read_bytes() for path in training.folder.iterdir()} == earlier
        kept = sorted(training.checkpoints.glob("*/checkpoint-*.npz"))
        assert len(kept) == 2
        for path in kept:
            files.read_npz(path)
        rows = (kept[0].parent / "metrics.csv").read_bytes()
        assert rows.endswith(b"\n") and undisturbed.results()["metrics.csv"].startswith(rows)
        filler.unlink()
    assert training.run() == 0, training.told()
    assert training.resumed_at() == STEPS
    assert training.results() == undisturbed.results()


# -- odd surroundings ----------------------------------------------------------------------------------------------

ODD = """
import itertools, os, time
real, jumps = time.time, itertools.cycle([0, 86400, -365 * 86400])
time.time = lambda: real() + next(jumps)
for name in ("replace", "fsync"):
    def slow(*arguments, call=getattr(os, name)):
        time.sleep(0.01)
        call(*arguments)
        time.sleep(0.01)
    setattr(os, name, slow)
"""


def test_a_clock_that_jumps_a_slow_disk_and_a_gpu_that_is_not_there(training: Training, undisturbed: Training) -> None:
    training.gpus = 1
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"}  # those that there may be
    process = training.start(SLOWLY + ODD, **hidden)
    training.wait_for(process, lambda: len(training.rows()) > 4)
    process.kill()
    process.join()
    kept = sorted(training.checkpoints.glob("*/checkpoint-*.npz"))
    for path, date in zip(kept, (4e9, 3.9e9), strict=True):  # in the years 2096 and 2093, the newer one first
        os.utime(path, (date, date))
    assert training.run(ODD, **hidden) == 0, training.told()
    assert training.resumed_at() == int(kept[-1].stem[-9:])
    assert training.results() == undisturbed.results()
    timing = (training.folder / "timing.csv").read_text().split()[1:]
    seconds = [float(line.split(",")[1]) for line in timing]
    assert seconds == sorted(seconds) and seconds[0] >= 0 and seconds[-1] < 600
    assert json.loads((training.folder / "provenance.json").read_text())["device"] == "CPU"
    line = "1 GPU was asked for, but TensorFlow sees none (CUDA_VISIBLE_DEVICES is '-1'): training on the CPU, 1 thread"
    assert line in training.attempt()
    assert f"small/rotation/seed3: {line}" in training.spoken()


# -- a factorisation that fails ------------------------------------------------------------------------------------

# to a kernel this wide all images are one, and its matrix has no Cholesky factor without jitter
WIDE = """
from orbitgp_paper.runs import train as run
build = run.build_model
def wide(*arguments):
    model = build(*arguments)
    model.kernel.base.lengthscales.assign(1e9)
    return model
run.build_model = wide
"""
NO_DRAWS: dict[str, Any] = {"orbit": {"kind": "identity"}, "scheme": {"kind": "full"}, "precision": "float64"}


@pytest.mark.parametrize(
    ("jitter", "kinds"), [(1e-17, "not finite"), (1e-30, "given up, not finite ×5")], ids=["mended", "given up"]
)
def test_a_matrix_without_a_factor_is_recorded_and_reported(
    make_training: Callable[..., Training], tmp_path: Path, jitter: float, kinds: str
) -> None:
    """In the compiled step: more jitter helps, or it is given up after five returns."""
    few = {"optimiser": {"steps": 8}, "evaluation": {"count": 1}}
    training = make_training(tmp_path, **NO_DRAWS, **few, jitter=jitter)
    assert training.run(WIDE) == 0, training.told()
    events = json.loads((training.folder / "final.json").read_text())["events"]
    assert 1 <= len(events) <= 6
    for event in events:
        assert f"step {event['step']}: {event['kind']}: {event['detail']}" in training.logged()
    (row,) = runs_table(read_runs([training.folder]).finals).itertuples()
    assert re.fullmatch(rf"{kinds}( ×\d)?", row.event_kinds)
    assert row.diverged == ("given up" in kinds)
