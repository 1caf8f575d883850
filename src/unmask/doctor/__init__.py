"""Examines a machine before a long run: what works, what is slow, what is broken."""

from unmask.doctor.examine import examine
from unmask.doctor.finding import Finding

__all__ = ["Finding", "examine"]
