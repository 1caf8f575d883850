"""Judging model-written code: it runs in a sandbox, its tests run elsewhere."""

from unmask.lab.sandbox.program import (
    Program,
    ProgramLimits,
    Reason,
    SandboxError,
    UnsandboxedWarning,
    Verdict,
    used_names,
)
from unmask.lab.sandbox.sandbox import Sandbox

__all__ = [
    "Program", "ProgramLimits", "Reason", "Sandbox", "SandboxError", "UnsandboxedWarning",
    "Verdict", "used_names",
]  # fmt: skip
