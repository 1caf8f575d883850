"""Why a selection took or left a position in one step: a sentence for each kind of selection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from unmask.rules.registry import kind_of, notation
from unmask.trace.story.format import beside, counted, number, ordinal
from unmask.trace.story.timeline import Look


def selection_words(look: Look) -> str:
    """What the selection did with it and why; parts of one's own get what is always true."""
    part = look.trace.rule.select
    return _WORDS.get(kind_of(part).name, _fallback)(part, look)


def took(look: Look) -> int:
    """How many the selection took in this step."""
    return len(look.moment.selected)


def place(look: Look) -> str:
    """Where it stood among those that the selection chose from."""
    everyone = len(look.moment.positions) == int(look.moment.ready.sum())
    return ordinal(look.line) + ("" if everyone else " of those with a history")


def gauge(look: Look, name: str) -> float:
    """A number of the selection's own, NaN where the trace has none."""
    found = look.moment.gauge.get(name)
    return math.nan if found is None else found


def _fallback(part: Any, look: Look) -> str:
    among = f"took {took(look)} of {counted(int(look.moment.ready.sum()), 'candidate')}"
    outcome = "it among them" if look.selected else "it not among them"
    return f"{notation(part)} {among}, {outcome}; by score it was {place(look)}"


def _top(part: Any, look: Look) -> str:
    best = "the best one" if part.k == 1 else f"the {part.k} best"
    return f"{notation(part)} takes {best}, and it was {place(look)}"


def _timetable(part: Any, look: Look) -> str:
    share = int(gauge(look, "share"))
    given = f"{notation(part)} gave {share or 'no'} position{'s' * (share != 1)} to this step"
    return f"{given}, and it was {place(look)}"


def _threshold(part: Any, look: Look) -> str:
    return _level(part, look, part.tau, part.slack)


def _level(part: Any, look: Look, tau: float, slack: float = 0.0) -> str:
    name, score = notation(part), beside(look.score, tau)
    sign = "above" if part.test == "gt" else "at or above"
    if gauge(look, "passing") == 0:
        best = beside(gauge(look, "best"), tau)
        nobody = f"under {name} no candidate was {sign} {number(tau)} (the best had {best}), so"
        also = " and those close to it" if slack else ""
        if look.selected:
            return f"{nobody} the best one{also} went, and this was {_among(look, slack)}"
        return f"{nobody} only the best one{also} went, and this was {place(look)}"
    if not look.selected:
        return f"under {name} its score, {score}, was not {sign} {number(tau)}"
    near = f" or within {number(slack)} of the best" if slack else ""
    return f"under {name} its score, {score}, was {sign} {number(tau)}{near}"


def _among(look: Look, slack: float) -> str:
    return "it" if look.line == 1 or not slack else "one of them"


def _eb(part: Any, look: Look) -> str:
    return _run(part, look, part.gamma, "their entropies without the largest add up to")


def _budget(part: Any, look: Look) -> str:
    return _run(part, look, part.delta, "their D add up to")


def _run(part: Any, look: Look, limit: float, cost: str) -> str:
    """A best-first run whose cost stays within a limit: what it cost, and with one more."""
    name, count = notation(part), took(look)
    allowed, more = f"{number(limit)} nats", _one_more(look, limit)
    if not look.selected:
        line = f"in line it was {place(look)}"
        return f"{name} stopped before it: {_front(count)}, {more}, and {line}"
    if count == int(look.moment.ready.sum()):
        more = "nobody else was left"
    if count == 1:
        return f"under {name} the best one always goes, and it was that; {more}"
    spent = f"{cost} {beside(gauge(look, 'spent'), limit)} of {allowed}"
    return f"under {name} {_front(count)}, and it was {place(look)}; {spent}, and {more}"


def _one_more(look: Look, limit: float) -> str:
    following = gauge(look, "next")
    if math.isnan(following):
        return "the next one has an infinite or unknown cost"
    return f"one more would have made it {beside(following, limit)}, over {number(limit)} nats"


