"""Trace files of many requests: one file for each, written while they are decoded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from unmask.decoding.results import Result, Step
from unmask.errors import RequestError
from unmask.trace.recording.tracer import Tracer

Begin = Callable[[int, BinaryIO], Tracer]  # makes the tracer of request `key` for a stream


def writable(path: Path, option: str = "--trace") -> BinaryIO:
    """Open a new trace file. An existing file is replaced only if it is a trace."""
    try:
        if path.is_file() and path.stat().st_size:
            with path.open("rb") as old:
                if old.read(2) != b"\x1f\x8b":
                    raise RequestError(f"{path} exists and is not a trace; give another {option}")
        return path.open("wb")
    except OSError as error:
        raise RequestError(f"the trace {path} cannot be written: {error.strerror}") from None


def made_folder(path: Path) -> None:
    """Make a folder for traces."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"the trace folder {path} cannot be made: {error.strerror}") from None


def together(*listeners: Callable[[Step], None] | None) -> Callable[[Step], None] | None:
    """One listener that calls all given listeners; None if there are none."""
    present = [listener for listener in listeners if listener is not None]

    def see(step: Step) -> None:
        for listener in present:
            listener(step)

    return see if present else None


class TraceFiles:
    """Writes the steps of many requests, each request to its own file."""

    def __init__(
        self, path_of: Callable[[int], Path], begin: Begin, text_of: Callable[[Result], str]
    ) -> None:
        self.path_of = path_of
        self.begin = begin
        self.text_of = text_of
        self._open: dict[int, tuple[Tracer, BinaryIO]] = {}

    def __enter__(self) -> TraceFiles:
        return self

    def __call__(self, step: Step) -> None:
        """Pass a step to the tracers of its rows."""
        for row, key in enumerate(step.keys):
            if key not in self._open:
                stream = writable(self.path_of(key))
                self._open[key] = self.begin(key, stream), stream
            self._open[key][0].see(step, row)
        for result in step.finished:
            tracer, stream = self._open.pop(result.key)
            with stream:
                tracer.close(result, self.text_of(result))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Write the remaining steps of unfinished requests and close their files."""
        with ExitStack() as streams:
            for tracer, stream in self._open.values():
                streams.enter_context(stream)
                tracer.close()
            self._open.clear()
