"""Names of trials: two trials of one listing never look alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unmask.lab.report.panels import Exam, TrialSetting
from unmask.lab.sweep.trial import Trial


def names_of(trials: Sequence[Trial]) -> dict[str, str]:
    """Each trial in one line, by its key: task, length, rule, window, and what else is not usual.

    An option that differs among the trials is named in each of them.
    """
    exams = {Exam.of(trial) for trial in trials}
    settings = {_setting(trial) for trial in trials}
    several = len({trial.model for trial in trials}) > 1
    names = {}
    for trial in trials:
        words = [trial.rule, *([trial.model] if several else [])]
        words += [_setting(trial).words(settings), *(["timed"] if trial.timing else [])]
        names[trial.key] = f"{Exam.of(trial).words(exams)}: {', '.join(words)}"
    return names


def _setting(trial: Trial) -> TrialSetting:
    """Without the conditions of a timed run, which all timed trials of a run share."""
    return replace(TrialSetting.of(trial), timing="")
