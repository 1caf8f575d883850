"""The paper's figures for a trial with the same model, task, rule, window and protocol."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from statistics import fmean

from unmask.lab.paper import DREAM, LENGTHS, LLADA, TASKS, Published, printed_averages, published
from unmask.lab.report.panels import TrialSetting
from unmask.lab.report.rule_parts import parts_of
from unmask.lab.sweep.trial import Trial

NAMES = {
    "llada-8b-instruct": LLADA,
    "dream-v0-instruct-7b": DREAM,
    "dream-7b-instruct": DREAM,
}
SIZES = {"humaneval": 164, "mbpp": 500, "gsm8k": 1319, "math500": 500}  # the paper's examples
SAME = 0.051  # one table rounds a figure to one digit, another to two
AS_PRINTED = {
    "start": ("uniform", "Algorithm 1"),
    "form": ("literal", "Eq. 8"),  # of scores below 0; other scores have one form
    "scope": ("sequence", "Algorithm 1"),
}


def counterpart(model: str) -> str | None:
    """The paper's model if a part of the name or path is exactly the name of its checkpoint."""
    parts = re.split(r"[/\\]|--", model.lower())
    return next((NAMES[part] for part in parts if part in NAMES), None)


def counterpart_of(models: Iterable[str]) -> str | None:
    """The paper's model for weights that have several names."""
    return next((name for model in sorted(models) if (name := counterpart(model))), None)


def figures(trial: Trial, model: str | None) -> list[Published]:
    """The paper's figures for this trial: several if its tables disagree.

    The paper leaves readings of SWD open (see `readings`), so a rule has its figures under each.
    """
    if model is None or why_not_the_papers(trial) is not None:
        return []
    distinct: list[Published] = []
    for each in _index().get((model, parts_of(trial.rule).printed, trial.block), []):
        place = (each.task, each.length) == (trial.task, trial.length)
        if place and not any(_same(each, known) for known in distinct):
            distinct.append(each)
    return distinct


def averages(trial: Trial, model: str | None) -> list[tuple[str, float]]:
    """The average of the four tasks in each table of the paper that has this trial's rule.

    They are computed from the table's figures; tables that agree are given once.
    """
    if model is None or why_not_the_papers(trial) is not None:
        return []
    tables: dict[str, dict[str, float]] = {}
    for each in _index().get((model, parts_of(trial.rule).printed, trial.block), []):
        if each.length == LENGTHS[each.task]:
            tables.setdefault(each.table, {})[each.task] = each.accuracy
    distinct: list[tuple[str, float]] = []
    for table, tasks in tables.items():
        if tasks.keys() == set(TASKS):
            average = fmean(tasks.values()) + 1e-9  # a half is printed rounded up, as in the paper
            if not any(abs(average - known) < SAME for _, known in distinct):
                distinct.append((table, average))
    return distinct


def misprinted_average(trial: Trial, model: str) -> float | None:
    """The average that the paper prints for this trial's rule, if it is not that of its figures."""
    return printed_averages().get((model, parts_of(trial.rule).printed, trial.block))


def readings(rule: str) -> list[str]:
    """How the rule's SWD differs from the paper as printed, a sentence for each reading."""
    parts = parts_of(rule)
    told = []
    for name, value in parts.readings:
        printed, where = AS_PRINTED[name]
        matters = name != "form" or "entropy" in parts.score.split(" | ")
        if matters and value != printed:
            told.append(
                f"{name}={value} is another reading: {where} as printed is {name}={printed}."
            )
    return told


def why_not_the_papers(trial: Trial) -> str | None:
    """The first difference between a trial and the paper's protocol, or None."""
    if trial.task not in LENGTHS:
        return f"{trial.task} is not in the paper"
    lengths = sorted({each.length for each in published() if each.task == trial.task})
    if trial.length not in lengths:
        return f"the paper's length is {' or '.join(map(str, lengths))}, ours {trial.length}"
    usual = {"preset": "paper", "eos": "keep", "cache": "none", "temperature": 0.0, "steps": None}
    for name, value in usual.items():
        if getattr(trial, name) != value:
            return f"the paper's {name} is {value}, ours {getattr(trial, name)}"
    more = TrialSetting.of(trial).more
    return f"the paper does not set {more[0][0]}, ours is {more[0][1]}" if more else None


def _same(one: Published, other: Published) -> bool:
    """Whether two tables give the same accuracy and NFE, up to their digits."""
    if abs(one.accuracy - other.accuracy) >= SAME:
        return False
    return one.nfe is None or other.nfe is None or abs(one.nfe - other.nfe) < SAME


@cache
def _index() -> dict[tuple[str, str, int | None], list[Published]]:
    index: dict[tuple[str, str, int | None], list[Published]] = {}
    for each in published():
        key = (each.model, parts_of(each.rule).printed, each.block)
        index.setdefault(key, []).append(each)
    return index
