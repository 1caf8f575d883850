"""Ctrl-C where a library may lose it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Whether there was one: an interrupt that comes while foreign code cleans up is swallowed."""

    def __init__(self) -> None:
        self.seen = False

    def check(self) -> None:
        """Raise what may have been lost; to be called now and then."""
        if self.seen:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        raise KeyboardInterrupt


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Until the end of the block Ctrl-C is remembered too, if this is the main thread."""
    interrupts = Interrupts()
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupts._note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
