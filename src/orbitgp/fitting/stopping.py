"""Handling of SIGTERM and SIGINT: a training saves what it has and ends, in time even if a step takes long."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

GRACE = 15.0  # seconds from the signal to the end of the process; Slurm's default is 30
AGAIN = 0.05  # seconds until a signal is sent again whose exception was dropped
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interrupted(SystemExit):
    """The process was asked to stop."""


class Stop:
    """Whether the process was asked to stop, and what it does then."""

    def __init__(self) -> None:
        self.asked: str | None = None  #: the signal that asked to stop, in words; None without one
        #: called before the process is ended in the middle of a step
        self.last_words: Callable[[], object] = lambda: None
        self._only_noted = False
        self._number = 0

    @contextmanager
    def only_noted(self) -> Iterator[None]:
        """Within it, signals do not interrupt: the code there checks ``asked`` now and then, or ends soon."""
        self._only_noted = True
        try:
            yield
        finally:
            self._only_noted = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._number = number
        first, self.asked = self.asked is None, f"asked to stop by {signal.Signals(number).name}"
        if first and not self._only_noted:  # once: a second signal must not disturb the way out
            raise Interrupted(self.asked)

    def _dropped(self, what: sys.UnraisableHookArgs) -> bool:
        """:return: whether the dropped exception was ours; if so, the signal is sent again a little later"""
        if not issubclass(what.exc_type, Interrupted):
            return False
        self.asked = None
        threading.Timer(AGAIN, os.kill, (os.getpid(), self._number)).start()
        return True


@contextmanager
def noticing_interrupts() -> Iterator[Stop]:
    """
    Within it, the first Ctrl-C is only noted, so that a training can end with what it has; Python handles a second one
    as usual. Outside the main thread, which alone receives signals, nothing changes.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        stop.asked = "asked to stop by Ctrl-C"
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def listen(log: Callable[[str], None]) -> Iterator[Stop]:
    """
    Within it, SIGTERM and SIGINT raise :class:`Interrupted`, or are only noted, see :meth:`Stop.only_noted`.

    Python runs its handlers between two operations of its own, and a single call into TensorFlow may take minutes. So
    a thread receives the signal at once. If the process still runs after ``GRACE`` seconds, the thread calls
    ``last_words`` and ends it.

    Python drops exceptions in destructors and in callbacks of weak references, which loading TensorFlow runs many of.
    If the handler's exception is dropped, the signal is sent again.

    :param log: called with a line when the thread ends the process.
    """
    stop, gone = Stop(), threading.Event()
    hear, tell = os.pipe()
    os.set_blocking(tell, False)
    watcher = threading.Thread(target=_watch, args=(hear, gone, stop, log), daemon=True)
    handlers = {number: signal.signal(number, stop._handle) for number in SIGNALS}
    before, hook = signal.set_wakeup_fd(tell, warn_on_full_buffer=False), sys.unraisablehook
    sys.unraisablehook = lambda what: None if stop._dropped(what) else hook(what)
    watcher.start()
    try:
        yield stop
    finally:
        gone.set()
        signal.set_wakeup_fd(before)
        sys.unraisablehook = hook
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(tell)  # the watcher reads its end
        watcher.join()
        os.close(hear)


def _watch(hear: int, gone: threading.Event, stop: Stop, log: Callable[[str], None]) -> None:
    """Ends the process if it was asked to stop and does not."""
    while number := os.read(hear, 1):
        if number[0] in SIGNALS and not gone.wait(GRACE):
            name = signal.Signals(number[0]).name
            log(f"asked to stop by {name}, and after {GRACE:.0f} s still busy: ended from outside")
            try:
                stop.last_words()
            finally:
                os._exit(1)
