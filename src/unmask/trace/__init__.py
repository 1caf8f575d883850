"""Traces: files with every step of one run, to read, replay, explain and draw."""

from unmask.trace.recording.reading import Moment, Trace
from unmask.trace.recording.tracer import Tracer, record

__all__ = ["Moment", "Trace", "Tracer", "record"]
