"""Run math-verify in a separate process, with a time limit for every answer.

The limit is of processor time, so that verdicts do not depend on what else the machine does; where
the system cannot limit that, it is of the clock.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from unmask.errors import UnmaskError

LIMIT = 5.0  # seconds
_START = 120.0  # to import sympy on a busy machine
_SIGXCPU = getattr(signal, "SIGXCPU", 0)
_PATIENCE = 6 if _SIGXCPU else 1  # wall clock seconds per second of processor time
_WORKER = (sys.executable, "-m", "unmask.lab.grading.verify_worker")


@dataclass(frozen=True)
class Verified:
    """Whether an answer equals the gold answer, and the reason."""

    right: bool
    reason: str  # equal, different, unparsed, timeout or failed
    used: int | None = None  # which of the texts was parsed


class Verifier:
    """Compares formulas; an answer that takes too long is not verified.

    The process starts with the first question and ends with `close`, or with this process.
    """

    def __init__(self, limit: float = LIMIT, command: Sequence[str] = _WORKER) -> None:
        if limit <= 0:
            raise UnmaskError(f"the limit per answer must be > 0 seconds, got {limit}")
        self.limit = limit
        self.restarts = 0
        self._command = list(command)
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def equal(self, gold: str, *answers: str) -> Verified:
        """Compare gold with the first of the texts that math-verify can parse."""
        process = self._started()
        question = {"gold": gold, "answers": answers, "limit": self.limit}
        try:
            reply = self._ask(process, json.dumps(question))
        except TimeoutError:
            self._replace()
            return Verified(False, "timeout")
        except OSError:
            ended = process.wait()
            self._replace()
            return Verified(False, "timeout" if ended == -_SIGXCPU else "failed")
        if "error" in reply:
            return Verified(False, "failed")
        if reply["used"] is None:
            return Verified(False, "unparsed")
        right = bool(reply["right"])
        return Verified(right, "equal" if right else "different", reply["used"])

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        if self._reader is not None:
            self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process = None

    def _replace(self) -> None:
        self.close()
        self.restarts += 1

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None:
            return self._process
        require_math_verify()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._lines = queue.SimpleQueue()
        self._reader = threading.Thread(
            target=_read, args=(self._process, self._lines), daemon=True
        )
        self._reader.start()
        try:
            self._line(_START)
        except OSError:
            self.close()
            raise UnmaskError(
                f"math-verify does not start; see what {' '.join(self._command)} says"
            ) from None
        return self._process

    def _ask(self, process: subprocess.Popen[str], question: str) -> dict[str, Any]:
        assert process.stdin is not None
        process.stdin.write(question + "\n")
        process.stdin.flush()
        reply: dict[str, Any] = json.loads(self._line(self.limit * _PATIENCE))
        return reply

    def _line(self, limit: float) -> str:
        """The next line; TimeoutError if it is late, OSError if none will come."""
        try:
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            raise TimeoutError from None
        if line is None:
            raise BrokenPipeError
        return line


def require_math_verify() -> str:
    """The installed version, or one line that says what to install."""
    try:
        return version("math-verify")
    except PackageNotFoundError:
        raise UnmaskError(
            "comparing formulas needs math-verify; install unmask[lab] or math-verify"
        ) from None


def _read(process: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)
