"""Why a position was written or not in one step: the selection, limits, EOS, caches and SWD."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.rules.limits import Cap, Floor
from unmask.rules.part import Standing
from unmask.rules.registry import abilities_of, notation
from unmask.rules.stability import swd_of
from unmask.rules.words import counted, ordinal
from unmask.trace.story.timeline import Look, StepState, Timeline, end_before


@dataclass(frozen=True)
class Cause:
    """A reason as a sentence without its full stop, and the kind of the reason."""

    kind: str
    words: str


def cause(timeline: Timeline, entry: StepState) -> Cause:
    """Why a masked position was written in a step, or was not."""
    if entry.look is not None:
        return _of_candidate(entry.look)
    return Cause(entry.state, _absent(timeline, entry))


def _of_candidate(look: Look) -> Cause:
    if look.given:
        return Cause("given", "the branch repeats this step of the original run")
    if look.chosen and not look.selected:
        return Cause("forced", _forced(look))
    if look.selected and not look.chosen:
        return Cause("capped", _capped(look))
    if not look.ready:
        return Cause("unready", _unready(look))
    ends = look.token in look.trace.spec.stop_ids
    if look.trace.settings.eos == "last" and not look.chosen and ends:
        return Cause("deferred", f"eos=last ranks an end of text last: {_selection(look)}")
    if _sole_without_history(look):
        return Cause("first", f"{_nothing_to_compare(look)}, which was this one")
    return Cause("selection", _selection(look))


def _selection(look: Look) -> str:
    """What the selection did with a candidate: why, in its own words if it has any."""
    select, at = look.trace.rule.select, _standing(look)
    if why := abilities_of(select).why:
        return why(at)
    outcome = "it among them" if at.taken else "it not among them"
    took = f"took {len(at.selected)} of {counted(len(at.ranks), 'candidate')}"
    return f"{notation(select)} {took}, {outcome}; by score it was {at.place}"


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
        instability=look.instability,
        kl=trace.header["kl"],
    )


def _capped(look: Look) -> str:
    rule = look.trace.rule
    parts = [part for part in rule.limits if isinstance(part, Cap)] or rule.limits
    took = f"chose {counted(len(look.moment.selected), 'position')} with this one"
    return f"{notation(rule.select)} {took}, but {' or '.join(map(notation, parts))} removed it"


def _forced(look: Look) -> str:
    """The limits that can have added it; --steps is one of them."""
    trace, names = look.trace, []
    for part in trace.rule.limits:
        if why := abilities_of(part).why:
            return why()
        if isinstance(part, Floor) and not part.steps:
            if look.rank <= part.k:
                return _not_by_itself(look, notation(part))
        elif not isinstance(part, Cap):
            names.append(notation(part))
    if trace.settings.steps is not None:
        names.append(f"--steps {trace.settings.steps}")
    return _not_by_itself(look, " or ".join(names))


def _not_by_itself(look: Look, force: str) -> str:
    name, count = notation(look.trace.rule.select), len(look.moment.selected)
    return f"{force} required more than the {count} that {name} chose; it was {ordinal(look.rank)}"


def _sole_without_history(look: Look) -> bool:
    swd, moment = swd_of(look.trace.rule), look.moment
    waits = swd is not None and swd.start == "single" and not moment.ready.all()
    return waits and bool(np.isnan(moment.instability).all())


def _nothing_to_compare(look: Look) -> str:
    when = "the first step" if look.step == 1 else "this step"
    return f"{when} has no earlier one to compare with, so SWD allows only the best by score"


def _unready(look: Look) -> str:
    """The candidates stages and modulators that can have held it back."""
    rule = look.trace.rule
    whys = [(part, abilities_of(part).why) for part in rule.candidates]
    causes = [why() if why else f"{notation(part)} left it out" for part, why in whys]
    waits = any(abilities_of(part).ready for part in rule.modulators)
    swd = swd_of(rule)
    if not causes or (waits and (swd is None or swd.start == "single")):
        causes.append(_no_history(look))
    return ", or ".join(causes)


def _no_history(look: Look) -> str:
    if swd_of(look.trace.rule) is None:
        return "a modulator of the rule did not allow it yet"
    if _sole_without_history(look):
        return f"{_nothing_to_compare(look)}, and this was {ordinal(look.base_rank)}"
    return "it had no distribution from the step before, and SWD prefers positions that have one"


def _absent(timeline: Timeline, entry: StepState) -> str:
    """Why it was not a candidate."""
    if entry.state == "later":
        return "its block was not open yet"
    if entry.state == "fixed":
        return "it already had its token"
    if entry.state == "behind":
        end = end_before(timeline, entry.step)
        return f"eos=stop decides nothing after the end of text at position {end}"
    cache = timeline.trace.header["model"].get("cache") or "none"
    named = "" if cache == "none" else f" ({cache})"
    return f"the cache{named} did not recompute it, so it was not a candidate"
