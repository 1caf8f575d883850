"""What SWD changed for one position, against lam = 0 in the same steps of the same run."""

from __future__ import annotations

import math
from collections.abc import Iterator

from unmask.errors import shown
from unmask.rules.registry import abilities_of, notation
from unmask.rules.stability import Stability, swd_of
from unmask.rules.words import KL_WORDS, beside, number, ordinal
from unmask.trace.recording.reading import Trace
from unmask.trace.story.format import listed, quoted, share
from unmask.trace.story.timeline import Look, Timeline

UNIFORM = "In the first step, D is measured against the uniform distribution."
MEANING = (
    "lam = 0 means the same step of this run with the same canvas, decided without SWD. A whole "
    "run without SWD would differ from this run after the first difference."
)
LANGUAGE = (
    "The answer was kept in {}: predictions and confidences are those under this language, and D "
    "is of the model's own distributions."
)


def meaning(trace: Trace) -> str:
    """A note on what the numbers mean: D and lam = 0 with SWD, and confidences in a language."""
    swd, language = swd_of(trace.rule), trace.header.get("language")
    notes = [LANGUAGE.format(shown(language))] if language else []
    if swd is not None:
        notes += [UNIFORM, MEANING] if swd.start == "uniform" else [MEANING]
    return " ".join(notes)


def swd_words(timeline: Timeline) -> list[str]:
    """Sentences on what SWD changed, if anything; without SWD, on what D was."""
    swd = swd_of(timeline.trace.rule)
    if swd is None:
        return [_no_swd(timeline)]
    held = [look for look in timeline.looks if look.unweighted and not look.chosen]
    brought = [look for look in timeline.looks if look.chosen and look.unweighted is False]
    changes = [*_held(swd, timeline, held), *(_brought(swd, look) for look in brought)]
    if not timeline.looks:
        return ["SWD did not affect it: it was not a candidate in any step."]
    if not changes:
        return [f"SWD changed nothing here: {_same(timeline)}."]
    return changes


def _same(timeline: Timeline) -> str:
    if timeline.waits and any(look.chosen for look in timeline.looks):
        return "lam = 0 would have decided the same in each of its steps"
    if timeline.waits:
        return "lam = 0 would not have committed it either"
    return f"lam = 0 would have committed it at step {timeline.looks[0].step} too"


def _held(swd: Stability, timeline: Timeline, held: list[Look]) -> Iterator[str]:
    """Why it was not committed where lam = 0 would have committed it, and what happened later."""
    if not held:
        return
    first, *others = held
    word = quoted(first.trace.word(first.token))
    yield (
        f"Without SWD it would have been committed at step {first.step} as {word} (confidence "
        f"{share(first.confidence)}); {_penalty(swd, first)}."
    )
    if others:
        named = [f"step {x.step} ({quoted(x.trace.word(x.token))})" for x in others]
        yield f"lam = 0 would have committed it at {listed(named)} too."
    yield from _afterwards(timeline, first)


def _afterwards(timeline: Timeline, first: Look) -> Iterator[str]:
    later = [look for look in timeline.looks if look.step > first.step and look.chosen]
    if not later:
        return
    taken = later[0]
    if taken.token == first.token:
        yield f"The prediction was the same when it was committed at step {taken.step}."
        return
    after = (look for look in timeline.looks if look.step > first.step)
    changed = next(look for look in after if look.token == taken.token)
    yield (
        f"By step {changed.step} the prediction had become "
        f"{quoted(taken.trace.word(taken.token))}, and that is what was committed."
    )


def _brought(swd: Stability, look: Look) -> str:
    first = f"Without SWD it would not have been committed at step {look.step}"
    if look.rank < look.base_rank and len(look.trace.rule.modulators) == 1 and _lowers(swd, look):
        ranks = f"by score it was {ordinal(look.base_rank)}, and SWD ranked it {ordinal(look.rank)}"
        return f"{first}: {ranks} because others had a larger D than {number(look.instability)}."
    return f"{first}; {_penalty(swd, look)}."


def _penalty(swd: Stability, look: Look) -> str:
    """How SWD changed its score and its rank."""
    if math.isnan(look.instability):
        waits = "SWD does not allow it" if not look.ready else "SWD leaves its score as it was"
        return f"it had no earlier distribution to compare with, so {waits}"
    verb = "lowered" if _lowers(swd, look) else "changed"
    rank = f"left its rank at {look.rank}"
    if look.base_rank != look.rank:
        every = "" if len(look.trace.rule.modulators) == 1 else " (with all modulators)"
        rank = f"changed its rank from {look.base_rank} to {look.rank}{every}"
    change = f"{number(look.base)} to {beside(look.score, look.base)}{_factor(look)}"
    return f"D = {number(look.instability)} {verb} its score from {change} and {rank}"


def _lowers(swd: Stability, look: Look) -> bool:
    return swd.form != "literal" or look.moment.logarithmic


def _factor(look: Look) -> str:
    if not look.moment.logarithmic or not look.base:
        return ""
    return f" (x {number(look.score / look.base, 2)})"


def _no_swd(timeline: Timeline) -> str:
    """What D was, and which parts read it."""
    trace = timeline.trace
    known = [look for look in timeline.looks if not math.isnan(look.instability)]
    rule = "The rule has no SWD"
    if not known:
        return f"{rule}, and its D is not known: no step had an earlier one to compare it with."
    largest, last = max(known, key=lambda look: look.instability), known[-1]
    sentence = (
        f"D = {KL_WORDS[trace.header['kl']]} was {number(last.instability)} at step {last.step}"
    )
    if largest is not last:
        sentence = f"{sentence} and at most {number(largest.instability)} (step {largest.step})"
    return f"{rule}. {sentence}; {_readers(trace)}."


def _readers(trace: Trace) -> str:
    parts = (*trace.rule.modulators, trace.rule.select)
    readers = [notation(part) for part in parts if abilities_of(part).needs.directions]
    return f"only {' and '.join(readers)} read it" if readers else "the rule ignores it"
