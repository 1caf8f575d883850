"""Traces: every step of one run in a file, read back, replayed, told and drawn."""

from unmask.trace.reading import Moment, Trace
from unmask.trace.recording import record
from unmask.trace.tracer import Tracer

__all__ = ["Moment", "Trace", "Tracer", "record"]
