"""Ends a process whose interpreter stands still."""

from __future__ import annotations

import faulthandler
import os
import sys

LONGEST = 1e6  # seconds; faulthandler takes no infinite time


class Alarm:
    """Ends the process with 1 if it is not wound again within `seconds`; None: never.

    A part that loops in C, as a regular expression can, holds Python's interpreter. No thread runs
    then, so nobody answers requests, `/health` or signals. The alarm needs no interpreter. It
    prints where each thread stands.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = None if seconds is None else min(seconds, LONGEST)
        self._file = 2 if sys.stderr is not None else os.open(os.devnull, os.O_WRONLY)

    def wind(self) -> None:
        """Start the time again."""
        if self.seconds is not None:
            faulthandler.dump_traceback_later(self.seconds, exit=True, file=self._file)

    def stop(self) -> None:
        """Do not ring until it is wound again."""
        if self.seconds is not None:
            faulthandler.cancel_dump_traceback_later()
