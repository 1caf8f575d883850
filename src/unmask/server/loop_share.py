"""Leaves the interpreter to the engine while rows decode."""

from __future__ import annotations

import asyncio
import time

from unmask.server.engine import Engine

SHARE = 1 / 3  # of the time, for the event loop's thread while rows decode
EVERY = 0.01  # seconds between two looks
LONGEST = 0.05  # seconds of one pause


class LoopShare:
    """Pauses the event loop's thread when it takes more than its share of the time.

    Python runs one thread at a time, and torch lets another one run at each operation. Without
    this, clients that send cheap requests as fast as they can, even without a key, keep the event
    loop busy and the engine waiting.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.paused = 0.0  # seconds of all pauses
        self._look()

    def start(self) -> None:
        """Look at the running event loop from now on."""
        self._look()
        asyncio.get_running_loop().call_later(EVERY, self._tick)

    def _look(self) -> None:
        self._now, self._used = time.monotonic(), time.thread_time()

    def _tick(self) -> None:
        used, passed = time.thread_time() - self._used, time.monotonic() - self._now
        pause = min(used / SHARE - passed, LONGEST)
        if pause > 0 and self.engine.rows:
            time.sleep(pause)
            self.paused += pause
        self.start()
