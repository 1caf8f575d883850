"""Tables of trials in plain text, which `unmask eval` and `unmask sweep` print at the end."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from unmask.decoding.options import OPTIONS
from unmask.lab.report.wording import (
    clean,
    counted,
    gigabytes,
    number,
    percent,
    seconds,
    share,
    span,
)
from unmask.lab.summary import Summary
from unmask.lab.sweep.store import Store
from unmask.lab.sweep.trial import Trial

WIDTH = 120
HEADS = {
    "task": "task",
    "rule": "rule",
    "window": "block",
    "eos": "EOS",
    "also": "also",
    "n": "n",
    "acc": "acc % [95%]",
    "compat": "compat",
    "nfe": "NFE",
    "nfe_eos": "to EOS",
    "rate": "tok/f",
    "eos_share": "EOS%",
    "seconds": "s model+rule",  # of an example
}
LEAST = 20  # columns for a rule; if fewer are left, rules stand on lines of their own
# What the column `also` may hold: all but what has a column of its own.
VARIED = (
    *("length", "preset", "version"),
    *(name for name in OPTIONS if name not in ("rule", "length", "block", "eos")),
    *("decoding", "timing"),
)
# columns that are aligned left, and the spaces behind them
WORDS = {"task": 2, "rule": 2, "window": 1, "eos": 1, "also": 1}


def plain_table(store_file: Path, trials: list[Trial]) -> list[str]:
    """One line per trial, at most 120 characters wide; columns that are empty are left out."""
    rows: list[dict[str, str]] = []
    with Store(store_file, create=False) as store:
        for trial in trials:
            stored = store.rows(trial)
            if any(row.grade is not None for row in stored):
                rows.append(_row(Summary.of(trial, stored), trials))
            else:
                rows.append(
                    _bare(trial, trials)
                    | {"acc": f"none graded of {counted(len(stored), 'answer')}"}
                )
    models = list(dict.fromkeys(trial.model for trial in trials))
    if len(models) < 2:
        return _aligned(rows)
    lines = []
    for model in models:
        mine = [row for row, trial in zip(rows, trials, strict=True) if trial.model == model]
        lines += ["", clean(model)[:WIDTH], *_aligned(mine)]
    return lines[1:]


def efficiency_table(store_file: Path, trial: Trial) -> list[str]:
    """Time and memory of an example, in the columns of the paper's efficiency table."""
    with Store(store_file, create=False) as store:
        rows = store.rows(trial)
    if not any(row.grade is not None for row in rows):
        return []
    summary = Summary.of(trial, rows)
    total, (mean, peak) = summary.seconds("total"), summary.memory
    figures = {
        "NFE": number(summary.mean("nfe")),
        "model s": seconds(summary.seconds("model")),
        "decision s": seconds(summary.seconds("decision")),
        "of it KL s": seconds(summary.seconds("kl")),
        "total s": seconds(total),
        "KL %": share(summary.seconds("kl"), total),
        "memory GB, mean": gigabytes(mean),
        "peak": gigabytes(peak),
    }
    widths = {name: max(len(name), len(text)) for name, text in figures.items()}
    lines = (figures.keys(), figures.values())
    return [
        "  ".join(text.rjust(width) for text, width in zip(line, widths.values(), strict=True))
        for line in lines
    ]


def _bare(trial: Trial, trials: Sequence[Trial]) -> dict[str, str]:
    """The settings of a trial; `also` holds others that vary among the trials of its task."""
    alike = [each for each in trials if (each.model, each.task) == (trial.model, trial.task)]
    varied = [
        name for name in VARIED if any(getattr(e, name) != getattr(trial, name) for e in alike)
    ]
    return {
        "task": clean(trial.task),
        "rule": clean(trial.rule).replace(" | ", "|"),
        "window": "full" if trial.block is None else str(trial.block),
        "eos": "" if trial.eos == "keep" else trial.eos,
        "also": clean(" ".join(f"{name}={getattr(trial, name)}" for name in varied)),
    }


def _row(summary: Summary, trials: Sequence[Trial]) -> dict[str, str]:
    compat = percent(summary.accuracy("acc_compat"))
    acc = percent(summary.accuracy())
    model, decision = (_short(summary.mean(f"seconds_{name}")) for name in ("model", "decision"))
    return _bare(summary.trial, trials) | {
        "n": str(summary.count),
        "acc": f"{acc} {span(summary.interval()).replace(', ', ',')}",
        "compat": "" if compat == acc else compat,
        "nfe": number(summary.mean("nfe")),
        "nfe_eos": number(summary.mean("nfe_eos")),
        "rate": number(summary.rates["effective"], 2),
        "eos_share": f"{100 * summary.mean('eos_share'):.0f}",
        "seconds": f"{model}+{decision}",
    }


def _aligned(rows: Sequence[dict[str, str]]) -> list[str]:
    if not rows:
        return []
    names = [name for name in HEADS if any(row.get(name) for row in rows)]
    widths = {
        name: max(len(HEADS[name]), *(len(row.get(name, "")) for row in rows)) for name in names
    }
    room = WIDTH - sum(WORDS.get(name, 1) + widths[name] for name in names) + widths["rule"]
    widths["rule"] = min(widths["rule"], room)
    if room < LEAST:
        names = [name for name in names if name not in WORDS]
    lines = [_line(HEADS, names, widths)]
    for row in rows:
        if len(row["rule"]) > widths["rule"]:  # the rule goes on a line of its own
            words = "  ".join(row[name] for name in WORDS if row[name])
            lines += textwrap.wrap(words, WIDTH, subsequent_indent="  ")
            row = {name: "" if name in WORDS else text for name, text in row.items()}
        lines.append(_line(row, names, widths))
    return lines


def _line(row: dict[str, str], names: Sequence[str], widths: dict[str, int]) -> str:
    line = ""
    for name in names:
        text = row.get(name, "")
        width = widths[name]
        line += text.ljust(width + WORDS[name]) if name in WORDS else text.rjust(width) + " "
    return line.rstrip()


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 1 else f"{value:.1f}"
