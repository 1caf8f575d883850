"""A comparison as files: one HTML page, Markdown, JSON, and the plot of all rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from unmask.errors import UnmaskError
from unmask.lab.figures.plots import PlotCurve, PlotPoint
from unmask.lab.figures.scatter import front_scatter
from unmask.lab.report.blocks import (
    Block,
    Picture,
    ReportTable,
    Section,
    Text,
    cells,
    columns,
)
from unmask.lab.report.markdown import markdown
from unmask.lab.report.page import page
from unmask.lab.report.wording import clean, counted
from unmask.lab.rule_comparison import RuleComparison
from unmask.lab.summary import Summary

PLOT = "accuracy-forwards"
MOST = 10  # examples of two rules on the page; the JSON file has all


def write_comparison(comparison: RuleComparison, folder: Path) -> Iterator[Path]:
    """Write all files and yield each after it is written; without matplotlib there is no plot."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{PLOT}{suffix}" for suffix in (".svg", ".png")]
    drawings, missing = {}, ""
    try:
        draw(comparison, *files)
        drawings = {PLOT: files[0].read_text(encoding="utf-8")}
        yield from files
    except UnmaskError as error:
        missing = f"There is no plot: {error}."
    report = report_of(comparison, missing)
    record = json.dumps(comparison.record(), indent=1, ensure_ascii=False)
    texts = {
        "compare.md": markdown(report),
        "compare.json": f"{record}\n",
        "compare.html": page(report, drawings),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        yield folder / name


def draw(comparison: RuleComparison, *files: Path) -> None:
    """Draw the rules with their names, and the front, into .svg, .png or .pdf files."""
    curves = [
        PlotCurve(clean(curve.name), tuple(map(point_of, curve.settings)), baseline=not number)
        for number, curve in enumerate(comparison.curves)
    ]
    front_scatter(curves, [point_of(each) for each in comparison.front], comparison.about, *files)


def report_of(comparison: RuleComparison, missing: str = "") -> Section:
    """The comparison as blocks; `missing` says why there is no plot."""
    blocks: list[Block] = [Text(verdict) for verdict in comparison.verdicts()]
    tables = [_table(f"Every setting: {comparison.about}", comparison.cells(), comparison.notes)]
    if comparison.swept:
        caption = f"Against {comparison.curves[0].name}, at equal forwards"
        tables.append(_table(caption, comparison.curve_cells(), comparison.notes))
    blocks.append(Section("Rules", tuple(tables)))
    alt = ". ".join(comparison.verdicts()) or comparison.about
    caption = "Accuracy against forward passes; the broad line is the front: no setting is better"
    drawn: Block = Text(missing) if missing else Picture(PLOT, caption, alt)
    return Section("Comparison of rules", (*blocks, Section("Plot", (drawn,)), *_apart(comparison)))


def _table(caption: str, rows: Sequence[Sequence[str]], notes: Sequence[str]) -> ReportTable:
    head, *body = rows
    return ReportTable(caption, columns(*head), tuple(cells(*row) for row in body), tuple(notes))


def _apart(comparison: RuleComparison) -> list[Section]:
    """The examples that only one of two rules solves, with the commands that trace both."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for each in comparison.disagreements():
        groups.setdefault((each["right"], each["wrong"]), []).append(each)
    if not groups:
        return []
    tables = []
    for (right, wrong), members in groups.items():
        caption = f"Right with {right}, wrong with {wrong}: {counted(len(members), 'example')}"
        caption += f", of which {MOST} are shown" if len(members) > MOST else ""
        rows = tuple(cells(each["example"], each["command"]) for each in members[:MOST])
        shape = columns("example", "trace both", left=("trace both",))
        tables.append(ReportTable(caption, shape, rows))
    about = Text("compare.json has all examples that one of two rules alone solves.")
    return [Section("Examples that tell the rules apart", (about, *tables))]


def point_of(summary: Summary) -> PlotPoint:
    """A setting as a point without a label."""
    low, high = summary.interval()
    return PlotPoint("", summary.mean("nfe"), summary.accuracy(), low, high)
