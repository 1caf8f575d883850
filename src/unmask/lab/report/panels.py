"""Groups of trials that share a table: same model, same setting, same kind of selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from unmask.decoding.options import EOS_WORDS, OPTIONS
from unmask.lab.paper import TASKS
from unmask.lab.report.rule_parts import FAMILIES, RuleParts, parts_of, rule_of, sortable
from unmask.lab.summary import Summary
from unmask.lab.sweep.trial import Trial
from unmask.rules.registry import show

USUAL = {"eb": "0.1", "threshold": "0.9", "top": "1", "klass": "0.9"}  # the paper's knobs


@dataclass(frozen=True)
class TrialSetting:
    """How a trial decoded, without its task and rule."""

    weights: str
    dtype: str
    block: int | None
    eos: str
    cache: str
    steps: int | None
    temperature: float
    top_p: float
    top_k: int
    seed: int
    decoding: int
    timing: str = ""
    more: tuple[tuple[str, Any], ...] = ()  # all other options that are set, by name

    @classmethod
    def of(cls, trial: Trial) -> TrialSetting:
        named = {
            each.name: getattr(trial, each.name) for each in fields(cls) if each.name != "more"
        }
        others = sorted(OPTIONS.keys() - named.keys() - {"rule", "length"})
        more = ((name, getattr(trial, name)) for name in others)
        return cls(**named, more=tuple(each for each in more if each[1] is not None))

    @property
    def window(self) -> str:
        """In words."""
        return "full window" if self.block is None else f"blocks of {self.block}"

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key: full window first, then blocks from large to small; EOS kept first."""
        block = -(self.block or 10**9)
        policy = (self.eos != "keep", self.eos, self.cache != "none", self.cache)
        return (block, *policy, self.dtype, self.steps or 0, self.temperature, self.top_p,
                self.top_k, self.seed, self.decoding, self.timing, self.more)  # fmt: skip

    def words(self, others: Iterable[TrialSetting] = ()) -> str:
        """The window, and every value that is not the default or differs from the others."""
        settings = list(others)
        varied = {
            field.name
            for field in fields(self)
            if any(getattr(each, field.name) != getattr(self, field.name) for each in settings)
        }
        said = {
            "eos": (self.eos != "keep", EOS_WORDS[self.eos]),
            "cache": (self.cache != "none", f"{self.cache} cache" if self.cache != "none" else ""),
            "dtype": (False, self.dtype),
            "steps": (self.steps is not None, f"{self.steps or 'no limit of'} steps"),
            "temperature": (self.temperature != 0, f"temperature {self.temperature:g}"),
            "top_p": (self.top_p != 1, f"top-p {self.top_p:g}"),
            "top_k": (self.top_k != 0, f"top-k {self.top_k}"),
            "seed": (self.seed != 0, f"seed {self.seed}"),
            "decoding": (False, f"decoding version {self.decoding}"),
            "timing": (bool(self.timing), self._timed(settings)),
            "more": (True, ", ".join(f"{name} {value}" for name, value in self.more)),
        }
        shown = [text for name, (unusual, text) in said.items() if unusual or name in varied]
        return ", ".join(text for text in (self.window, *shown) if text)

    def _timed(self, others: Sequence[TrialSetting]) -> str:
        """Whether the runs were timed; on which machine, where others were timed elsewhere."""
        if not self.timing:
            return ""
        elsewhere = {each.timing for each in others} - {"", self.timing}
        return f"timed: {self.timing}" if elsewhere else "timed"