def _front(count: int) -> str:
    return "only the best one went" if count == 1 else f"the {count} best went"


def _factor(part: Any, look: Look) -> str:
    last, following = gauge(look, "spent"), gauge(look, "next")
    name, count = notation(part), took(look)
    cost = "(n + 1)(1 - score)"
    after = "" if math.isnan(following) else f"; at the next one it is {number(following)}"
    if look.selected:
        return (
            f"under {name} {_front(count)}, it was {place(look)}; {cost} at the last of "
            f"them is {number(last)}{after}"
        )
    return f"under {name} {_front(count)}, and it was {place(look)}{after}, by {cost}"


def _klass(part: Any, look: Look) -> str:
    if gauge(look, "passing") == 0:
        early = sum(m.window == look.moment.window for m in look.trace.moments[: look.step - 1])
        gated = part.gate and early < part.n - 1
        why = (
            f"the block was in its first {part.n - 1} steps" if gated else "none was sure and calm"
        )
        which = "it" if look.selected else place(look)
        return f"under {notation(part)} {why}, so only the best one went, and this was {which}"
    sign = ">" if part.test == "gt" else ">="
    passed = "passed" if look.selected else "did not pass"
    own = look.trace.header["kl"] == "cur_prev"
    latest = f" (the newest: {number(look.instability)})" if own else ""
    return (
        f"under {notation(part)} it {passed} score {sign} {number(part.conf)} (it had "
        f"{beside(look.score, part.conf)}) and the last {part.n} KL(current || previous) < "
        f"{number(part.kl)}{latest}"
    )


def _hierarchy(part: Any, look: Look) -> str:
    name, score = notation(part), number(look.score)
    leads = look.line == _leader_line(look)
    if look.selected and look.line == 1:
        return f"under {name} the best of all always goes, and it was that"
    if look.selected and leads:
        return f"under {name} the best of its run of masks goes, and it was that, with {score}"
    if look.selected:
        return f"under {name} its score, {score}, was above {number(part.tau)}"
    if leads:
        asked = f"more than {number(part.low)} is asked of the best of a run of masks"
        return f"under {name} {asked}; it had {score}"
    asked = f"more than {number(part.tau)} is asked of all but the best of its run of masks"
    return f"under {name} {asked}; it had {score}"


def _leader_line(look: Look) -> int:
    """The best place in line within the run of neighbouring candidates that it is in."""
    moment = look.moment
    ready = {int(p): Look(look.trace, look.step, moment, k) for k, p in enumerate(moment.positions)}
    ready = {position: other for position, other in ready.items() if other.ready}
    run = [look.position]
    for direction in (-1, 1):
        here = look.position + direction
        while here in ready:
            run.append(here)
            here += direction
    return min(ready[position].line for position in run)


def _left_to_right(part: Any, look: Look) -> str:
    name, score, here = notation(part), number(look.score), look.position
    if look.selected:
        return f"under {name} it and all masks left of it went; its score was {score}"
    first = next(p for p in look.moment.positions.tolist() if p not in look.moment.selected)
    if first != here:
        return f"under {name} position {first}, left of it, had to wait"
    if here - 1 not in look.moment.selected:
        return f"under {name} a token that was fixed before ends the run of masks left of it"
    asked = f"{number(part.tau)} is asked of all but the leftmost" + f" {part.k}" * (part.k > 1)
    return f"under {name} the masks left of it went; its score was {score}, and {asked}"


def _origin(part: Any, look: Look) -> str:
    drawn = "drawn" if look.selected else "not drawn"
    return f"{notation(part)} draws positions at random, and it was {drawn}"


_WORDS: dict[str, Callable[[Any, Look], str]] = {
    "top": _top,
    "threshold": _threshold,
    "eb": _eb,
    "budget": _budget,
    "factor": _factor,
    "klass": _klass,
    "hierarchy": _hierarchy,
    "ar": _left_to_right,
    "static": _timetable,
    "timesteps": _timetable,
    "origin": _origin,
}
