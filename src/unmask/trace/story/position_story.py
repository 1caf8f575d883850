"""The story of one position: why it got its token in its step and not earlier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, pairwise

from unmask.rules.registry import abilities_of, notation
from unmask.rules.words import counted, number, ordinal, times
from unmask.trace.recording.reading import Trace
from unmask.trace.story.counterfactual import meaning, swd_words
from unmask.trace.story.format import listed, named, quoted, share, steps, writer_of_fills
from unmask.trace.story.steps import look_record, steps_table
from unmask.trace.story.story import Story
from unmask.trace.story.timeline import Look, Timeline
from unmask.trace.story.why_step import cause

RUNS = 6  # how many predictions a story lists


def tell_position(trace: Trace, position: int) -> Story:
    """The story of a position that decoding wrote."""
    timeline = Timeline(trace, position)
    last = timeline.last
    return Story(
        head=_head(timeline),
        before=[*_past(timeline), *_prediction(timeline)],
        table=steps_table(timeline.looks),
        after=[*_ahead(timeline), *_waiting(timeline), *_taken(timeline), *swd_words(timeline)],
        note=meaning(trace),
        facts={
            "position": position,
            "token": None if last is None else last.token,
            "word": None if last is None else trace.word(last.token),
            "step": None if last is None else last.step,
            "events": [vars(event) for event in timeline.events],
            "steps": [look_record(look) for look in timeline.looks],
        },
    )


def tell_moment(trace: Trace, position: int, step: int) -> Story:
    """The story of a position in one step: whether it was written then, and why."""
    timeline = Timeline(trace, position)
    entry = timeline.entries[step - 1]
    here, look = f"Position {position} at step {step} of {len(trace.moments)}", entry.look
    head = f"{here}: {cause(timeline, entry).words}."
    written = list(_taken(timeline, step))
    if look is None:
        return Story(head, {"position": position, "step": step}, after=written)
    verb = "was committed" if look.chosen else "was not committed"
    return Story(
        head=f"{here}: {quoted(trace.word(look.token))} {verb}.",
        table=steps_table([look]),
        after=[
            *(written or [f"It was not committed: {cause(timeline, entry).words}."]),
            *_last_rank([look]),
            *swd_words(replace(timeline, only=step)),
        ],
        note=meaning(trace),
        facts=look_record(look),
    )


def _head(timeline: Timeline) -> str:
    trace, here, last = timeline.trace, f"Position {timeline.position}", timeline.last
    total = len(trace.moments)
    of = f"of {total}" if trace.finished else f"(the trace stops after step {total})"
    if last is None:
        return f"{here} is still a mask: the trace stops after {counted(total, 'step')}."
    got = f"{here} got {quoted(trace.word(last.token))} at step {last.step} {of}"
    if last.kind == "fill":
        end = ", not the rule" if trace.settings.eos in _FILL else ""
        return f"{got}: {writer_of_fills(trace)} wrote it{end}."
    moment = trace.moments[last.step - 1]
    queue = [int(moment.positions[place]) for place in moment.queue]
    order = [position for position in queue if position in moment.committed]
    if len(order) == 1:
        return f"{got}, as the only commitment of that step."
    place = ordinal(order.index(timeline.position) + 1)
    return f"{got}, as the {place} of {len(order)} commitments of that step."


def _past(timeline: Timeline) -> Iterator[str]:
    """The tokens that were written here and later taken back or overwritten."""
    events, revoke = timeline.events, timeline.trace.rule.revoke
    for event, following in pairwise(events):
        word = quoted(timeline.trace.word(event.token))
        if following.kind == "revoke":
            why = abilities_of(revoke).why
            yield (
                f"It had been committed as {word} at step {event.step} and was taken back at step "
                f"{following.step}{f': {why()}' if why else f' by {notation(revoke)}'}."
            )
        elif following.kind == "fill" and event.kind == "commit":
            after = timeline.trace.settings.eos in _FILL
            late = "it stood after an end of text, so" if after else "the model preferred another:"
            late = f"{late} step {following.step} overwrote it"
            yield f"The rule had committed {word} at step {event.step}; {late}."


def _prediction(timeline: Timeline) -> Iterator[str]:
    """How the likeliest token changed from step to step."""
    runs = timeline.guesses
    if not runs:
        return
    guesses = [_one_guess(run) for run in runs]
    if len(guesses) > RUNS:
        between = f"{len(guesses) - RUNS} more changes"
        guesses = [*guesses[: RUNS - 2], between, *guesses[-2:]]
    changes = len(runs) - 1
    how = "never changed" if not changes else f"changed {times(changes)}"
    yield f"Its prediction {how}: {', '.join(guesses)}."
    yield from _drawn(timeline)


def _one_guess(run: list[Look]) -> str:
    first, last = run[0], run[-1]
    word, begin, end = quoted(first.trace.word(first.token)), first.confidence, last.confidence
    level = share(begin) if len(run) == 1 else f"{share(begin)} -> {share(end)}"
    return f"{steps([look.step for look in run])} {word} ({level})"


def _drawn(timeline: Timeline) -> Iterator[str]:
    """A sentence if the committed token was not the model's own first choice."""
    taken = [look for look in timeline.looks if look.chosen]
    if not taken:
        return
    look, moment = taken[-1], taken[-1].moment
    first = int(moment.alternatives[look.place, 0])
    if first == look.token:
        return
    sampling = timeline.trace.settings.sampling
    drawn = f"drawn at temperature {number(sampling.temperature)}"
    word, level = quoted(timeline.trace.word(first)), share(moment.probabilities[look.place, 0])
    yield (
        f"The token was {drawn if sampling.draws else 'raised by credit'}: the model's own first "
        f"choice at step {look.step} was {word} ({level})."
    )


