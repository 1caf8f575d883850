"""Writes a dissection: as text, and as Markdown, HTML and JSON with a plot beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unmask.errors import LabError, UnmaskError
from unmask.lab.dissect.conclusions import RULES, sentence, verdict
from unmask.lab.dissect.findings import BASE, WHOLE, Dissection, MeasuredVariant, VariantDifference
from unmask.lab.figures.bars import Bar, accuracy_bars
from unmask.lab.report.blocks import (
    Block,
    Items,
    Picture,
    ReportTable,
    Section,
    TableCell,
    Text,
    Tone,
)
from unmask.lab.report.blocks import columns as columns_of
from unmask.lab.report.markdown import markdown
from unmask.lab.report.page import page
from unmask.lab.report.wording import NONE, p_value, percent, points, points_span, span
from unmask.lab.stats import LEVEL, star_rule

PLOT = "variants"


def table(dissection: Dissection) -> ReportTable:
    """Every variant with its accuracy, its forwards and its two differences."""
    columns = columns_of(
        "variant", "accuracy %", "forwards", "tokens/forward", "over base", "over whole"
    )
    notes = [
        f"* {_stars(dissection)}; p behind an interval is the corrected one.",
        _costs(dissection),
    ]
    rows = tuple(_row(dissection, each) for each in dissection.measured)
    return ReportTable(setting(dissection), columns, rows, tuple(notes))


def setting(dissection: Dissection) -> str:
    """What all variants share, in words."""
    trial, count = dissection[WHOLE].summary.trial, dissection[WHOLE].summary.count
    return (
        f"{trial.rule} on {count} examples of {trial.task}, {trial.model}, {trial.length} tokens, "
        f"{trial.window}, EOS {trial.eos}"
    )


def conclusions(dissection: Dissection) -> list[str]:
    """A sentence for every variant but the base and the whole rule, then those left out."""
    said = [sentence(dissection, name) for name in dissection.names if name not in (BASE, WHOLE)]
    return said + [f"Left out: {words}: {why}." for words, why in dissection.dissected.left_out]


def report_of(dissection: Dissection, plots: bool, missing: str = "") -> Section:
    """The whole page as blocks; `missing` says why there is no plot."""
    name = dissection.dissected.modulator
    drawn: Block = Text(f"There is no plot: {missing}.")
    if plots:
        words = "; ".join(
            f"{each.variant.words} {percent(each.summary.accuracy())}%"
            for each in dissection.measured
        )
        drawn = Picture(PLOT, "Accuracy of every variant", f"Bars of accuracy: {words}")
    rules = [f"{each.variant.words}: {each.summary.trial.rule}" for each in dissection.measured]
    blocks = (
        Text(verdict(dissection)),
        Section("Variants", (table(dissection), drawn)),
        Section("In words", (Items(tuple(conclusions(dissection))),)),
        Section("How the sentences follow", (Items(RULES),)),
        Section("The rules that were run", (Items(tuple(rules)),)),
    )
    trial = dissection[WHOLE].summary.trial
    return Section(f"What the gain of {name} is made of: {trial.task}", blocks)


def record(dissection: Dissection) -> dict[str, Any]:
    """All figures, for JSON."""
    differences = {
        f"{second} - {first}": each.record()
        for (first, second), each in dissection.differences.items()
    }
    return {
        "modulator": dissection.dissected.modulator,
        "setting": setting(dissection),
        "verdict": verdict(dissection),
        "conclusions": conclusions(dissection),
        "rules": list(RULES),
        "differences": differences,
        "at_equal_forwards": dissection.at_equal_forwards,
        "variants": [
            {
                "name": each.variant.name,
                "words": each.variant.words,
                **each.summary.record(),
                "curve": [summary.record() for summary in each.curve.summaries[1:]],
            }
            for each in dissection.measured
        ],
        "left_out": dict(dissection.dissected.left_out),
    }


def as_json(dissection: Dissection) -> str:
    """The figures as text."""
    return json.dumps(record(dissection), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_pages(dissection: Dissection, folder: Path) -> Iterator[Path]:
    """Write dissect.md, .html and .json and the plot; yields each file after it is written."""
    if folder.exists() and not folder.is_dir():
        raise LabError(f"{folder} is a file; give --output a folder")
    folder.mkdir(parents=True, exist_ok=True)
    files, missing = [folder / f"{PLOT}{suffix}" for suffix in (".svg", ".png")], ""
    try:
        accuracy_bars([_bar(each) for each in dissection.measured], _title(dissection), *files)
        yield from files
    except UnmaskError as error:
        missing = str(error)
    report = report_of(dissection, not missing, missing)
    drawings = {} if missing else {PLOT: files[0].read_text(encoding="utf-8")}
    texts = {
        "dissect.md": markdown(report),
        "dissect.json": as_json(dissection),
        "dissect.html": page(report, drawings),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        yield folder / name


def lines(dissection: Dissection) -> Iterator[str]:
    """The table, the sentences and the verdict, for a terminal."""
    whole = table(dissection)
    cells = [[column.name for column in whole.columns]]
    cells += [[cell.plain for cell in row] for row in whole.rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    yield whole.caption
    for row in cells:
        pairs = zip(row, widths, strict=True)
        yield "  ".join(text.ljust(width) for text, width in pairs).rstrip()
    yield from (*whole.notes, "", *conclusions(dissection), "", verdict(dissection))


def _row(dissection: Dissection, each: MeasuredVariant) -> tuple[TableCell, ...]:
    summary, name = each.summary, each.variant.name
    return (
        TableCell(each.variant.words),
        TableCell(percent(summary.accuracy()), span(summary.interval())),
        TableCell(f"{summary.mean('nfe'):.1f}"),
        TableCell(f"{summary.rates['effective']:.2f}"),
        _difference(dissection.differences.get((BASE, name))),
        _difference(dissection.differences.get((WHOLE, name))),
    )


def _difference(each: VariantDifference | None) -> TableCell:
    if each is None:
        return TableCell(NONE)
    star = "*" if each.p_holm < LEVEL else ""
    small = f"{points_span(each.measured.interval)} {p_value(each.p_holm)}"
    tones: dict[int, Tone] = {1: "gain", -1: "loss", 0: ""}
    return TableCell(f"{points(each.measured.difference)}{star}", small, tones[each.sign])


def _stars(dissection: Dissection) -> str:
    """What a star means; along a curve an example is solved with a chance, so signs are flipped."""
    rule = star_rule(len(dissection.differences))
    return (
        rule.replace("McNemar's exact p", "the p of a sign-flip test")
        if (dissection.at_equal_forwards)
        else rule
    )


def _costs(dissection: Dissection) -> str:
    if dissection.at_equal_forwards:
        return (
            "Differences are at equal forwards: the mean over the forwards that both variants can "
            "be run with, along the values of --curve."
        )
    return (
        "Each variant is compared at its own forwards. --curve X,... runs all of them at more "
        "values of the selection's knob and compares at equal forwards."
    )


def _bar(each: MeasuredVariant) -> Bar:
    summary = each.summary
    low, high = summary.interval()
    plain = each.variant.name == BASE or each.variant.eos is not None
    note = f"{summary.mean('nfe'):.1f}"
    return Bar(each.variant.words, note, summary.accuracy(), low, high, plain)


def _title(dissection: Dissection) -> str:
    trial = dissection[WHOLE].summary.trial
    return f"{trial.rule}\n{trial.task}, {trial.length} tokens, {trial.window}, EOS {trial.eos}"
