"""Asked to stop, or out of memory: in time, with a reason in the log, and nothing is lost."""

import re
import signal
import time
import weakref
from contextlib import ExitStack

import pytest
from faults.trainings import Training

from orbitgp.fitting import stopping

SLURM_KILLS_AFTER = 30.0  # seconds, unless a site says otherwise
NEVER = 1e9  # seconds between two checkpoints: there is none but that which a signal calls for


def last_line(training: Training) -> str:
    return training.logged().splitlines()[-1]


def test_while_tensorflow_is_loaded(training: Training) -> None:
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("depth", [1, 2])
def test_where_python_drops_exceptions(number: signal.Signals, depth: int, capsys: pytest.CaptureFixture[str]) -> None:
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_between_steps(training: Training, undisturbed: Training, number: signal.Signals) -> None:
    training.checkpoint_every = NEVER
    child = training.start()
    assert training.wait_for(child, lambda: "step 100 of 400" in training.logged()), training.told()
    child.kill(number)
    assert child.wait(SLURM_KILLS_AFTER) == 1
    first = training.logged()
    stopped = re.match(rf"=== stopped: asked to stop by {number.name}; saved at step (\d+);", last_line(training))
    assert stopped and 100 <= int(stopped[1]) < 400, training.told()
    assert "Traceback" not in training.told()
    assert training.run() == 0, training.told()
    assert training.results() == undisturbed.results()
    assert training.logged().startswith(first)  # the reason is not wiped by the attempt that follows
    assert f"resumed at step {stopped[1]} of 400" in training.logged() and last_line(training) == "=== ended"


# a call into a library that does not come back for minutes, as a step of a large model may not
BUSY = "hashlib.pbkdf2_hmac('sha256', b'', b'', 2_000_000_000)"
LONG_STEP = f"""
import hashlib
from orbitgp.optimizers import steps as optimiser
from orbitgp_paper.runs import train as run
from orbitgp.fitting import stopping
stopping.GRACE = 2.0
class Long(optimiser.Optimiser):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        advance = self.advance
        self.advance = lambda steps: {BUSY} if int(self.step) == 200 else advance(steps)
run.Optimiser = Long
"""
LONG_PASS = """
import time
from orbitgp_paper.runs import train as run
run.best_posterior = lambda quadratic: time.sleep(600)
"""


def test_in_the_middle_of_a_step_that_takes_minutes(training: Training, undisturbed: Training) -> None:
    training.checkpoint_every = NEVER
    child = training.start(LONG_STEP)
    assert training.wait_for(child, lambda: "step 200 of 400" in training.logged()), training.told()
    time.sleep(1.0)
    asked = time.monotonic()
    child.kill(signal.SIGTERM)
    assert child.wait(SLURM_KILLS_AFTER) == 1
    assert 2.0 < time.monotonic() - asked < 2.0 + SLURM_KILLS_AFTER - stopping.GRACE
    assert "asked to stop by SIGTERM, and after 2 s still busy: ended from outside" in last_line(training)
    assert training.run() == 0, training.told()
    assert "resumed at step 200 of 400" in training.logged()
    assert training.results() == undisturbed.results()


def test_in_the_last_pass(training: Training, undisturbed: Training) -> None:
    training.checkpoint_every = NEVER
    child = training.start(LONG_PASS)
    assert training.wait_for(child, lambda: "step 400 of 400" in training.logged()), training.told()
    time.sleep(3.0)
    asked = time.monotonic()
    child.kill(signal.SIGTERM)
    assert child.wait(SLURM_KILLS_AFTER) == 1
    assert time.monotonic() - asked < SLURM_KILLS_AFTER
    assert "asked to stop by SIGTERM; saved at step 400" in last_line(training)
    assert not training.folder.exists()
    assert training.run() == 0, training.told()
    assert "resumed at step 400 of 400" in training.logged()
    assert training.results() == undisturbed.results()


# the limit is the system's; what is asked for is more than it leaves
HUNGRY = """
import resource
import numpy, tensorflow
from orbitgp_paper.runs import train as run
class Hungry(run.Tester):
    def __call__(self):
        if int(self.count) == 20:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))
            {asks}
        self.count += 1
        return super().__call__()
    count = 0
run.Tester = Hungry
"""


@pytest.mark.parametrize("asks", ["numpy.ones(2**29)", "tensorflow.ones([2**29])"], ids=["numpy", "tensorflow"])
def test_out_of_memory(training: Training, undisturbed: Training, asks: str) -> None:
    assert training.run(HUNGRY.format(asks=asks)) == 1, training.told()
    assert last_line(training).startswith("=== failed: out of memory: "), training.told()
    assert "Traceback" in training.logged()
    assert training.run() == 0, training.told()
    assert "resumed at step 190 of 400" in training.logged()
    assert training.results() == undisturbed.results()
