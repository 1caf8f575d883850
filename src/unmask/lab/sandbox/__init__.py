"""Judging model-written code: it runs in a sandbox, its tests run elsewhere."""

from unmask.lab.sandbox.names import used_names
from unmask.lab.sandbox.program import (
    Limits,
    Program,
    Reason,
    SandboxError,
    UnsandboxedWarning,
    Verdict,
)
from unmask.lab.sandbox.sandbox import Sandbox

__all__ = [
    "Limits",
    "Program",
    "Reason",
    "Sandbox",
    "SandboxError",
    "UnsandboxedWarning",
    "Verdict",
    "used_names",
]