@dataclass(frozen=True)
class Exam:
    """A task as it is asked. A table has one group of columns for each exam."""

    task: str
    version: int
    preset: str
    length: int

    @classmethod
    def of(cls, trial: Trial) -> Exam:
        return cls(trial.task, trial.version, trial.preset, trial.length)

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key: the paper's tasks first, in the paper's order."""
        place = TASKS.index(self.task) if self.task in TASKS else len(TASKS)
        return (place, self.task, self.version, self.preset, self.length)

    def words(self, others: Iterable[Exam]) -> str:
        """Task and length, with preset and version if they differ among the others."""
        alike = [each for each in others if each.task == self.task]
        text = f"{self.task}, {self.length} tokens"
        if any(each.preset != self.preset for each in alike):
            text += f", {self.preset}"
        if any(each.version != self.version for each in alike):
            text += f", version {self.version}"
        return text


@dataclass(frozen=True)
class TrialPanel:
    """Trials of one model, one setting and one family of selections."""

    setting: TrialSetting
    family: str
    summaries: tuple[Summary, ...]

    @property
    def title(self) -> str:
        return FAMILIES.get(self.family, self.family)

    @property
    def exams(self) -> list[Exam]:
        return exams_of(self.summaries)

    def find(self, rule: str, exam: Exam) -> Summary | None:
        """The trial of a rule on an exam, by the rule's name, or None."""
        for each in self.summaries:
            if Exam.of(each.trial) == exam and rule_of(each).name == rule:
                return each
        return None

    def rules(self) -> list[RuleParts]:
        """The rules of the trials, each once, in the order of a table."""
        unique = {rule_of(each).name: rule_of(each) for each in self.summaries}
        return sorted(unique.values(), key=lambda parts: parts.order)

    def split(self) -> tuple[list[RuleParts], list[RuleParts]]:
        """One rule with the usual knob for each score and lam, and the remaining rules."""
        usual = usual_knobs(self.summaries)
        main: dict[tuple[object, ...], RuleParts] = {}
        rules = self.rules()
        for parts in rules:
            place = (parts.score, parts.kind, parts.lam, parts.variant, parts.version)
            if place not in main or parts.knob == usual[parts.kind]:
                main[place] = parts
        chosen = list(main.values())
        return (
            sorted(chosen, key=lambda parts: parts.order),
            [parts for parts in rules if parts not in chosen],
        )


def unequal(one: Trial, other: Trial) -> list[str]:
    """What differs between the settings and exams of two trials, in words."""
    told = []
    for kind in (TrialSetting, Exam):
        first, second = kind.of(one), kind.of(other)
        for each in fields(kind):
            a, b = getattr(first, each.name), getattr(second, each.name)
            if a != b:
                name = "other options" if each.name == "more" else each.name
                told.append(f"{name} {_shown(name, a)} there, {_shown(name, b)} here")
    return told


def _shown(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{option} {given}" for option, given in value) or "none"
    if name == "block" and value is None:
        return "full"
    return "none" if value in (None, "") else show(value)


def usual_knobs(summaries: Sequence[Summary]) -> dict[str, str]:
    """The knob shown for each kind of selection: the paper's value, else the most common one."""
    counts: dict[str, Counter[str]] = {}
    for each in summaries:
        parts = parts_of(each.trial.rule)
        counts.setdefault(parts.kind, Counter())[parts.knob] += 1
    usual = {}
    for kind, knobs in counts.items():
        most = max(knobs.values())
        common = min((knob for knob in knobs if knobs[knob] == most), key=sortable)
        usual[kind] = USUAL[kind] if USUAL.get(kind) in knobs else common
    return usual


def exams_of(summaries: Iterable[Summary]) -> list[Exam]:
    """The exams of some trials, in the order of the report."""
    return sorted({Exam.of(each.trial) for each in summaries}, key=lambda exam: exam.order)


def settings_of(summaries: Iterable[Summary], weights: str) -> list[TrialSetting]:
    """The settings of a model, in the order of the report."""
    settings = {TrialSetting.of(each.trial) for each in summaries if each.trial.weights == weights}
    return sorted(settings, key=lambda setting: setting.order)


def panels(summaries: Sequence[Summary], weights: str) -> list[TrialPanel]:
    """The panels of a model, in the order of the report."""
    groups: dict[tuple[TrialSetting, str], list[Summary]] = {}
    for each in summaries:
        if each.trial.weights == weights:
            family = parts_of(each.trial.rule).family
            groups.setdefault((TrialSetting.of(each.trial), family), []).append(each)
    rank = {family: place for place, family in enumerate(FAMILIES) if family}
    ranked = sorted(groups, key=lambda key: (key[0].order, rank.get(key[1], len(rank)), key[1]))
    return [
        TrialPanel(setting, family, tuple(groups[setting, family])) for setting, family in ranked
    ]
