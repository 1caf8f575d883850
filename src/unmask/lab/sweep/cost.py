"""Estimate the forwards and the time of a sweep before it starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from unmask.decoding.resolve import resolve
from unmask.lab.benchmarks import benchmark
from unmask.lab.paper import LLADA
from unmask.lab.report.paper_columns import counterpart, figures
from unmask.lab.report.wording import counted
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.naming import names_of
from unmask.lab.sweep.plan import Work, plan, preset_of, trial_of
from unmask.lab.sweep.run_options import RunOptions
from unmask.lab.sweep.store import Store
from unmask.lab.sweep.trial import Trial
from unmask.lab.sweep.trial_run import TrialPace, TrialRuns
from unmask.models.denoiser import ModelSpec
from unmask.models.load import is_downloaded, usable_device

# The paper's pace on an A100 (its efficiency table): seconds a forward of LLaDA-8B at a length.
PACE = {256: 0.075, 512: 0.110}


@dataclass(frozen=True)
class Cost:
    """What is left of a trial, and what an example of it costs."""

    trial: Trial
    left: int  # examples
    forwards: float  # of an example
    source: str  # of the forwards
    pace: float | None  # seconds of a forward here; None if the model is not here

    @property
    def seconds(self) -> float | None:
        return None if self.pace is None else self.left * self.forwards * self.pace


def dry_run(settings: Iterable[Setting], options: RunOptions, timing: str = "") -> Iterator[str]:
    """The cost of a sweep in lines; it downloads no model."""
    every = list(settings)
    here = {model: is_downloaded(model) for model in dict.fromkeys(each.model for each in every)}
    near = [setting for setting in every if here[setting.model]]
    far = [setting for setting in every if not here[setting.model]]
    device = options.devices[0] if options.devices else str(usable_device())
    costs = _tried(plan(near, options.data, timing), options, device) if near else []
    costs += {each.trial.key: each for each in _untried(far, options.data)}.values()
    yield from _table(costs)
    yield from _sums(costs, f"{device}, batch size {options.batch_size}, one worker")
    for model in dict.fromkeys(each.trial.model for each in costs if each.seconds is None):
        why = f"is too large for the memory of {device}" if here[model] else "is not downloaded"
        yield f"{model} {why}, so there was no trial run of it"


def _tried(works: Sequence[Work], options: RunOptions, device: str) -> list[Cost]:
    """The costs of trials whose model is here, by a short trial run of each."""
    runs = TrialRuns(len(works), device, options.batch_size)
    store = Store(options.store) if options.store.is_file() else None
    costs = []
    for work in works:
        left = len(work.asks if store is None else store.missing(work.trial, work.asks))
        rows = [] if store is None else store.rows(work.trial)
        pace = runs.of(work) if left else None
        measured = fmean(row.answer["nfe"] for row in rows) if rows else None
        forwards, source = forwards_of(work.trial, measured, pace)
        seconds = pace.seconds if pace else None if left else 0.0
        costs.append(Cost(work.trial, left, forwards, source, seconds))
    if store is not None:
        store.close()
    return costs


def _untried(settings: Sequence[Setting], data: Path | None) -> Iterator[Cost]:
    """The costs of trials whose model is not here."""
    counts = {task: len(benchmark(task).load(data)) for task in {each.task for each in settings}}
    for setting in settings:
        preset = preset_of(setting, "dream" if "dream" in setting.model.lower() else "")
        spec = ModelSpec(0, 2, name=setting.model)
        resolved = resolve(setting.options, spec, preset.decoding)
        trial = trial_of(setting, preset, resolved, weights=setting.model)
        count = min(counts[setting.task], setting.limit or counts[setting.task])
        yield Cost(trial, count, *forwards_of(trial), None)


def forwards_of(
    trial: Trial, measured: float | None = None, pace: TrialPace | None = None
) -> tuple[float, str]:
    """Forwards per example, and the source of the number.

    The paper's are those of the same model, task, length, window and protocol.
    """
    if measured is not None:
        return measured, "the store"
    for figure in figures(trial, counterpart(trial.model)):
        if figure.forwards is not None:
            return figure.forwards, "the paper"
    if pace is not None and pace.forwards is not None:
        return pace.forwards, "trial run"
    return float(trial.steps or trial.length), "at most"


def _table(costs: Sequence[Cost]) -> Iterator[str]:
    """One line per trial."""
    names = names_of([cost.trial for cost in costs])
    examples = counted(sum(cost.left for cost in costs), "example")
    yield f"{counted(len(costs), 'trial')}, {examples} left"
    yield ""
    yield f"{'left':>6}{'forwards':>10}  {'from':<10}{'time':>9}  trial"
    for cost in costs:
        time = "?" if cost.seconds is None else duration(cost.seconds)
        name = names[cost.trial.key]
        yield f"{cost.left:>6}{cost.forwards:>10.1f}  {cost.source:<10}{time:>9}  {name}"
    yield ""


def _sums(costs: Sequence[Cost], conditions: str) -> Iterator[str]:
    forwards = sum(cost.left * cost.forwards for cost in costs)
    about = "at most" if any(each.left and each.source == "at most" for each in costs) else "about"
    yield f"{about} {forwards:,.0f} forwards left"
    known = [cost.seconds for cost in costs if cost.seconds is not None]
    if known:
        yield (
            f"{about} {duration(sum(known))} on this machine ({conditions}), by short trial runs; "
            "loading and grading are extra"
        )
    papers = [cost for cost in costs if cost.seconds is None and counterpart(cost.trial.model)]
    if papers:
        seconds = sum(
            cost.left * cost.forwards * _papers_pace(cost.trial.length) for cost in papers
        )
        yield (
            f"about {duration(seconds)} for {counted(len(papers), 'trial')} on one A100, at the "
            f"paper's pace of {LLADA} ({PACE[256] * 1000:g} ms a forward at 256 tokens, "
            f"{PACE[512] * 1000:g} ms at 512, batch size 1)"
        )


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them: 12 s, 3.5 min, 40.0 h."""
    if seconds < 99.5:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 99.5 * 60 else f"{seconds / 3600:.1f} h"


def _papers_pace(length: int) -> float:
    """Seconds per forward, interpolated between the paper's two lengths."""
    (short, quick), (long, slow) = PACE.items()
    return max(quick + (length - short) * (slow - quick) / (long - short), 0.04)
