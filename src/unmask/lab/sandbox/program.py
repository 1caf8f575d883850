"""Programs to judge, their limits, and verdicts."""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields
from typing import Literal

from unmask.errors import UnmaskError

Reason = Literal[
    "passed",
    "wrong",  # an assertion of the tests failed
    "error",  # the code does not load, or a call or a test raised
    "no such function",
    "timeout",  # of the wall clock or of CPU time
    "memory",
    "crashed",  # the candidate's process ended
    "bad reply",  # an answer that is too large or breaks the protocol
]
MB = 1 << 20


class SandboxError(UnmaskError):
    """Raised if a program cannot be judged for a reason outside of it."""


class UnsandboxedWarning(UserWarning):
    """Warns that model-written code runs under limits alone, without namespaces."""


@dataclass(frozen=True)
class ProgramLimits:
    """Limits of one judgement: seconds, bytes and counts."""

    wall: float = 10.0  # seconds from when the candidate gets its code
    cpu: int = 3  # seconds of CPU time, of each process
    memory: int = 512 * MB  # of each process, and of all the candidate's processes together
    processes: int = 16  # and threads
    file: int = 16 * MB  # of each file; with bwrap, of all files together
    output: int = 64 << 10  # printed bytes that are kept
    reply: int = 8 * MB  # bytes of one answer

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) <= 0:
                number = getattr(self, field.name)
                raise SandboxError(f"limit {field.name} must be > 0, got {number}")


@dataclass(frozen=True)
class Program:
    """The model's code and its tests, which the code cannot see."""

    code: str  # the whole source; the candidate's process gets nothing else
    tests: str  # source that the judge runs; raises when the candidate is wrong
    names: tuple[str, ...]  # functions and classes of the code that the tests use

    def __post_init__(self) -> None:
        if isinstance(self.names, str) or not all(map(str.isidentifier, self.names)):
            raise SandboxError(f"names must be a tuple of identifiers, got {self.names!r}")


@dataclass(frozen=True)
class Verdict:
    """The outcome of the tests."""

    passed: bool
    reason: Reason
    detail: str  # one line for a human
    seconds: float  # wall clock, with the start of the processes
    backend: str  # "bwrap" or "rlimit"
    log: str  # what the candidate printed, capped; never part of the verdict
    # the tests met objects of the candidate's own classes, which equal nothing
    flagged: bool = False


def used_names(tests: str, reference: str) -> tuple[str, ...]:
    """What `reference` defines at its top level and `tests` mention, in the tests' order.

    Take a benchmark's own solution as the reference, never a model's: it may call its function
    `sum`, and only then do the tests mean that one.
    """
    defined = set[str]()
    for statement in ast.parse(reference).body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(statement.name)
    mentioned = (node.id for node in ast.walk(ast.parse(tests)) if isinstance(node, ast.Name))
    return tuple(dict.fromkeys(name for name in mentioned if name in defined))
