"""The story of a whole run: a table of its steps, and which positions are worth asking about."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.rules.words import counted, number, times
from unmask.trace.recording.reading import Moment, Trace
from unmask.trace.story.counterfactual import meaning
from unmask.trace.story.format import listed, named, quoted, share, spans
from unmask.trace.story.locate import written
from unmask.trace.story.step_story import instead, moment_record, unlike
from unmask.trace.story.tables import Row, Table, folded
from unmask.trace.story.telling import Telling
from unmask.trace.story.timeline import Look, Timeline, given_steps
from unmask.trace.story.why_step import swd_of

NAMED = 2  # tokens of a step that the table names
ROWS = 60


def tell_run(trace: Trace) -> Telling:
    """Of all steps that the trace holds."""
    asking = [f"- {told}." for told in _worth_asking(trace)]
    lead = ["Worth asking about, with --position:"] if asking else []
    return Telling(
        head=_head(trace),
        table=_table(trace),
        after=[*_legend(trace), *lead, *asking],
        note=meaning(trace),
        facts={
            "rule": str(trace.rule),
            "settings": trace.header["settings"],
            "end": trace.end,
            "steps": [moment_record(i, moment) for i, moment in enumerate(trace.moments, 1)],
        },
    )


def _head(trace: Trace) -> str:
    told = f"{trace.rule}: {counted(len(written(trace)), 'position')}"
    count = counted(len(trace.moments), "step")
    if trace.finished:
        return f"{told} in {count}."
    left = int((trace.canvas_after(-1) == trace.spec.mask_id).sum())
    return f"{told}; the trace stops after {count}, with {counted(left, 'mask')} left."


def _table(trace: Trace) -> Table:
    """What each step did; columns that would say nothing are left out."""
    blocks = len({moment.window for moment in trace.moments}) > 1
    told = {
        "window": blocks,
        "gauge": any(moment.gauge for moment in trace.moments),
        "at lam = 0": swd_of(trace) is not None,
    }
    names = ("step", "window", "of", "gauge", "at lam = 0", "committed")
    head = tuple(name for name in names if told.get(name, True))
    rows: list[Row] = []
    for i in folded([unlike(trace, moment) for moment in trace.moments], most=ROWS):
        if i is None:
            rows.append(Row(("...", *[""] * (len(head) - 1)), ("dim",)))
            continue
        cells = _cells(trace, i)
        style = ("yellow",) if unlike(trace, trace.moments[i]) else ()
        rows.append(Row(tuple(cells[name] for name in head), style))
    return Table(head, tuple(rows), frozenset({"gauge", "at lam = 0", "committed"}))


def _cells(trace: Trace, index: int) -> dict[str, str]:
    moment = trace.moments[index]
    return {
        "step": str(index + 1),
        "window": f"{moment.window[0]}-{moment.window[1] - 1}",
        "of": str(len(moment.positions)),
        "gauge": _gauge(moment),
        "at lam = 0": instead(moment, 2) if index >= given_steps(trace) else "branch",
        "committed": _committed(trace, moment),
    }


def _committed(trace: Trace, moment: Moment) -> str:
    queue = [int(moment.positions[place]) for place in moment.queue]
    names = [named(trace, p, moment.committed[p]) for p in queue if p in moment.committed]
    told = [listed(names, NAMED)] if names else []
    if moment.revoked:
        told.append(f"back: {spans(moment.revoked)}")
    if moment.filled:
        told.append(f"filled: {spans(moment.filled)}")
    return "; ".join(told)


def _gauge(moment: Moment) -> str:
    known = [(name, level) for name, level in moment.gauge.items() if level is not None]
    return " ".join(f"{name} {number(float(level), 2)}" for name, level in known)


def _legend(trace: Trace) -> Iterator[str]:
    if swd_of(trace) is None:
        return
    if any(unlike(trace, moment) for moment in trace.moments):
        yield "At lam = 0: + would have been committed too, - would not have been."
    else:
        yield "SWD changed nothing: lam = 0 would have committed the same in every step."


def _worth_asking(trace: Trace) -> Iterator[str]:
    timelines = [Timeline(trace, position) for position in written(trace)]
    held = max(timelines, key=_delay)
    if looks := _held(held):
        first = f"at step {looks[0].step} lam = 0 would have committed"
        word, last = quoted(trace.word(looks[0].token)), held.last
        end = "it is still open" if last is None else f"it was written at step {last.step}"
        yield f"{_name(held)}: held back longest by SWD: {first} {word}, {end}"
    fickle = max(timelines, key=lambda t: len(t.guesses))
    if (changes := len(fickle.guesses) - 1) > 1:
        yield f"{_name(fickle)}: changed its prediction most often, {times(changes)}"
    sure = [(look.confidence, t) for t in timelines for look in t.looks if look.chosen]
    if sure:
        level, doubtful = min(sure, key=lambda pair: pair[0])
        yield f"{_name(doubtful)}: committed with the lowest confidence, {share(level)}"
    yield from _first_difference(trace)


def _held(timeline: Timeline) -> list[Look]:
    """The looks at which lam = 0 would have committed it and SWD did not."""
    return [look for look in timeline.waits if look.unweighted]


def _delay(timeline: Timeline) -> int:
    """Steps from the first one at which lam = 0 would have committed it to its last token."""
    held, last = _held(timeline), timeline.last
    end = len(timeline.trace.moments) + 1 if last is None else last.step
    return end - held[0].step if held else 0


def _first_difference(trace: Trace) -> Iterator[str]:
    for step, moment in enumerate(trace.moments, 1):
        if unlike(trace, moment):
            positions = sorted(set(moment.unweighted or ()) ^ set(moment.committed))
            yield f"{listed([str(p) for p in positions])}: where lam = 0 first differs, step {step}"
            return


def _name(timeline: Timeline) -> str:
    last = timeline.last
    if last is None:
        return str(timeline.position)
    return named(timeline.trace, timeline.position, last.token)
