"""One task under many rules with and without SWD: the tables of `unmask demo`, and their JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unmask.decoding.options import EOS_WORDS
from unmask.lab.figures.plots import PlotCurve
from unmask.lab.grading import Tools
from unmask.lab.report.aup_curves import curves_of
from unmask.lab.report.overview import point_of
from unmask.lab.report.panels import panels
from unmask.lab.report.rule_parts import RuleParts, parts_of
from unmask.lab.stats import Paired, starred
from unmask.lab.summary import Comparison, Summary
from unmask.lab.sweep.plan import Work
from unmask.lab.sweep.run import run, summaries
from unmask.lab.sweep.run_options import ProgressListener, RunOptions


def measured(works: Sequence[Work], progress: ProgressListener) -> list[Summary]:
    """Decode and grade all trials on all cores, in a store that is deleted afterwards."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with TemporaryDirectory() as folder, Tools() as tools:
        file = Path(folder) / "store.sqlite"
        run(works, RunOptions(file, ("cpu",) * (cores or 1), memo=True), tools, progress)
        return summaries(file, works)


class LamTable:
    """Trials of one model on one task; each SWD trial is compared with the same at lam 0."""

    def __init__(self, summaries: Sequence[Summary]) -> None:
        self.summaries = summaries
        self._by_key = {_key(each, _parts(each).lam): each for each in summaries}

    @property
    def usual(self) -> list[Summary]:
        """Trials with the usual knob of their selection, by window, EOS policy, rule and lam."""
        members = panels(self.summaries, self.summaries[0].trial.weights)
        rules = ((panel, parts) for panel in members for parts in panel.split()[0])
        trials = (panel.find(parts.rule, panel.exams[0]) for panel, parts in rules)
        return [each for each in trials if each is not None]

    def gain(self, summary: Summary) -> Paired:
        """How a trial differs from the same at lam 0, over the same examples."""
        return Comparison(self._by_key[_key(summary, 0.0)], summary).accuracy()

    @cached_property
    def compared(self) -> list[tuple[Summary, Paired]]:
        """The trials of the tables with SWD, each with its gain."""
        return [(each, self.gain(each)) for each in self.usual if _parts(each).lam]

    @cached_property
    def stars(self) -> set[str]:
        """The keys of the trials whose gain or loss has a star among all that are compared."""
        marks = starred([gain.p for _, gain in self.compared])
        pairs = zip(self.compared, marks, strict=True)
        return {each.trial.key for (each, _), has_star in pairs if has_star}

    def lines(self) -> list[str]:
        """A table for each window and EOS policy: a line per rule, a column per lam."""
        lines = []
        for (window, policy), group in groupby(self.usual, key=_panel):
            members = list(group)
            lams = dict.fromkeys(_parts(each).lam for each in members)
            heads = "".join(f"{f'lam {lam:g}':<{_width(lam)}}" for lam in lams)
            lines += ["", f"{window}, {policy}", f"{'':<24}{heads.rstrip()}"]
            for _, row in groupby(members, key=lambda each: _parts(each).base):
                lines.append(self._line(list(row)))
        return lines[1:]

    def _line(self, row: Sequence[Summary]) -> str:
        first = _parts(row[0])
        text = f"{first.score:<11} {_selection(first):<12}"
        for each in row:
            lam, effective = _parts(each).lam, each.rates["effective_of_sums"]
            part = f"{100 * each.accuracy():5.1f} @{each.mean('nfe'):5.1f} {effective:5.2f}"
            if lam:
                part += f"  {difference(self.gain(each), each.trial.key in self.stars)}"
            text += f"{part:<{_width(lam)}}"
        return text.rstrip()

    def reading(self) -> list[str]:
        """A sentence for each window and EOS policy: how often SWD gains, loses and costs less."""
        sentences = []
        for (window, policy), group in groupby(self.compared, key=lambda pair: _panel(pair[0])):
            pairs = list(group)
            starry = [pair for pair in pairs if pair[0].trial.key in self.stars]
            gains = sum(gain.difference > 0 for _, gain in starry)
            base = [self._by_key[_key(each, 0.0)] for each, _ in pairs]
            dearer = sum(
                each.mean("nfe") > other.mean("nfe")
                for (each, _), other in zip(pairs, base, strict=True)
            )
            sentences.append(
                f"{window}, {policy}: of {len(pairs)} settings with SWD, {gains} solve more than "
                f"lam 0 (with a star), {len(starry) - gains} solve less, {dearer} need more "
                "forwards."
            )
        return sentences

    def losses(self) -> list[tuple[Summary, Paired]]:
        """Where SWD is worse than lam 0 by more than chance: the losses with a star."""
        starry = (pair for pair in self.compared if pair[0].trial.key in self.stars)
        return [(each, gain) for each, gain in starry if gain.difference < 0]

    def at_equal_cost(self, summary: Summary) -> tuple[Summary, Paired] | None:
        """The best lam 0 trial that spends as many forwards or more, and the gain over it.

        All trials of the same window, EOS policy, score and kind of selection compete.
        """
        rivals = [
            other
            for other in self.summaries
            if _field(other) == _field(summary)
            and not _parts(other).lam
            and other.mean("nfe") >= summary.mean("nfe")
        ]
        best = max(rivals, key=lambda each: (each.accuracy(), -each.mean("nfe")), default=None)
        return None if best is None else (best, Comparison(best, summary).accuracy())

    def swept(self) -> list[tuple[str, tuple[Summary, ...]]]:
        """Methods of which several knobs were run, with their trials in the order of the knob."""
        swept = []
        for curve in curves_of(self.summaries)[0]:
            trial = curve.summaries[0].trial
            words = [f"lam {parts_of(trial.rule).lam:g}"]
            words += [] if trial.block is None else [trial.window]
            words += [] if trial.eos == "keep" else [EOS_WORDS[trial.eos]]
            swept.append((", ".join(words), curve.summaries))
        return swept

    def curves(self) -> list[PlotCurve]:
        """Accuracy against forwards, a curve per method of which several knobs were run."""
        return [
            PlotCurve(label, tuple(map(point_of, members)), baseline=not _parts(members[0]).lam)
            for label, members in self.swept()
        ]

    def record(self) -> dict[str, Any]:
        """For JSON."""
        trial = self.summaries[0].trial
        count = self.summaries[0].count
        return {
            "series": {"task": trial.task, "count": count, "length": trial.length},
            "cells": [_record(each) for each in self.summaries],
        }


