"""The outcomes of a conformance run, and their report as text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Status = Literal["passed", "failed", "tie", "known difference", "not offered"]


@dataclass(frozen=True)
class Outcome:
    """The status of one case, and the reason if it did not pass."""

    case: str
    status: Status
    reason: str = ""

    @property
    def family(self) -> str:
        return self.case.split("/")[0]


@dataclass
class Report:
    """All outcomes of a run."""

    outcomes: list[Outcome] = field(default_factory=list)

    def add(self, case: str, status: Status, reason: str = "") -> None:
        self.outcomes.append(Outcome(case, status, reason))

    def check(
        self,
        case: str,
        differences: Iterator[str],
        tie: Callable[[], str] = lambda: "",
        unread: Sequence[str] = (),
    ) -> None:
        """Add a case that passes if there is no difference; `tie` may prove that it is a tie.

        `unread` are the case's settings that this build does not know. Where one is given and the
        case differs, the case was not run as it is meant.
        """
        reason = next(differences, "")
        if reason and unread:
            self.add(case, "not offered", f"this build does not know {', '.join(unread)}")
        elif reason and (proof := tie()):
            self.add(case, "tie", proof)
        else:
            self.add(case, "failed" if reason else "passed", reason)

    def count(self, status: Status) -> int:
        """The number of outcomes with a status; a case in two precisions counts twice."""
        return sum(outcome.status == status for outcome in self.outcomes)

    def lines(self, failures: int = 10) -> Iterator[str]:
        """The report as text; the last line is `N passed, M failed`."""
        families = sorted({outcome.family for outcome in self.outcomes})
        counts = Counter((outcome.family, outcome.status) for outcome in self.outcomes)
        width = max((len(name) for name in families), default=6)
        columns: tuple[Status, ...] = ("passed", "failed", "tie")
        yield "  ".join([f"{'family':<{width}}", *(f"{status:>6}" for status in columns)])
        for name in families:
            numbers = [counts[name, status] for status in columns]
            if any(numbers):
                yield "  ".join([f"{name:<{width}}", *(f"{number:6d}" for number in numbers)])
        for status in ("tie", "known difference", "not offered"):
            yield from self._listed(status)
        broken = [outcome for outcome in self.outcomes if outcome.status == "failed"]
        for outcome in broken[:failures]:
            yield f"failed  {outcome.case}: {outcome.reason}"
        if len(broken) > failures:
            yield f"and {len(broken) - failures} more failures"
        yield f"{self.count('passed')} passed, {self.count('failed')} failed"

    def _listed(self, status: str) -> Iterator[str]:
        seen: set[str] = set()
        for outcome in self.outcomes:
            if outcome.status == status and outcome.case not in seen:
                seen.add(outcome.case)
                yield f"{status}  {outcome.case}: {outcome.reason}"


def read_golden(file: Path) -> Any:
    """The content of a JSON file; None if the file does not exist."""
    return json.loads(file.read_text()) if file.is_file() else None
