"""Tables of every trial: its counters, its time and its memory."""

from __future__ import annotations

from dataclasses import replace

from unmask.lab.paper import LLADA, efficiency
from unmask.lab.report.blocks import Block, ReportTable, Section, TableCell, Text, cells, columns
from unmask.lab.report.findings import Findings, ReportedModel
from unmask.lab.report.panels import Exam, TrialSetting
from unmask.lab.report.rule_parts import rule_of
from unmask.lab.report.wording import gigabytes, number, percent, seconds, share, span
from unmask.lab.summary import Summary

SHARES = (
    "Seconds are per example. An example of a batch counts its share of every forward that it took "
    "part in. Decision seconds are all time outside the model's forward: reductions, KL, ranking "
    "and bookkeeping. KL seconds are the extra time of a pass over the logits that computes a KL. "
    "Memory is that of the graphics card if one was used, else that of the process."
)
UNTIMED = (
    "These runs were not timed: the batch size, the machine and what else it did may differ "
    "between rows and within one. `unmask sweep --timed` measures time."
)
PAPERS = "The paper's KL time is the divergence alone. Its hardware and batch size may differ."


def every_trial(findings: Findings) -> Section:
    """All counters: a table for each model and task."""
    tables: list[Block] = []
    for model, exam, members in _groups(findings):
        rows = [(_head(each, findings), *_counters(each)) for each in members]
        names = ("rule", "n", "acc %", "compat %", "NFE", "NFE to EOS", "tokens / forward, nominal",
                 "effective", "tokens", "EOS %", "cut off %")  # fmt: skip
        tables.append(ReportTable(_caption(findings, model, exam), columns(*names), tuple(rows)))
    return Section("Every trial", tuple(tables))


def costs(findings: Findings) -> Section:
    """Time and memory, with the paper's efficiency table beside the same task."""
    tables: list[Block] = [Text(SHARES)]
    several = len(findings.results.machines) > 1
    names = ["rule", "NFE", "model s", "decision s", "KL s", "total s", "decision %", "KL %",
             "memory GB, mean", "peak"] + ["machine"] * several  # fmt: skip
    for model, exam, members in _groups(findings):
        for timing in sorted({each.trial.timing for each in members}, key=_timed_first):
            rows = []
            for each in (each for each in members if each.trial.timing == timing):
                machine = (TableCell(findings.results.machines_of(each)),) if several else ()
                where = findings.where(replace(each.trial, timing=""))  # the caption says it
                rows.append((TableCell(findings.name(each.trial), where), *_costs(each), *machine))
            caption = _caption(findings, model, exam) + (f", timed: {timing}" if timing else "")
            notes = () if timing else (UNTIMED,)
            tables.append(ReportTable(caption, columns(*names), tuple(rows), notes))
            if timing and model.counterpart == LLADA and exam.task == "humaneval":
                tables += _paper(exam.length)
    return Section("Time and memory", tuple(tables))


def _groups(findings: Findings) -> list[tuple[ReportedModel, Exam, list[Summary]]]:
    groups = []
    for model in findings.models:
        for exam in findings.exams:
            members = [
                each
                for each in findings.summaries
                if each.trial.weights == model.weights and Exam.of(each.trial) == exam
            ]
            if members:
                groups.append((model, exam, sorted(members, key=_order)))
    return groups


def _order(summary: Summary) -> tuple[object, ...]:
    return (TrialSetting.of(summary.trial).order, rule_of(summary).order)


def _caption(findings: Findings, model: ReportedModel, exam: Exam) -> str:
    return f"{model.title}: {exam.words(findings.exams)}"


def _head(summary: Summary, findings: Findings) -> TableCell:
    return TableCell(findings.name(summary.trial), findings.where(summary.trial))


def _timed_first(timing: str) -> tuple[bool, str]:
    return not timing, timing


def _counters(each: Summary) -> tuple[TableCell, ...]:
    return (
        TableCell(str(each.count)),
        TableCell(percent(each.accuracy()), span(each.interval())),
        TableCell(percent(each.accuracy("acc_compat")), span(each.interval("acc_compat"))),
        *cells(
            number(each.mean("nfe")),
            number(each.mean("nfe_eos")),
            number(each.rates["nominal"], 2),
            number(each.rates["effective"], 2),
            number(each.mean("tokens")),
            percent(each.mean("eos_share")),
            percent(each.mean("cut_off")),
        ),
    )


def _costs(each: Summary) -> tuple[TableCell, ...]:
    spent = {name: each.seconds(name) for name in ("model", "decision", "kl", "total")}
    shares = [share(spent[part], spent["total"]) for part in ("decision", "kl")]
    memory = [gigabytes(size) for size in each.memory]
    return cells(number(each.mean("nfe")), *map(seconds, spent.values()), *shares, *memory)


def _paper(length: int) -> list[ReportTable]:
    """The paper's efficiency table, if it has this length."""
    names = ("strategy", "acc %", "NFE", "model s", "KL s", "total s", "memory GB, mean", "peak")
    rows = [
        cells(
            row["strategy"],
            number(row["acc"]),
            number(row["nfe"]),
            *(seconds(row[name] / 1000) for name in ("model_ms", "kl_ms", "total_ms")),
            number(row["avg_gb"], 2),
            number(row["peak_gb"], 2),
        )
        for row in efficiency()
        if row["length"] == length
    ]
    caption = f"The paper's efficiency table: LLaDA on HumanEval, {length} tokens"
    return [ReportTable(caption, columns(*names), tuple(rows), (PAPERS,))] if rows else []
