"""Sandbox: chooses a back end, then judges programs one by one or in parallel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from unmask.lab.sandbox import backends, landlock, warden
from unmask.lab.sandbox.backends import Backend
from unmask.lab.sandbox.program import (
    Program,
    ProgramLimits,
    SandboxError,
    UnsandboxedWarning,
    Verdict,
)

BACKENDS = ("auto", "bwrap", "rlimit")
PATIENCE = warden.START + 30  # seconds beyond the wall limit, to start and to clean up
HOPELESS = 3  # programs without a verdict, after which no other is tried
USUAL = ProgramLimits()
TRIAL = Program("import math\ndef f():\n    return math.pi", "assert f() > 3", ("f",))


class Sandbox:
    """Runs model-written code in a confined process, and its tests in another process."""

    def __init__(
        self, backend: str = "auto", limits: ProgramLimits = USUAL, allow_unsandboxed: bool = False
    ) -> None:
        """Args:
        backend: "bwrap", "rlimit", or "auto": the first of them that works here.
        limits: for every program.
        allow_unsandboxed: as root, accept "rlimit".
        """
        if backend not in BACKENDS:
            raise SandboxError(f"unknown backend {backend!r}; known: {', '.join(BACKENDS)}")
        if sys.platform != "linux":
            raise SandboxError(f"the sandbox needs Linux, this is {sys.platform}")
        self.limits = limits
        trouble = "" if backend == "rlimit" else bwrap_trouble()
        if backend == "bwrap" and trouble:
            raise SandboxError(trouble)
        if backend == "rlimit" or trouble:
            self._backend = _fallback(trouble, allow_unsandboxed)
        else:
            self._backend = _bwrap(limits)

    @property
    def backend(self) -> str:
        """Which back end was chosen."""
        return self._backend.name

    def judge(self, program: Program) -> Verdict:
        """The verdict on one program; blocks, and may be called from many threads."""
        return _run(self._backend, self.limits, program)

    def judge_many(
        self, programs: Iterable[Program], workers: int | None = None
    ) -> Iterator[tuple[int, Verdict]]:
        """Verdicts on many programs as they finish, each with the number of its program.

        A program without a verdict does not stop the others: the error comes at the end, or as soon
        as `HOPELESS` programs have none.
        """
        errors: list[SandboxError] = []
        workers = workers or len(os.sched_getaffinity(0))
        numbered = enumerate(programs)
        with ThreadPoolExecutor(workers) as pool:
            running: dict[Future[Verdict], int] = {}
            try:
                while True:
                    for number, program in islice(numbered, 2 * workers - len(running)):
                        running[pool.submit(self.judge, program)] = number
                    if len(errors) >= HOPELESS or (errors and not running):
                        raise errors[0]
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        number = running.pop(future)
                        try:
                            verdict = future.result()
                        except SandboxError as error:
                            errors.append(error)
                        else:
                            yield number, verdict
            finally:
                for future in running:
                    future.cancel()


@cache
def bwrap_trouble() -> str:
    """The reason why bubblewrap does not work here, empty if it works; tried once."""
    if not shutil.which("bwrap"):
        return "bubblewrap (bwrap) is not installed"
    try:
        verdict = _run(_bwrap(USUAL), USUAL, TRIAL)
    except SandboxError as error:
        return f"bubblewrap is installed but does not work here ({error})"
    return "" if verdict.passed else f"bubblewrap fails on a trial ({verdict.detail})"


def _bwrap(limits: ProgramLimits) -> Backend:
    executable = str(Path(shutil.which("bwrap") or "bwrap").absolute())
    return backends.bwrap(executable, _help_text(executable), limits)


@cache
def _help_text(executable: str) -> str:
    return subprocess.run([executable, "--help"], capture_output=True, text=True).stdout


def _fallback(trouble: str, allow_unsandboxed: bool) -> Backend:
    why = f"{trouble}: " if trouble else ""
    root = os.geteuid() == 0
    if root and not allow_unsandboxed:
        raise SandboxError(
            f"{why}as root, model-written code is not run with resource limits alone; install "
            "bubblewrap, use another user, or pass allow_unsandboxed=True (--allow-unsandboxed)"
        )
    if root:
        backends.check_readable_by_others(Path(os.__file__).resolve().parent)
    backend = backends.rlimit()
    open_to_it = [] if landlock.version() else ["every file that you can read or write"]
    open_to_it += [] if backend.filter else ["the network and your other processes"]
    reach = f", and reaches {' and '.join(open_to_it)}" if open_to_it else ""
    message = f"{why}model-written code runs without namespaces, under limits alone{reach}"
    warnings.warn(message, UnsandboxedWarning, stacklevel=3)
    return backend


def _run(backend: Backend, limits: ProgramLimits, program: Program) -> Verdict:
    """Start a warden for one program and read its verdict."""
    job = {
        "code": program.code,
        "tests": program.tests,
        "names": program.names,
        "limits": asdict(limits),
        "argv": backend.argv,
        "env": backends.environment(),
        "filter": backend.filter.hex(),
        "alone": backend.alone,
        "readable": backend.readable,
    }
    argv = backends.python_argv(backends.interpreter(), warden, backends.package())
    begin = time.perf_counter()
    outcome = _ask_warden(argv, job, limits)
    seconds = time.perf_counter() - begin
    reason, detail, log = outcome["reason"], outcome["detail"], outcome["log"]
    if reason in ("not started", "unsupported"):
        raise SandboxError(" ".join(f"{detail} {log[-300:]}".split()))
    passed = reason == "passed"
    return Verdict(passed, reason, detail, seconds, backend.name, log, outcome["flagged"])


def _ask_warden(
    argv: tuple[str, ...], job: dict[str, Any], limits: ProgramLimits
) -> dict[str, Any]:
    process = subprocess.Popen(
        argv,
        env=backends.environment(),
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with process:  # on an exception the pipes close, and the warden cleans up and ends
        try:
            text, errors = process.communicate(json.dumps(job).encode(), limits.wall + PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise SandboxError(f"no verdict after {limits.wall + PATIENCE} s") from None
    try:
        outcome: dict[str, Any] = json.loads(text)
    except ValueError:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise SandboxError(f"the warden failed: {''.join(last)}") from None
    return outcome
