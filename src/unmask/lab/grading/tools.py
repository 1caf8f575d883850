"""Tools of the graders: math-verify for formulas, a judge for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unmask.errors import UnmaskError
from unmask.lab.grading.verify import Verifier
from unmask.lab.sandbox import Program, Verdict

if TYPE_CHECKING:
    from unmask.lab.benchmarks import Benchmark

Judge = Callable[[Sequence[Program]], Iterable[tuple[int, Verdict]]]


@dataclass(frozen=True)
class Tools:
    """Shared by all answers of a run; `judge` is a sandbox's `judge_many`."""

    judge: Judge | None = None
    verifier: Verifier = field(default_factory=Verifier)

    @classmethod
    def of(cls, benchmarks: Iterable[Benchmark], allow_unsandboxed: bool = False) -> Tools:
        """The tools of these benchmarks: a sandbox only if one of them runs code."""
        if not any(each.runs_code for each in benchmarks):
            return cls()
        from unmask.lab.sandbox import Sandbox

        return cls(Sandbox(allow_unsandboxed=allow_unsandboxed).judge_many)

    def __enter__(self) -> Tools:
        return self

    def __exit__(self, *_: object) -> None:
        self.verifier.close()

    def verdicts(self, programs: Sequence[Program]) -> Iterable[tuple[int, Verdict]]:
        """Judge all programs; verdicts come in the order in which they are ready."""
        if not programs:
            return ()
        if self.judge is None:
            raise UnmaskError("grading code needs a judge that runs programs; give Tools a judge")
        return self.judge(programs)
