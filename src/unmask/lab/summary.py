"""Numbers of one trial, and the comparison of two trials on the same examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from unmask.errors import LabError
from unmask.lab.stats import Interval, Mean, Paired, bootstrap_mean, paired, wilson
from unmask.lab.sweep.store import StoredExample
from unmask.lab.sweep.trial import Trial

# the counters of tokens and forwards of each rate
COUNTERS = {"nominal": ("written", "nfe"), "effective": ("tokens", "nfe_eos")}


@dataclass(frozen=True)
class Summary:
    """A trial and its graded examples."""

    trial: Trial
    rows: tuple[StoredExample, ...]
    version: str = ""  # of the user's parts of its rule, where a report holds several

    @classmethod
    def of(cls, trial: Trial, rows: Iterable[StoredExample]) -> Summary:
        """The summary of a trial; examples without a grade are left out."""
        graded = tuple(row for row in rows if row.grade is not None)
        if not graded:
            raise LabError(f"no graded example of {trial.task} with {trial.rule}")
        return cls(trial, graded)

    @property
    def count(self) -> int:
        return len(self.rows)

    def solved(self, rule: str = "acc") -> list[bool]:
        """Whether each example is solved, sorted by name; the rule is `acc` or `acc_compat`."""
        return [bool(row.grade[rule]) for row in self.rows if row.grade is not None]

    def accuracy(self, rule: str = "acc") -> float:
        return fmean(self.solved(rule))

    def interval(self, rule: str = "acc") -> Interval:
        return wilson(sum(self.solved(rule)), self.count)

    def values(self, name: str) -> list[float]:
        """A counter of every example, such as nfe."""
        return [float(row.answer[name]) for row in self.rows]

    def mean(self, name: str) -> float:
        return fmean(self.values(name))

    def seconds(self, name: str) -> float | None:
        """Mean seconds per example: model, decision, kl or total; None if some were not timed."""
        counter = f"seconds_{name}"
        return self.mean(counter) if all(counter in row.answer for row in self.rows) else None

    @property
    def memory(self) -> tuple[float, float]:
        """Mean and peak, in bytes."""
        return self.mean("memory_mean"), max(self.values("memory_peak"))

    @cached_property
    def rates(self) -> dict[str, float]:
        """Tokens per forward, nominal and effective: mean of ratios, and ratio of sums."""
        rates = {}
        for name, (tokens, forwards) in COUNTERS.items():
            rates[name] = fmean(self.ratios(name))
            rates[f"{name}_of_sums"] = sum(self.values(tokens)) / sum(self.values(forwards))
        return rates

    def ratios(self, name: str) -> list[float]:
        """Tokens per forward of every example, nominal or effective."""
        tokens, forwards = (self.values(counter) for counter in COUNTERS[name])
        return [a / b for a, b in zip(tokens, forwards, strict=True)]

    def record(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return {
            "trial": self.trial.record(),
            "key": self.trial.key,
            "examples": self.count,
            "acc": self.accuracy(),
            "acc_interval": list(self.interval()),
            "acc_compat": self.accuracy("acc_compat"),
            "acc_compat_interval": list(self.interval("acc_compat")),
            "nfe": self.mean("nfe"),
            "nfe_eos": self.mean("nfe_eos"),
            "tokens": self.mean("tokens"),
            "tokens_per_forward": self.rates,
            "eos_share": self.mean("eos_share"),
            "cut_off": self.mean("cut_off"),
            "seconds": {name: self.seconds(name) for name in ("model", "decision", "kl", "total")},
            "memory": dict(zip(("mean", "peak"), self.memory, strict=True)),
        }


@dataclass(frozen=True)
class Comparison:
    """The second trial against the first, example by example."""

    first: Summary
    second: Summary

    def __post_init__(self) -> None:
        reason = why_not(self.first, self.second)
        if reason is not None:
            raise LabError(f"these trials cannot be compared: {reason}")

    def accuracy(self, rule: str = "acc") -> Paired:
        return paired(self.first.solved(rule), self.second.solved(rule))

    def forwards(self, name: str = "nfe") -> Mean:
        """How many more forwards the second trial spends per example."""
        pairs = zip(self.first.values(name), self.second.values(name), strict=True)
        return bootstrap_mean([b - a for a, b in pairs])


def why_not(first: Summary, second: Summary) -> str | None:
    """The reason why two trials cannot be compared, or None."""
    one, other = first.trial, second.trial
    for each in (first, second):
        names = [row.ask.example for row in each.rows]
        if len(set(names)) < len(names):
            return f"{each.trial.rule} answered some examples under two wordings of the prompt"
    for name in ("task", "version", "length"):
        a, b = getattr(one, name), getattr(other, name)
        if a != b:
            return f"the {name} is {a} in one and {b} in the other"
    asked: Sequence[dict[str, str]] = [
        {row.ask.example: row.ask.asked for row in each.rows} for each in (first, second)
    ]
    if asked[0].keys() != asked[1].keys():
        only = sorted(asked[0].keys() ^ asked[1].keys())
        return f"{len(only)} examples, such as {only[0]}, were decoded in one of them only"
    for name in asked[0]:
        if asked[0][name] != asked[1][name]:
            return (
                f"the prompt of {name} differs (presets {one.preset} and {other.preset}); decode "
                "both with the same preset and data"
            )
    if {row.grader for row in first.rows} != {row.grader for row in second.rows}:
        return "they were graded by different versions of the grader; grade them again"
    return None
