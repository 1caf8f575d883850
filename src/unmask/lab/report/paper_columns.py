"""The paper's figures for a trial with the same model, task, rule, window and protocol."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from unmask.lab.paper import DREAM, LENGTHS, LLADA, Published, published
from unmask.lab.report.panels import TrialSetting
from unmask.lab.report.rule_parts import parts_of
from unmask.lab.sweep.trial import Trial

NAMES = {
    "llada-8b-instruct": LLADA,
    "dream-v0-instruct-7b": DREAM,
    "dream-7b-instruct": DREAM,
}
SIZES = {"humaneval": 164, "mbpp": 500, "gsm8k": 1319, "math500": 500}  # the paper's examples
SAME = 0.051  # points: one table rounds a figure to one digit, another to two


def counterpart(model: str) -> str | None:
    """The paper's model if a part of the name or path is exactly the name of its checkpoint."""
    parts = re.split(r"[/\\]|--", model.lower())
    return next((NAMES[part] for part in parts if part in NAMES), None)


def counterpart_of(models: Iterable[str]) -> str | None:
    """The paper's model for weights that have several names."""
    return next((name for model in sorted(models) if (name := counterpart(model))), None)


def figures(trial: Trial, model: str | None) -> list[Published]:
    """The paper's figures for this trial: several if its tables disagree."""
    if model is None or why_not_the_papers(trial) is not None:
        return []
    distinct: list[Published] = []
    for each in _index().get((model, trial.task, parts_of(trial.rule).rule, trial.block), []):
        if not any(abs(each.accuracy - known.accuracy) < SAME for known in distinct):
            distinct.append(each)
    return distinct


def why_not_the_papers(trial: Trial) -> str | None:
    """The first difference between a trial and the paper's protocol, or None."""
    if trial.task not in LENGTHS:
        return f"{trial.task} is not in the paper"
    usual = {"length": LENGTHS[trial.task], "preset": "paper", "eos": "keep", "cache": "none",
             "temperature": 0.0, "steps": None}  # fmt: skip
    for name, value in usual.items():
        if getattr(trial, name) != value:
            return f"the paper's {name} is {value}, ours {getattr(trial, name)}"
    more = TrialSetting.of(trial).more
    return f"the paper does not set {more[0][0]}, ours is {more[0][1]}" if more else None


@cache
def _index() -> dict[tuple[str, str, str, int | None], list[Published]]:
    index: dict[tuple[str, str, str, int | None], list[Published]] = {}
    for each in published():
        rule = parts_of(each.rule).rule
        index.setdefault((each.model, each.task, rule, each.block), []).append(each)
    return index
