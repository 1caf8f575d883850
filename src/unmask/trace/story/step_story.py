"""The story of one step: its candidates by rank, and which of them the rule committed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unmask.rules.stability import swd_of
from unmask.rules.words import counted
from unmask.trace.recording.reading import Moment, Trace
from unmask.trace.story.counterfactual import meaning
from unmask.trace.story.format import spans, writer_of_fills
from unmask.trace.story.steps import look_record, queue_table
from unmask.trace.story.story import Story
from unmask.trace.story.timeline import Look, StepState, Timeline, given_steps
from unmask.trace.story.why_step import cause


def tell_step(trace: Trace, step: int) -> Story:
    """The story of a step, counted from 1."""
    moment = trace.moments[step - 1]
    looks = [Look.of(trace, step, moment, place) for place in moment.queue]
    window = f"positions {moment.window[0]}-{moment.window[1] - 1} were open"
    took = f"{len(moment.committed)} of {counted(len(looks), 'candidate')}"
    return Story(
        head=f"Step {step} of {len(trace.moments)}: {window}, {took} committed.",
        table=queue_table(looks),
        after=[*_at_the_cut(looks), *_written(trace, moment), *_without_swd(trace, moment)],
        note=meaning(trace),
        facts={**moment_record(step, moment), "queue": [look_record(look) for look in looks]},
    )


def moment_record(step: int, moment: Moment) -> dict[str, Any]:
    """A step for JSON."""
    unweighted = moment.unweighted
    return {
        "step": step,
        "window": list(moment.window),
        "candidates": len(moment.positions),
        "committed": [list(pair) for pair in moment.committed.items()],
        "filled": [list(pair) for pair in moment.filled.items()],
        "revoked": list(moment.revoked),
        "gauge": moment.gauge,
        "unweighted": None if unweighted is None else list(unweighted),
    }


def unlike(trace: Trace, moment: Moment) -> bool:
    """Whether lam = 0 would have committed other positions."""
    if moment.forward < given_steps(trace):
        return False
    return moment.unweighted is not None and set(moment.unweighted) != set(moment.committed)


def instead(moment: Moment, most: int = 4) -> str:
    """The positions that only lam = 0 would have committed (+) and that only SWD did (-)."""
    there, here = set(moment.unweighted or ()), set(moment.committed)
    names = [f"+{position}" for position in sorted(there - here)]
    names += [f"-{position}" for position in sorted(here - there)]
    if len(names) <= most + 1:
        return " ".join(names) or "same"
    return f"{' '.join(names[:most])}, {len(names) - most} more"


def _at_the_cut(looks: list[Look]) -> Iterator[str]:
    """Why the last committed position was committed, and the next one was not."""
    taken = [look for look in looks if look.chosen]
    left = [look for look in looks if not look.chosen]
    for verb, at_cut in (("was committed", taken[-1:]), ("was not committed", left[:1])):
        for look in at_cut:
            entry = StepState(look.step, "candidate", look)
            words = cause(Timeline(look.trace, look.position), entry).words
            yield f"Position {look.position} {verb}: {words}."


def _written(trace: Trace, moment: Moment) -> Iterator[str]:
    if moment.revoked:
        yield f"Taken back: {spans(moment.revoked)}."
    if moment.filled:
        yield f"Written by {writer_of_fills(trace)}: {spans(moment.filled)}."


def _without_swd(trace: Trace, moment: Moment) -> Iterator[str]:
    if swd_of(trace.rule) is None or moment.forward < given_steps(trace):
        return
    if not unlike(trace, moment):
        yield "lam = 0 would have committed the same."
        return
    there, here = set(moment.unweighted or ()), set(moment.committed)
    if there - here:
        yield f"lam = 0 would also have committed {spans(there - here)}."
    if here - there:
        yield f"lam = 0 would not have committed {spans(here - there)}."
