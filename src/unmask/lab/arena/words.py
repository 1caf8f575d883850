"""What the arena shows, in sentences that follow from its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from unmask.lab.arena.contest import Arena, Field, OverallStanding
from unmask.lab.equal_cost import front
from unmask.lab.report.wording import counted, listed, percent
from unmask.lab.stats import star_rule
from unmask.lab.summary import Summary


def opening(arena: Arena) -> list[str]:
    """The arena in short: what ran, who is never dominated, who is better or worse."""
    settings = sum(len(entry.settings) for entry in arena.entries)
    first = arena.fields[0]
    ran = (
        f"{counted(len(arena.entries), 'rule')} in {counted(settings, 'setting')}, each in "
        f"{counted(len(arena.fields), 'field')}: a task, a window and an EOS policy. Every field "
        f"has {counted(first.count, 'example')} of {first.trial.length} tokens, the same for all "
        "rules. Block, length and EOS policy are those of the field, not those of a recipe."
    )
    fields = len(arena.fields)
    never = [each.entry.name for each in arena.standings if each.fronts == fields]
    always = [each.entry.name for each in arena.standings if not each.fronts]
    every = f"On the front in every field: {listed(never)}." if never else (
        "No rule is on the front in every field."
    )  # fmt: skip
    none = f" On the front in no field: {listed(always)}." if always else ""
    return [ran, every + none, *_stars(arena.standings, fields)]


def star_words(arena: Arena) -> str:
    """What a star means."""
    return f"* {star_rule(len(arena.holm), 'The p of a sign-flip test')}"


def _stars(standings: Sequence[OverallStanding], fields: int) -> list[str]:
    """Who beats or loses to the best rule without memory, by more than chance."""
    lines = []
    for word, better in (("better", True), ("worse", False)):
        named = [
            f"{each.entry.name} in {each.better if better else each.worse}"
            for each in standings
            if (each.better if better else each.worse)
        ]
        what = f"{word} than the best rule without memory at equal forwards, with a star"
        lines.append(
            f"Of {counted(fields, 'field')}, {what}: {listed(named)}."
            if named
            else f"No rule is {what}, in any of {counted(fields, 'field')}."
        )
    return lines


def best_of_task(fields: Sequence[Field]) -> list[tuple[Summary, str, str]]:
    """The front of a task over all windows and EOS policies: trial, rule's name, field."""
    named: dict[str, tuple[str, str]] = {}
    every: list[Summary] = []
    for field in fields:
        for contestant in field.contestants:
            for each in contestant.curve.settings:
                every.append(each)
                named.setdefault(each.trial.key, (contestant.entry.name, field.title))
    return [(each, *named[each.trial.key]) for each in front(every)]


def advice(fields: Sequence[Field]) -> str:
    """One sentence on a task: its best accuracy, and what it took."""
    task = fields[0].trial.task
    best, name, title = max(best_of_task(fields), key=lambda each: each[0].accuracy())
    return (
        f"{task}: the best accuracy is {percent(best.accuracy())}% at {best.mean('nfe'):.1f} "
        f"forwards, by {name} in {title.removeprefix(f'{task}, ')}."
    )
