"""All figures of a report: what the sections show and report.json holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from unmask.lab.paper import Published, inconsistencies
from unmask.lab.report.aup_curves import Contest, contests
from unmask.lab.report.gather import Results
from unmask.lab.report.pairs import Comparisons, compare
from unmask.lab.report.panels import Exam, TrialSetting, exams_of, settings_of
from unmask.lab.report.paper_columns import counterpart_of, figures, readings
from unmask.lab.report.rule_parts import rule_of
from unmask.lab.report.versions import newest, with_versions
from unmask.lab.summary import Summary
from unmask.lab.sweep.trial import Trial

FORMAT = 1


@dataclass(frozen=True)
class ReportedModel:
    """Weights, the names that trials used for them, and the same model in the paper."""

    weights: str
    names: tuple[str, ...]
    counterpart: str | None

    @property
    def title(self) -> str:
        return self.names[0]


@dataclass(frozen=True)
class Findings:
    """The results of a store, their comparisons and their AUP curves."""

    results: Results
    comparisons: Comparisons
    contests: tuple[Contest, ...]
    current: tuple[Summary, ...]  # of each rule the newest complete version

    @classmethod
    def of(cls, results: Results, baseline: str | None = None) -> Findings:
        """Compare the trials of a store with a baseline (default: see `compare`)."""
        summaries = with_versions(results.summaries)
        current = newest(summaries, {each.trial.key for each in results.incomplete})
        shown = {each.trial.key for each in current}
        older = [each for each in summaries if each.trial.key not in shown]
        comparisons = compare(current, baseline, older)
        named = replace(results, summaries=summaries)
        return cls(named, comparisons, tuple(contests(current)), current)

    @property
    def summaries(self) -> tuple[Summary, ...]:
        return self.results.summaries

    @cached_property
    def models(self) -> list[ReportedModel]:
        """The models of the store, sorted by name."""
        names: dict[str, set[str]] = {}
        for trial in self.results.trials:
            names.setdefault(trial.weights, set()).add(trial.model)
        models = [
            ReportedModel(weights, tuple(sorted(each)), counterpart_of(each))
            for weights, each in names.items()
        ]
        return sorted(models, key=lambda model: (model.names, model.weights))

    @cached_property
    def exams(self) -> list[Exam]:
        return exams_of(self.summaries)

    @cached_property
    def settings(self) -> dict[str, list[TrialSetting]]:
        """The settings of every model, by its weights."""
        return {model.weights: settings_of(self.summaries, model.weights) for model in self.models}

    @cached_property
    def shown(self) -> frozenset[str]:
        """The keys of the trials in the tables; the others are older versions."""
        return frozenset(each.trial.key for each in self.current)

    @cached_property
    def _names(self) -> dict[str, str]:
        return {each.trial.key: rule_of(each).name for each in self.summaries}

    def name(self, trial: Trial) -> str:
        """The rule of a trial, with its version where there are several."""
        return self._names.get(trial.key, trial.rule)

    def where(self, trial: Trial) -> str:
        """A trial's setting in words, as far as it differs from the model's other settings."""
        return TrialSetting.of(trial).words(self.settings[trial.weights])

    def model_of(self, trial: Trial) -> ReportedModel:
        return next(model for model in self.models if model.weights == trial.weights)

    def whose(self, trial: Trial) -> str:
        """The model's name and a colon if the report has several models, else nothing."""
        return f"{trial.model}: " if len(self.models) > 1 else ""

    def paper(self, trial: Trial) -> list[Published]:
        """The paper's figures for a trial."""
        return figures(trial, self.model_of(trial).counterpart)

    @cached_property
    def shows_paper(self) -> bool:
        """Whether the report shows any figure of the paper."""
        return any(self.paper(trial) for trial in self.results.trials)

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "report": FORMAT,
            "store": self.results.name,
            "baseline": self.comparisons.baseline,
            "models": [vars(model) for model in self.models],
            "tasks": list(self.results.tasks),
            "machines": [vars(machine) for machine in self.results.machines],
            "incomplete": [
                {**vars(each), "trial": each.trial.record(), "key": each.trial.key}
                for each in self.results.incomplete
            ],
            "trials": [self._trial_record(each) for each in self.summaries],
            "comparisons": [pair.record() for pair in self.comparisons.made.values()],
            "eos_comparisons": [pair.record() for pair in self.comparisons.eos.values()],
            "stars": self.comparisons.stars,
            "not_compared": [
                {"trial": key, "reason": reason}
                for key, reason in (
                    *self.comparisons.refused.items(),
                    *self.comparisons.eos_refused.items(),
                )
            ],
            "aup": [scored.record() for contest in self.contests for scored in contest.scored],
            "aup_left_out": [text for contest in self.contests for text in contest.left_out],
            "paper_inconsistencies": inconsistencies() if self.shows_paper else [],
        }

    def _trial_record(self, summary: Summary) -> dict[str, Any]:
        paper = [
            {
                "table": each.table,
                "acc": each.accuracy,
                "nfe": each.nfe,
                "remarks": [*each.remarks, *readings(summary.trial.rule)],
            }
            for each in self.paper(summary.trial)
        ]
        return {
            "name": self.name(summary.trial),
            "shown": summary.trial.key in self.shown,
            **summary.record(),
            "machines": self.results.machines_of(summary),
            "graders": sorted({row.grader or "" for row in summary.rows}),
            "paper": paper,
        }