def difference(pair: Paired, has_star: bool) -> str:
    """A paired difference in points with its interval, and a star."""
    low, high = pair.interval
    mark = "*" if has_star else " "
    return f"{100 * pair.difference:+5.1f} [{100 * low:+5.1f}, {100 * high:+5.1f}]{mark}"


def _record(each: Summary) -> dict[str, Any]:
    """For JSON; `solved` has a 0 or 1 for each problem, so that any pair can be compared."""
    parts, (low, high) = _parts(each), each.interval()
    by_number = sorted(
        zip(each.rows, each.solved(), strict=True),
        key=lambda pair: int(pair[0].ask.example.rpartition("/")[2]),
    )
    return {
        "score": parts.score,
        "lam": parts.lam,
        "selection": _selection(parts),
        "block": each.trial.block,
        "eos": each.trial.eos,
        "rule": each.trial.rule,
        "accuracy": round(each.accuracy(), 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "nfe": round(each.mean("nfe"), 3),
        "nfe_eos": round(each.mean("nfe_eos"), 3),
        "tokens": round(each.mean("tokens"), 3),
        "tokens_per_forward": round(each.rates["nominal_of_sums"], 3),
        "effective_tokens_per_forward": round(each.rates["effective_of_sums"], 3),
        "solved": "".join(str(int(solved)) for _, solved in by_number),
    }


def _parts(each: Summary) -> RuleParts:
    return parts_of(each.trial.rule)


def _selection(parts: RuleParts) -> str:
    """Without the threshold, whose unit depends on the score."""
    return parts.kind if parts.kind == "threshold" else parts.selection


def _key(each: Summary, lam: float) -> tuple[object, ...]:
    return each.trial.block, each.trial.eos, _parts(each).base, lam


def _panel(each: Summary) -> tuple[str, str]:
    return each.trial.window, EOS_WORDS[each.trial.eos]


def _field(each: Summary) -> tuple[object, ...]:
    parts = _parts(each)
    return each.trial.block, each.trial.eos, parts.score, parts.kind


def _width(lam: float) -> int:
    return 46 if lam else 20
