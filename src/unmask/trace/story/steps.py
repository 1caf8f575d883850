"""Tables of candidates: a position step by step, or a step by rank; and their JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from unmask.rules.stability import swd_of
from unmask.rules.words import number
from unmask.trace.recording.reading import Trace
from unmask.trace.story.format import cell, quoted
from unmask.trace.story.story import TextRow, TextTable
from unmask.trace.story.timeline import Look

NARROW = 13  # characters of a token, so that a table fits into 80 columns


def steps_table(looks: Sequence[Look]) -> TextTable:
    """The steps of one position. A long table shows the changes, the differences and the end."""
    wanted = [
        differs(look) or look.token != before.token
        for look, before in zip(looks, [*looks[:1], *looks[:-1]], strict=True)
    ]
    return _table("step", looks).folded(wanted)


def queue_table(looks: Sequence[Look]) -> TextTable:
    """The candidates of one step by rank. A long table shows the best and the committed ones."""
    wanted = [look.chosen or differs(look) or look.rank <= 8 for look in looks]
    return _table("position", looks).folded(wanted, tail=2)


def _table(first: str, looks: Sequence[Look]) -> TextTable:
    plain = rank_before(looks[0].trace) if looks else []
    head = (first, "guess", "confidence", "D", "score", "rank", *plain, "")
    rows = (
        _row(look.step if first == "step" else look.position, look, bool(plain)) for look in looks
    )
    return TextTable(head, tuple(rows), frozenset({"guess", ""}))


def differs(look: Look) -> bool:
    """Whether lam = 0 would have decided differently."""
    return look.unweighted not in (None, look.chosen)


def rank_before(trace: Trace) -> list[str]:
    """The name of the column with the ranks before modulators, if the rule has modulators."""
    if not trace.rule.modulators:
        return []
    alone = len(trace.rule.modulators) == 1 and swd_of(trace.rule) is not None
    return ["lam 0"] if alone else ["plain"]


def _row(first: int, look: Look, plain: bool) -> TextRow:
    cells = [
        str(first),
        quoted(look.trace.word(look.token), NARROW),
        cell(look.confidence),
        number(look.instability, 2),
        cell(look.score),
        str(look.rank),
        *([str(look.base_rank)] if plain else []),
        outcome(look),
    ]
    styles = ("bold", "green") if look.chosen else ("yellow",) if differs(look) else ()
    return TextRow(tuple(cells), styles)


def outcome(look: Look) -> str:
    """The last column: whether this run, lam = 0 or both commit it."""
    if look.chosen:
        return "SWD commits" if differs(look) else "committed"
    return "lam 0 commits" if differs(look) else ""


def look_record(look: Look) -> dict[str, Any]:
    """A row of the table for JSON; unknown numbers are null, infinite ones a text."""
    return {
        "step": look.step,
        "position": look.position,
        "token": look.token,
        "word": look.trace.word(look.token),
        "confidence": plain_number(look.confidence),
        "instability": plain_number(look.instability),
        "base": plain_number(look.base),
        "score": plain_number(look.score),
        "rank": look.rank,
        "base_rank": look.base_rank,
        "ready": look.ready,
        "committed": look.chosen,
        "unweighted": look.unweighted,
    }


def plain_number(value: float) -> float | str | None:
    """A number for JSON, with four digits."""
    if math.isnan(value):
        return None
    return float(f"{value:.4g}") if math.isfinite(value) else str(value)
