"""Traces of many requests, one for each, written while the requests are decoded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from unmask.decoding.results import Step
from unmask.errors import RequestError
from unmask.models.untrusted import opened
from unmask.trace.recording.tracer import Tracer

Begin = Callable[[int, BinaryIO], Tracer]  # makes the tracer of request `key` for a stream


def hold(stream: BinaryIO, path: Path, option: str) -> None:
    """Take the only right to write a file, until the stream is closed; else raise RequestError.

    Systems without such locks (Windows) do not check.
    """
    try:
        import fcntl
    except ImportError:
        return
    if path.is_file():
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RequestError(
                f"another run is writing {path}; wait for it, or give another {option}"
            ) from None
        except OSError:  # a file system without locks
            return


def writable(path: Path, option: str = "--trace") -> BinaryIO:
    """Open a new trace file; an existing file is replaced only if it is a trace."""
    try:
        if path.is_file() and path.stat().st_size:
            with path.open("rb") as old:
                if old.read(2) != b"\x1f\x8b":
                    raise RequestError(f"{path} exists and is not a trace; give another {option}")
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = opened(path, "ab")  # not "wb": a file that another run writes stays as it is
        try:
            hold(stream, path, option)
            if path.is_file():
                stream.truncate(0)
        except BaseException:
            stream.close()
            raise
        return stream
    except OSError as error:
        raise RequestError(f"the trace {path} cannot be written: {error.strerror}") from None


def made_folder(path: Path) -> None:
    """Make a folder for traces."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"the trace folder {path} cannot be made: {error.strerror}") from None


def together(*listeners: Callable[[Step], None] | None) -> Callable[[Step], None] | None:
    """Calls every listener with a step; None if there is no listener."""
    present = [listener for listener in listeners if listener is not None]

    def see(step: Step) -> None:
        for listener in present:
            listener(step)

    return see if present else None


class KeptBytes(BytesIO):
    """A stream in memory whose bytes stay in `value` after it is closed."""

    value = b""

    def close(self) -> None:
        self.value = self.value or self.getvalue()
        super().close()


class Traces:
    """Sees the steps of many requests and writes the trace of each one to its own stream."""

    def __init__(self, open_stream: Callable[[int], BinaryIO], begin: Begin) -> None:
        self.open_stream = open_stream
        self.begin = begin
        self._open: dict[int, tuple[Tracer, BinaryIO]] = {}

    def __enter__(self) -> Traces:
        return self

    def __call__(self, step: Step) -> None:
        """Pass a step to the tracers of its rows."""
        for row, key in enumerate(step.keys):
            if key not in self._open:
                self._open[key] = self._begun(key)
            self._open[key][0].see(step, row)
        for result in step.finished:
            tracer, stream = self._open.pop(result.key)
            with stream:
                tracer.finish(result)

    def _begun(self, key: int) -> tuple[Tracer, BinaryIO]:
        stream = self.open_stream(key)
        try:
            return self.begin(key, stream), stream
        except BaseException:
            with suppress(OSError):  # the error that is raised says it already
                stream.close()
            raise

    def __exit__(self, *error: object) -> None:
        """Close the traces of unfinished requests; the steps so far are kept."""
        with ExitStack() as streams:
            for tracer, stream in self._open.values():
                streams.enter_context(stream)
                tracer.close()
            self._open.clear()
