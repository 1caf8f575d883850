"""One problem of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Slots = Mapping[str, str]


@dataclass(frozen=True)
class Example:
    """A problem: the texts that prompts are made of, its reference and its raw record."""

    id: int | str
    index: int  # its place in the benchmark
    slots: Slots  # the texts that replace `{{name}}` in a preset
    reference: str
    fields: Mapping[str, Any] = field(default_factory=dict)  # the raw record
    group: str = ""  # the task within a benchmark of several
    shots: tuple[Slots, ...] = ()  # solved problems that a prompt may show before it
