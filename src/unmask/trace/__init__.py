"""Traces: every step of one run in a file, read back, replayed, told and drawn."""

from unmask.trace.recording.reading import Moment, Trace
from unmask.trace.recording.record import record
from unmask.trace.recording.tracer import Tracer

__all__ = ["Moment", "Trace", "Tracer", "record"]
