"""Notices Ctrl-C even if a library swallows the exception."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Remembers an interrupt: foreign code may swallow the exception while it cleans up."""

    def __init__(self) -> None:
        self.seen = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if there was an interrupt; call it regularly."""
        if self.seen:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        raise KeyboardInterrupt


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Remember Ctrl-C until the end of the block, if this is the main thread."""
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
