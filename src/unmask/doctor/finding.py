"""One thing that was examined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "slow", "missing", "fault"]


@dataclass(frozen=True)
class Finding:
    """What was examined, its state, and what to do about it.

    slow: it works, but there is a faster way. missing: something optional is not installed.
    fault: results may be wrong, or a run will not work.
    """

    name: str
    status: Status
    says: str
    mend: str = ""
