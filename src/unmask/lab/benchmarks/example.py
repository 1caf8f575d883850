"""One problem of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Slots = Mapping[str, str]


@dataclass(frozen=True)
class Example:
    """A problem as its file has it, the pieces that prompts are made of, and its reference."""

    id: int | str
    index: int  # its place in the benchmark
    slots: Slots  # what `{{name}}` stands for in a preset
    reference: str
    fields: Mapping[str, Any] = field(default_factory=dict)  # the raw record
    group: str = ""  # the task within a benchmark of several
    shots: tuple[Slots, ...] = ()  # solved problems that may go before it
