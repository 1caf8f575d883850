"""Every trial in full: all counters, and where time and memory went."""

from __future__ import annotations

from unmask.lab.paper import LLADA, efficiency
from unmask.lab.report.blocks import Block, Cell, Section, Table, Text, cells, columns
from unmask.lab.report.findings import Findings, Model
from unmask.lab.report.panels import Exam, Setting
from unmask.lab.report.rule_columns import read
from unmask.lab.report.wording import gigabytes, number, percent, seconds, share, span
from unmask.lab.summary import Summary

SHARES = (
    "Seconds are of one example: of a batch, its share of every forward that it took part in. The "
    "decision is all that is not the model's forward: reductions, KL, ranking and bookkeeping. The "
    "KL's part of it is what a pass over the logits takes longer with a KL than without. Memory is "
    "the graphics card's where one was used, else that of the process."
)
PAPERS = "The paper's KL time is the divergence alone; its hardware and batch size may not be ours."


def every_trial(findings: Findings) -> Section:
    """A table for each model and task."""
    found: list[Block] = []
    for model, exam, members in _groups(findings):
        rows = [(_head(each, findings), *_counters(each)) for each in members]
        names = ("rule", "n", "acc %", "compat %", "NFE", "NFE to EOS", "tokens / forward, nominal",
                 "effective", "tokens", "EOS %", "cut off %")  # fmt: skip
        found.append(Table(_caption(findings, model, exam), columns(*names), tuple(rows)))
    return Section("Every trial", tuple(found))


def costs(findings: Findings) -> Section:
    """Time and memory, and the paper's own table where it has one."""
    found: list[Block] = [Text(SHARES)]
    several = len(findings.results.machines) > 1
    for model, exam, members in _groups(findings):
        rows = []
        for each in members:
            machine = (Cell(findings.results.machines_of(each)),) if several else ()
            rows.append((_head(each, findings), *_costs(each), *machine))
        names = ["rule", "NFE", "model s", "decision s", "KL s", "total s", "decision %", "KL %",
                 "memory GB, mean", "peak"] + ["machine"] * several  # fmt: skip
        found.append(Table(_caption(findings, model, exam), columns(*names), tuple(rows)))
        if model.counterpart == LLADA and exam.task == "humaneval":
            found.append(_paper(exam.length))
    return Section("Time and memory", tuple(found))


def _groups(findings: Findings) -> list[tuple[Model, Exam, list[Summary]]]:
    found = []
    for model in findings.models:
        for exam in findings.exams:
            members = [
                each
                for each in findings.summaries
                if each.trial.weights == model.weights and Exam.of(each.trial) == exam
            ]
            if members:
                found.append((model, exam, sorted(members, key=_order)))
    return found


def _order(summary: Summary) -> tuple[object, ...]:
    return (Setting.of(summary.trial).order, read(summary.trial.rule).order)


def _caption(findings: Findings, model: Model, exam: Exam) -> str:
    return f"{model.title}: {exam.words(findings.exams)}"


def _head(summary: Summary, findings: Findings) -> Cell:
    return Cell(summary.trial.rule, findings.where(summary.trial))


def _counters(each: Summary) -> tuple[Cell, ...]:
    return (
        Cell(str(each.count)),
        Cell(percent(each.accuracy()), span(each.interval())),
        Cell(percent(each.accuracy("acc_compat")), span(each.interval("acc_compat"))),
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


def _costs(each: Summary) -> tuple[Cell, ...]:
    spent = {name: each.seconds(name) for name in ("model", "decision", "kl", "total")}
    shares = [share(spent[part], spent["total"]) for part in ("decision", "kl")]
    memory = [gigabytes(size) for size in each.memory]
    return cells(number(each.mean("nfe")), *map(seconds, spent.values()), *shares, *memory)


def _paper(length: int) -> Table:
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
    return Table(caption, columns(*names), tuple(rows), (PAPERS,))
