"""Python in a process of its own, forked from one that has imported torch and unmask already.

A new interpreter needs seconds of processor time to import them, a fork needs none. The parent of
the forks is a process without threads, started when the first fork is asked for.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from tests.paths import ROOT

TOP = 1 << 20  # bytes of a message: the arguments and the environment


class Fork:
    """`python ARGUMENTS` with pipes, used like a `subprocess.Popen` in text mode."""

    def __init__(
        self, *arguments: object, cwd: Path | None = None, env: Mapping[str, str] = os.environ
    ) -> None:
        status, theirs = socket.socketpair()
        pipes = [os.pipe() for _ in range(2)]
        message = [[str(each) for each in arguments], str(cwd or Path.cwd()), dict(env)]
        ends = [theirs.fileno(), *(end for _, end in pipes)]
        socket.send_fds(_server(), [json.dumps(message).encode()], ends)
        theirs.close()
        for _, end in pipes:
            os.close(end)
        self.stdout, self.stderr = (os.fdopen(end) for end, _ in pipes)
        self._status = status.makefile("r")
        self._socket = status
        self.pid = int(self._status.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code; negative for a signal."""
        if (code := self._ended(timeout)) is None:
            raise subprocess.TimeoutExpired("a fork", timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """All that it prints, until it ends."""
        with ThreadPoolExecutor(2) as pool:
            out, err = (pool.submit(_rest, each) for each in (self.stdout, self.stderr))
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        return out.result(), err.result()

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._socket], [], [], timeout)[0]:
            self.returncode = int(self._status.readline())
            self._status.close()
            self._socket.close()
        return self.returncode


def run(*arguments: object, timeout: float = 240, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` to its end, as `subprocess.run` does with its output captured."""
    process = Fork(*arguments, **more)
    out, err = process.communicate(timeout)
    assert process.returncode is not None
    return subprocess.CompletedProcess(list(arguments), process.returncode, out, err)


def _rest(stream: TextIO) -> str:
    if stream.closed:
        return ""
    with stream:
        return stream.read()


@cache
def _server() -> socket.socket:
    """A connection to the parent of the forks; it ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        start_new_session=True,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait(10)

    atexit.register(end)
    return ours


def serve(connection: socket.socket) -> None:
    """Fork for every message, until the other end is closed."""
    import unmask.cli
    import unmask.cli.run
    import unmask.lab.sweep.run
    import unmask.server.run
    import unmask.text.session  # noqa: F401

    while True:
        data, ends, _, _ = socket.recv_fds(connection, TOP, 3)
        if not data:
            return
        if not os.fork():  # its parent need not wait for it: `_watch` forks again
            connection.close()
            os._exit(_watch(json.loads(data), ends))
        for end in ends:
            os.close(end)
        while _reaped():
            pass


def _reaped() -> bool:
    try:
        return bool(os.waitpid(-1, os.WNOHANG)[0])
    except ChildProcessError:
        return False


def _watch(message: list[Any], ends: Sequence[int]) -> int:
    """Fork the process, tell its number, and its exit code when it has ended."""
    status, *outputs = ends
    child = os.fork()
    if not child:
        os.close(status)
        _become(outputs, *message)
    for end in outputs:
        os.close(end)
    os.write(status, f"{child}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(status, f"{code}\n".encode())
    return 0


def _become(
    outputs: Sequence[int], arguments: list[str], cwd: str, environment: dict[str, str]
) -> None:
    """Be the process that was asked for; never returns."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell ignores it
    for number, end in enumerate(outputs, 1):
        os.dup2(end, number)
        os.close(end)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", 1)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[:0] = ["", *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    code = 1
    try:
        code = _executed(arguments)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:  # as an interpreter ends: threads are waited for, then what is registered runs
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _executed(arguments: list[str]) -> int:
    """Run `-m MODULE ...` or `-c PROGRAM`; returns the exit code."""
    kind, what, *rest = arguments
    sys.argv = [what if kind == "-m" else "-c", *rest]
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as stopped:
        if isinstance(stopped.code, str):
            sys.stderr.write(f"{stopped.code}\n")
            return 1
        return int(stopped.code or 0)
    return 0


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
