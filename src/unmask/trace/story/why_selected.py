"""Why a selection took a position or not in one step: its own words, or what is always true."""

from __future__ import annotations

import math

from unmask.rules.part import Standing
from unmask.rules.registry import abilities_of, notation
from unmask.rules.words import counted
from unmask.trace.story.timeline import Look


def selection_words(look: Look) -> str:
    """What the selection did with a candidate and why."""
    select, at = look.trace.rule.select, _standing(look)
    if why := abilities_of(select).why:
        return why(at)
    outcome = "it among them" if at.taken else "it not among them"
    took = f"took {took_count(look)} of {counted(len(at.ranks), 'candidate')}"
    return f"{notation(select)} {took}, {outcome}; by score it was {at.place}"


def took_count(look: Look) -> int:
    """How many positions the selection took in this step."""
    return len(look.moment.selected)


def _standing(look: Look) -> Standing:
    moment, trace = look.moment, look.trace
    places = [place for place in moment.queue if moment.ready[place]]
    ranks = {int(moment.positions[place]): rank for rank, place in enumerate(places, 1)}
    return Standing(
        position=look.position,
        score=look.score,
        ranks=ranks,
        selected=frozenset(moment.selected),
        complete=len(ranks) == len(moment.positions),
        gauge={name: level for name, level in moment.gauge.items() if level is not None},
        step=sum(other.window == moment.window for other in trace.moments[: look.step - 1]),
        moved=look.instability if trace.header["kl"] == "cur_prev" else math.nan,
    )
