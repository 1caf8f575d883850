"""Traces: files with every step of one run, to read, replay, explain and draw.

The names are imported when they are used, since `unmask page` reads traces without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmask.trace.recording.reading import Moment, Trace
    from unmask.trace.recording.tracer import Tracer, record

__all__ = ["Moment", "Trace", "Tracer", "record"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'unmask.trace' has no attribute {name!r}")
    home = "reading" if name in ("Moment", "Trace") else "tracer"
    return getattr(import_module(f"unmask.trace.recording.{home}"), name)
