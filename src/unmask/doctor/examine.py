"""All examinations in order."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.doctor.finding import Finding
from unmask.doctor.kernels import kernels_on
from unmask.doctor.machine import machine
from unmask.doctor.model import examined
from unmask.models.memory import free_memory
from unmask.text.session import Session


def examine(session: Session) -> Iterator[Finding]:
    """Examine the machine, and the session's model on it; each finding as soon as it is there."""
    yield from machine(session.device)
    yield from kernels_on(session.device)
    yield from examined(session, free_memory(session.device))
