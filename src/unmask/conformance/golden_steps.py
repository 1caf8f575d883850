"""The steps of a golden decoder case, and how a run differs from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from unmask.conformance.plan import EOS, MASK, CasePlan
from unmask.decoding.results import Step


@dataclass(frozen=True)
class CanvasChange:
    """How one forward changed a canvas."""

    written: dict[int, int]  # masks that were filled, with their tokens
    remasked: frozenset[int]
    changed: frozenset[int]  # tokens that were written over

    @classmethod
    def between(cls, before: list[int], after: list[int]) -> CanvasChange:
        """The difference of two canvases."""
        differ = [i for i, token in enumerate(before) if token != after[i]]
        return cls(
            {i: after[i] for i in differ if before[i] == MASK},
            frozenset(i for i in differ if after[i] == MASK),
            frozenset(i for i in differ if MASK not in (before[i], after[i])),
        )

    @classmethod
    def of(cls, step: dict[str, Any]) -> CanvasChange:
        """A step as a golden file writes it."""
        written = dict(zip(step["pos"], step["tok"], strict=True))
        return cls(written, frozenset(step.get("remasked", ())), frozenset(step.get("changed", ())))

    def __bool__(self) -> bool:
        return bool(self.written or self.remasked or self.changed)

    def __str__(self) -> str:
        extras = {"masked again": self.remasked, "written over": self.changed}
        more = [f"{name} {sorted(places)}" for name, places in extras.items() if places]
        return ", ".join([str(self.written), *more])


def golden_steps(row: dict[str, Any], plan: CasePlan) -> list[CanvasChange]:
    """What each useful forward changed.

    Forwards over a complete block are left out. Engines run them to write a cache, unrolled loops
    because they do not check, and batches because another row is not complete.
    """
    steps = [CanvasChange.of(step) for step in row["steps"]]
    if plan.forwards == "all":
        return steps
    if plan.forwards == "writing":
        return [step for step in steps if step]
    begin, end = len(row["prompt"]), len(row["final_ids"])
    width = plan.settings.block or end - begin
    given = {begin + place for place, _ in plan.constraints}
    masked = set(range(begin, end)) - given
    useful, current = [], 0
    for step in steps:
        complete = not any((i - begin) // width == current for i in masked)
        if complete and step.written:
            current = (min(step.written) - begin) // width
        if step or not complete:
            useful.append(step)
        masked = (masked - set(step.written)) | step.remasked
    return useful


def row_differences(
    row: dict[str, Any], steps: list[Step], number: int, plan: CasePlan, batch: bool
) -> Iterator[str]:
    """How the run of one row differs from its golden steps and ids, in the order of the steps."""
    golden, wanted = golden_steps(row, plan), list(row["final_ids"])
    canvas = [*row["prompt"], *[MASK] * (len(wanted) - len(row["prompt"]))]
    for place, token in plan.constraints:
        canvas[len(row["prompt"]) + place] = token
    own_end = plan.own_end and batch
    for index, step in enumerate(steps[: len(steps) - own_end]):
        at = step.keys.index(number)
        before, canvas = canvas, _canvas(step, at, MASK in wanted)
        change = CanvasChange.between(before, canvas)
        if index >= len(golden):
            yield f"step {index}: upstream has ended, this build wrote {change}"
            return
        if change != golden[index]:
            yield f"step {index}: expected {golden[index]}, got {change}"
            return
    if own_end:
        canvas = _canvas(steps[-1], steps[-1].keys.index(number), False)
        end = _first_end(canvas, len(row["prompt"]))
        canvas, wanted = canvas[:end], wanted[:end]
    elif len(steps) < len(golden):
        yield f"step {len(steps)}: expected {golden[len(steps)]}, this build has ended"
    if canvas != wanted:
        yield f"final ids: expected {wanted}, got {canvas}"


def _canvas(step: Step, row: int, leaves_masks: bool) -> list[int]:
    """The canvas after a step; upstream may stop at EOS and leave the tail masked."""
    after, filled = step.tokens[row].tolist(), step.filled[row].tolist()
    if not leaves_masks:
        return list(after)
    return [MASK if fill else token for token, fill in zip(after, filled, strict=True)]


def _first_end(canvas: list[int], begin: int) -> int:
    return next((i + 1 for i in range(begin, len(canvas)) if canvas[i] == EOS), len(canvas))
