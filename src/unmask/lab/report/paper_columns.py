"""The paper's figures that may stand beside ours: same model, task, rule, window and protocol."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from unmask.lab.paper import DREAM, LENGTHS, LLADA, Published, published
from unmask.lab.report.rule_columns import read
from unmask.lab.sweep.trial import Trial

NAMES = {
    "llada-8b-instruct": LLADA,
    "dream-v0-instruct-7b": DREAM,
    "dream-7b-instruct": DREAM,
}
SIZES = {"humaneval": 164, "mbpp": 500, "gsm8k": 1319, "math500": 500}  # the paper's examples
SAME = 0.051  # points: the tables print the same figure with one digit or with two


def counterpart(model: str) -> str | None:
    """The paper's model, if a part of the name or path is exactly the name of its checkpoint."""
    parts = re.split(r"[/\\]|--", model.lower())
    return next((NAMES[part] for part in parts if part in NAMES), None)


def counterpart_of(models: Iterable[str]) -> str | None:
    """The same for weights that were asked for under several names."""
    return next((found for model in sorted(models) if (found := counterpart(model))), None)


def figures(trial: Trial, model: str | None) -> list[Published]:
    """What the paper printed for this trial; several where its tables disagree."""
    if model is None or why_not_the_papers(trial) is not None:
        return []
    found: list[Published] = []
    for each in _index().get((model, trial.task, read(trial.rule).rule, trial.block), []):
        if not any(abs(each.accuracy - known.accuracy) < SAME for known in found):
            found.append(each)
    return found


def why_not_the_papers(trial: Trial) -> str | None:
    """In what a trial differs from the paper's protocol."""
    if trial.task not in LENGTHS:
        return f"{trial.task} is not in the paper"
    usual = {"length": LENGTHS[trial.task], "preset": "paper", "eos": "keep", "cache": "none",
             "temperature": 0.0, "steps": None}  # fmt: skip
    for name, value in usual.items():
        if getattr(trial, name) != value:
            return f"the paper's {name} is {value}, ours {getattr(trial, name)}"
    return None


@cache
def _index() -> dict[tuple[str, str, str, int | None], list[Published]]:
    found: dict[tuple[str, str, str, int | None], list[Published]] = {}
    for each in published():
        rule = read(each.rule).rule
        found.setdefault((each.model, each.task, rule, each.block), []).append(each)
    return found
