"""Estimate the forwards and hours of a sweep before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from unmask.lab.report.paper_columns import counterpart, figures
from unmask.lab.sweep.plan import Work
from unmask.lab.sweep.store import Store, StoredExample
from unmask.lab.sweep.trial import Trial

# The paper's pace on an A100 (its efficiency table): seconds a forward of LLaDA-8B at a length.
PACE = {256: 0.075, 512: 0.110}


def estimate(works: Sequence[Work], file: Path) -> list[str]:
    """One line per trial, and the sum; forwards come from the store, the paper or the length."""
    store = Store(file) if file.is_file() else None
    lines = [f"{len(works)} trials, {sum(len(work.asks) for work in works)} examples", ""]
    lines.append(f"{'task':<14}{'left':>6}{'forwards':>10}  {'from':<10}{'A100-hours':>10}  rule")
    models = {work.trial.model for work in works}
    forwards = hours = seconds = 0.0
    begun = 0
    for work in works:
        left = len(work.asks if store is None else store.missing(work.trial, work.asks))
        rows = [] if store is None else store.rows(work.trial)
        if rows:
            begun += 1
            seconds += left * fmean(row.answer["seconds_total"] for row in rows)
        each, source = _forwards(work.trial, rows)
        spent = left * each * _pace(work.trial.length) / 3600
        forwards, hours = forwards + left * each, hours + spent
        lines.append(
            f"{work.trial.task:<14}{left:>6}{each:>10.1f}  {source:<10}{spent:>10.2f}  "
            f"{_setting(work.trial, models)}"
        )
    lines += [
        "",
        f"about {forwards:,.0f} forwards left; {hours:.1f} hours on one A100 at the paper's pace "
        "for an 8B model (75 ms at 256 tokens, 110 ms at 512), batch size 1",
    ]
    if begun:
        lines.append(
            f"{seconds / 3600:.2f} hours by the pace of the {begun} trials that have begun, "
            "for one worker"
        )
    if store is not None:
        store.close()
    return lines


def _setting(trial: Trial, models: set[str]) -> str:
    """The rule and what else tells a trial apart."""
    named = [trial.model] if len(models) > 1 else []
    policy = [] if trial.eos == "keep" else [f"EOS {trial.eos}"]
    return ", ".join([trial.rule, *named, trial.window, f"{trial.length} tokens", *policy])


def _forwards(trial: Trial, rows: Sequence[StoredExample]) -> tuple[float, str]:
    """Forwards per example, and the source of the number.

    The paper's are those of the same model, task, length, window and protocol.
    """
    if rows:
        return fmean(row.answer["nfe"] for row in rows), "measured"
    for figure in figures(trial, counterpart(trial.model)):
        if figure.forwards is not None:
            return figure.forwards, "the paper"
    return float(trial.steps or trial.length), "at most"


def _pace(length: int) -> float:
    """Seconds per forward, interpolated between the paper's two lengths."""
    (short, quick), (long, slow) = PACE.items()
    return max(quick + (length - short) * (slow - quick) / (long - short), 0.04)