def _ahead(timeline: Timeline) -> Iterator[str]:
    """Which positions were committed while it waited, and which were ahead of it at the end."""
    trace, waits = timeline.trace, timeline.waits
    if not waits:
        return
    before: list[str] = []
    though: list[str] = []
    for look in waits:
        ranks = dict(zip(look.moment.positions.tolist(), look.moment.rank.tolist(), strict=True))
        for position, token in look.moment.committed.items():
            name = f"{named(trace, position, token)} (step {look.step})"
            (before if ranks[position] < look.rank - 1 else though).append(name)
    while_waiting = f"While it waited ({steps([look.step for look in waits])})"
    if before:
        was = "was" if len(before) == 1 else "were"
        ahead = f"{counted(len(before), 'position')} with a better rank {was} committed"
        yield f"{while_waiting}, {ahead}: {listed(before)}."
    if though:
        yield f"Also committed then, with a worse rank: {listed(though)}."
    yield from _last_rank(waits)


def _last_rank(waits: list[Look]) -> Iterator[str]:
    """Its rank in the last of these steps, and the positions ahead of it."""
    last = waits[-1]
    names = [named(last.trace, look.position, look.token) for look in last.ahead]
    place = f"it was {ordinal(last.rank)} of {len(last.moment.positions)} by score"
    behind = f"behind {listed(names)}" if names else "so no position was ahead of it"
    yield f"At step {last.step}, {place}, {behind}."


def _waiting(timeline: Timeline) -> Iterator[str]:
    """Why it was not committed earlier: one sentence for steps in a row with one kind of cause."""
    written = [event.step for event in timeline.events]
    masked = [entry for entry in timeline.entries if entry.state != "fixed"]
    left = [entry for entry in masked if entry.look is None or not entry.look.chosen]
    causes = [(entry.step, cause(timeline, entry)) for entry in left if entry.step not in written]
    for _, group in groupby(causes, key=lambda pair: pair[1].kind):
        run = list(group)
        last, reason = run[-1]
        same = len(run) == 1 or reason.kind in ("later", "behind", "stale")
        at = ": " if same else f"; at step {last} "
        yield f"Not committed at {steps([step for step, _ in run])}{at}{reason.words}."


def _taken(timeline: Timeline, only: int | None = None) -> Iterator[str]:
    """Why it was written in each step that wrote it, or only in the given step."""
    for event in timeline.events:
        if only not in (None, event.step):
            continue
        if event.kind == "commit":
            entry = timeline.entries[event.step - 1]
            yield f"Committed at step {event.step}: {cause(timeline, entry).words}."
        elif event.kind == "fill":
            yield f"At step {event.step} {_FILL.get(timeline.trace.settings.eos, _OTHERWISE)}."


_OTHERWISE = "the rule wrote it outside its selection: over a token, or after the window"
_FILL = {
    "stop": "everything before the first end of text was fixed, so eos=stop filled the rest",
    "block": "the block had an end of text and no mask left, so eos=block filled what follows",
    "fill": "an end of text stood before it, so eos=fill wrote one here too",
}
