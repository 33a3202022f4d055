"""What becomes of SIGTERM and SIGINT: a training saves what it has and ends, in time even if a step takes long."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

GRACE = 15.0  # seconds from being asked to being gone; Slurm by itself kills after 30
AGAIN = 0.05  # seconds until a signal is sent again whose exception was dropped
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interrupted(SystemExit):
    """The process was asked to stop."""


class Stop:
    """Whether the process was asked to stop, and what it does then."""

    def __init__(self) -> None:
        self.asked: str | None = None  #: in words, by which signal
        #: what is done before the process is ended in the middle of a step
        self.last_words: Callable[[], object] = lambda: None
        self._only_noted = False
        self._number = 0

    @contextmanager
    def only_noted(self) -> Iterator[None]:
        """Within it nothing is interrupted: whoever is in it looks at ``asked`` now and then, or ends soon."""
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
        """:return: whether it was ours; then the signal comes again, when Python is out of where it drops exceptions"""
        if not issubclass(what.exc_type, Interrupted):
            return False
        self.asked = None
        threading.Timer(AGAIN, os.kill, (os.getpid(), self._number)).start()
        return True


@contextmanager
def noticing_interrupts() -> Iterator[Stop]:
    """
    Within it, the first Ctrl-C is only noted, for a training to end with what it has; a second one is Python's again.
    Elsewhere than in the main thread, which alone hears of signals, nothing changes.
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
    Within it, SIGTERM and SIGINT raise :class:`Interrupted`, or are only noted where that was wished.

    Python runs its handlers between two operations of its own, and a single call into TensorFlow may take minutes. So
    a thread hears of the signal at once, and if the process is still there after ``GRACE`` seconds it does the last
    words and ends it.

    Python drops an exception within a destructor or a weak reference's callback, of which loading TensorFlow has many,
    and the handler's is one of them. So it hears of what was dropped, too.

    :param log: told when that happens.
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
