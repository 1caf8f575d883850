"""The story of a whole run: a table of its steps, and positions worth a closer look."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.rules.stability import swd_of
from unmask.rules.words import counted, number, times
from unmask.trace.recording.reading import Moment, Trace
from unmask.trace.story.counterfactual import meaning
from unmask.trace.story.format import listed, named, quoted, share, spans
from unmask.trace.story.locate import written
from unmask.trace.story.step_story import instead, moment_record, unlike
from unmask.trace.story.story import Story, TextRow, TextTable
from unmask.trace.story.timeline import Look, Timeline, given_steps

NAMED = 2  # how many tokens of a step the table shows
ROWS = 60


def tell_run(trace: Trace) -> Story:
    """The story of all steps of a trace."""
    notable = [f"- {sentence}." for sentence in _notable(trace)]
    lead = ["Positions worth a closer look, with --position:"] if notable else []
    return Story(
        head=_head(trace),
        table=_table(trace),
        after=[*_legend(trace), *lead, *notable],
        note=meaning(trace),
        facts={
            "rule": str(trace.rule),
            "settings": trace.header["settings"],
            "end": trace.end,
            "steps": [moment_record(i, moment) for i, moment in enumerate(trace.moments, 1)],
        },
    )


def _head(trace: Trace) -> str:
    positions = f"{trace.rule}: {counted(len(written(trace)), 'position')}"
    count = counted(len(trace.moments), "step")
    if trace.finished:
        return f"{positions} in {count}."
    left = int((trace.canvas_after(-1) == trace.spec.mask_id).sum())
    return f"{positions}; the trace stops after {count}, with {counted(left, 'mask')} left."


def _table(trace: Trace) -> TextTable:
    """A row for each step, without the columns that are empty in this trace."""
    blocks = len({moment.window for moment in trace.moments}) > 1
    shown = {
        "window": blocks,
        "gauge": any(moment.gauge for moment in trace.moments),
        "at lam = 0": swd_of(trace.rule) is not None,
    }
    names = ("step", "window", "open", "gauge", "at lam = 0", "committed")
    head = tuple(name for name in names if shown.get(name, True))
    other = [unlike(trace, moment) for moment in trace.moments]
    rows: list[TextRow] = []
    for i, differs in enumerate(other):
        cells = _cells(trace, i)
        rows.append(TextRow(tuple(cells[name] for name in head), ("yellow",) if differs else ()))
    table = TextTable(head, tuple(rows), frozenset({"gauge", "at lam = 0", "committed"}))
    return table.folded(other, most=ROWS)


def _cells(trace: Trace, index: int) -> dict[str, str]:
    moment = trace.moments[index]
    return {
        "step": str(index + 1),
        "window": f"{moment.window[0]}-{moment.window[1] - 1}",
        "open": str(len(moment.positions)),
        "gauge": _gauge(moment),
        "at lam = 0": instead(moment, 2) if index >= given_steps(trace) else "branch",
        "committed": _committed(trace, moment),
    }


def _committed(trace: Trace, moment: Moment) -> str:
    queue = [int(moment.positions[place]) for place in moment.queue]
    names = [named(trace, p, moment.committed[p]) for p in queue if p in moment.committed]
    texts = [listed(names, NAMED)] if names else []
    if moment.revoked:
        texts.append(f"taken back: {spans(moment.revoked)}")
    if moment.filled:
        texts.append(f"filled: {spans(moment.filled)}")
    return "; ".join(texts)


def _gauge(moment: Moment) -> str:
    known = [(name, level) for name, level in moment.gauge.items() if level is not None]
    return " ".join(f"{name} {number(float(level), 2)}" for name, level in known)


def _legend(trace: Trace) -> Iterator[str]:
    if swd_of(trace.rule) is None:
        return
    if any(unlike(trace, moment) for moment in trace.moments):
        yield "At lam = 0: + would also have been committed, - would not have been committed."
    else:
        yield "SWD changed nothing: lam = 0 would have committed the same in every step."


def telling_position(trace: Trace) -> int:
    """The position that SWD held back longest, else the one whose prediction changed most often."""
    timelines = [Timeline(trace, position) for position in written(trace)]
    held = max(timelines, key=_delay)
    return (held if _delay(held) else max(timelines, key=lambda t: len(t.guesses))).position


def _notable(trace: Trace) -> Iterator[str]:
    timelines = [Timeline(trace, position) for position in written(trace)]
    held = max(timelines, key=_delay)
    if looks := _held(held):
        first, last = looks[0], held.last
        early = (
            f"lam = 0 would have committed {quoted(trace.word(first.token))} at step {first.step}"
        )
        end = "it is still a mask" if last is None else f"it was written at step {last.step}"
        yield f"{_name(held)}: SWD held it back longest: {early}, {end}"
    fickle = max(timelines, key=lambda t: len(t.guesses))
    if (changes := len(fickle.guesses) - 1) > 1:
        yield f"{_name(fickle)}: its prediction changed most often, {times(changes)}"
    sure = [(look.confidence, t) for t in timelines for look in t.looks if look.chosen]
    if sure:
        level, doubtful = min(sure, key=lambda pair: pair[0])
        yield f"{_name(doubtful)}: it was committed with the lowest confidence, {share(level)}"
    yield from _first_difference(trace)


def _held(timeline: Timeline) -> list[Look]:
    """The steps in which lam = 0 would have committed it and SWD did not."""
    return [look for look in timeline.waits if look.unweighted]


def _delay(timeline: Timeline) -> int:
    """Steps between the first one in which lam = 0 would have committed it and its last token."""
    held, last = _held(timeline), timeline.last
    end = len(timeline.trace.moments) + 1 if last is None else last.step
    return end - held[0].step if held else 0


def _first_difference(trace: Trace) -> Iterator[str]:
    for step, moment in enumerate(trace.moments, 1):
        if unlike(trace, moment):
            positions = sorted(set(moment.unweighted or ()) ^ set(moment.committed))
            names = listed([str(position) for position in positions])
            yield f"{names}: the first difference from lam = 0, at step {step}"
            return


def _name(timeline: Timeline) -> str:
    last = timeline.last
    if last is None:
        return str(timeline.position)
    return named(timeline.trace, timeline.position, last.token)
