"""What the tests of the sandbox share: a sandbox of each back end, or the reason there is none."""

from __future__ import annotations

import os
import warnings

import pytest

from unmask.lab.sandbox import (
    Program,
    ProgramLimits,
    Sandbox,
    SandboxError,
    UnsandboxedWarning,
    Verdict,
)

BACKENDS = ("bwrap", "rlimit")
QUICK = ProgramLimits(wall=20, cpu=1, memory=300 << 20)


def sandbox_or_skip(backend: str, limits: ProgramLimits = QUICK) -> Sandbox:
    """A sandbox of this back end; the test is skipped where it cannot be had."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsandboxedWarning)
            return Sandbox(backend, limits, allow_unsandboxed=True)
    except SandboxError as error:
        pytest.skip(str(error))


def judged(sandbox: Sandbox, code: str, tests: str, *names: str) -> Verdict:
    """The verdict on a program that is written in the test itself."""
    return sandbox.judge(Program(code, tests, names or ("solve",)))


def children() -> set[str]:
    """The pids of our children, among them what a subreaper has inherited."""
    pids: set[str] = set()
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208
        try:
            with open(f"/proc/self/task/{thread}/children") as file:  # noqa: PTH123
                pids |= set(file.read().split())
        except OSError:
            continue
    return pids
