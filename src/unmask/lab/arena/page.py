"""The arena as files: a page that is read in a minute, Markdown, JSON and a plot per field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.lab.arena.contest import Arena, Contestant, Field
from unmask.lab.arena.entries import VALUES
from unmask.lab.arena.levers import Levers
from unmask.lab.arena.words import advice, best_of_task, opening, star_words
from unmask.lab.comparison_page import point_of
from unmask.lab.figures.plots import PlotCurve, PlotPoint
from unmask.lab.figures.scatter import front_scatter
from unmask.lab.report.blocks import (
    Block,
    Items,
    Picture,
    ReportTable,
    Section,
    TableCell,
    Text,
    cells,
    columns,
)
from unmask.lab.report.markdown import markdown
from unmask.lab.report.page import page
from unmask.lab.report.wording import number, percent, points, points_span
from unmask.lab.summary import Summary

TITLE = "The arena of decoding rules"


def write_arena(arena: Arena, folder: Path, command: str) -> Iterator[Path]:
    """Write all files and yield each after it is written; without matplotlib there are no plots.

    The Markdown is short: the tables of single fields are on the page and in the JSON.
    """
    (folder / "img").mkdir(parents=True, exist_ok=True)
    drawings, missing = {}, ""
    try:
        for field in arena.fields:
            file = folder / f"{picture_name(field)}.svg"
            draw(field, file, file.with_suffix(".png"))
            drawings[picture_name(field)] = file.read_text(encoding="utf-8")
            yield file
    except UnmaskError as error:
        drawings, missing = {}, f"There are no plots: {error}."
    made = Text(f"Made by: {command}")
    report = Section(TITLE, (made, *summary(arena), *details(arena, missing)))
    brief = Section(TITLE, (made, *summary(arena), *_plots(_best_fields(arena), missing)))
    texts = {
        "arena.md": markdown(brief),
        "arena.json": json.dumps(record(arena), indent=1) + "\n",
        "arena.html": page(report, drawings),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        yield folder / name


def picture_name(field: Field) -> str:
    """The file of a field's plot, without its ending."""
    return "img/arena-" + re.sub(r"[^a-z0-9]+", "-", field.title.lower()).strip("-")


def draw(field: Field, *files: Path) -> None:
    """Draw every rule of a field with its name, and the front."""
    curves = [
        PlotCurve(each.entry.name, tuple(map(_spot, each.curve.settings)), not each.entry.remembers)
        for each in field.contestants
    ]
    title = f"{field.title}, {field.count} examples, {field.trial.length} tokens"
    front_scatter(curves, [point_of(each) for each in field.front], title, *files)


def _spot(summary: Summary) -> PlotPoint:
    """A point without its interval: a plot of all rules would be full of them."""
    accuracy = summary.accuracy()
    return replace(point_of(summary), low=accuracy, high=accuracy)


def summary(arena: Arena) -> list[Block]:
    """What is read in a minute: who is best, what pays, and the front of every task."""
    levers = Levers.of(arena)
    pays = (
        Text(
            "Each figure compares two rules at equal forwards, in points with a paired 95% "
            "interval, averaged over the fields of a task: the best rule with this choice, and the "
            "best rule without it. The rule without it has no memory and no gate. For a window or "
            "an EOS policy, the rule with it has none either. The best rule is the one that gains "
            "most on the others of its kind, on the same examples. The same rule: every rule "
            "without memory and gate is compared with itself, and the mean of all of them is "
            "shown. So the first figure is for those who may change the rule, too, and the second "
            "for those who keep theirs. To use or to avoid a choice needs a star."
        ),
        Items(tuple(levers.sentences())),
        Text(levers.stars),
    )
    blocks: list[Block] = [Text(text) for text in opening(arena)]
    blocks.append(Section("When to use SWD, an EOS policy, blocks or a gate", pays))
    blocks.append(Section("All fields", (_overall(arena),)))
    advices = tuple(Text(advice(fields)) for fields in arena.by_task().values())
    blocks.append(Section("The front of each task", (*advices, *_fronts(arena))))
    blocks.append(Section("The rules", (_rules(arena), _choices(levers))))
    return blocks


def details(arena: Arena, missing: str = "") -> list[Block]:
    """A plot and a table of every field; `missing` says why there are no plots."""
    return [
        Section(field.title, (*_plots([field], missing), _table(arena, field)))
        for field in arena.fields
    ]


def _plots(fields: Sequence[Field], missing: str) -> list[Block]:
    if missing:
        return [Text(missing)]
    return [
        Picture(
            picture_name(field),
            f"{field.title}: accuracy against forwards. The broad line is the front.",
            f"{field.title}: the front holds {len(field.front)} settings",
        )
        for field in fields
    ]


def _best_fields(arena: Arena) -> list[Field]:
    """The field of each task with the best accuracy."""
    return [
        max(fields, key=lambda field: max(each.accuracy() for each in field.front))
        for fields in arena.by_task().values()
    ]


def _overall(arena: Arena) -> ReportTable:
    fields = len(arena.fields)
    rows = tuple(
        (
            TableCell(each.entry.name),
            *cells(
                points(each.difference),
                str(each.better),
                str(each.worse),
                f"{each.fronts} of {fields}",
                number(each.area),
                "yes" if each.entry.remembers else "no",
            ),
        )
        for each in arena.standings
    )
    names = ("rule", "difference", "better*", "worse*", "on the front", "AUP", "memory")
    notes = (
        "Difference: points against the best rule without memory of each field, at equal forwards, "
        "mean over the fields. That rule is chosen on the same examples, so it has a small "
        "advantage. AUP: mean over the fields, nominal tokens per forward.",
        star_words(arena),
    )
    return ReportTable("Every rule over all fields", columns(*names), rows, notes)


def _fronts(arena: Arena) -> list[ReportTable]:
    """The front of every task over all windows and EOS policies."""
    tables = []
    for task, fields in arena.by_task().items():
        rows = tuple(
            cells(name, each.trial.rule, where.removeprefix(f"{task}, "),
                  percent(each.accuracy()), number(each.mean("nfe")))
            for each, name, where in best_of_task(fields)
        )  # fmt: skip
        names = ("rule", "setting", "field", "acc %", "forwards")
        shape = columns(*names, left=("setting", "field"))
        tables.append(ReportTable(f"{task}: the front over all fields", shape, rows))
    return tables


def _table(arena: Arena, field: Field) -> ReportTable:
    ordered = sorted(
        field.contestants,
        key=lambda each: -getattr(field.costs.get(each.entry.name), "difference", 0.0),
    )
    rows = tuple(_row(arena, field, each) for each in ordered)
    names = ("rule", "published setting, acc %", "forwards", "difference", "p", "AUP", "front")
    note = (
        f"n = {field.count}. Difference: points against {field.baseline.entry.name}, the rule "
        "without memory that gains most on the others without it. Both at equal forwards, with the "
        "paired 95% interval."
    )
    return ReportTable(field.title, columns(*names), rows, (note, star_words(arena)))


def _row(arena: Arena, field: Field, each: Contestant) -> tuple[TableCell, ...]:
    name, published = each.entry.name, each.published
    cost = field.costs.get(name)
    tone = arena.tone(field, name)
    apart = TableCell("baseline")
    if cost is not None:
        star = "*" if tone else ""
        text = f"{points(cost.difference)}{star}"
        mark = {1: "gain", -1: "loss"}.get(tone, "")
        apart = TableCell(text, points_span(cost.interval), mark)  # type: ignore[arg-type]
    return (
        TableCell(name, published.trial.rule),
        TableCell(percent(published.accuracy())),
        TableCell(number(published.mean("nfe"))),
        apart,
        TableCell("" if cost is None else f"{cost.p:.2g}"),
        TableCell(number(each.area.value)),
        TableCell("yes" if field.on_front(each) else ""),
    )


def _rules(arena: Arena) -> ReportTable:
    rows = tuple(
        cells(each.name, each.curve, "yes" if each.remembers else "no", each.note)
        for each in arena.entries
    )
    shape = columns("rule", "along its knob", "memory", "what it is",
                    left=("along its knob", "memory", "what it is"))  # fmt: skip
    notes = tuple(f"{name} is left out: {why}." for name, why in arena.left_out.items())
    return ReportTable(f"Every rule, with at most {VALUES} values of its knob", shape, rows, notes)


def _choices(levers: Levers) -> ReportTable:
    """What each choice changes in every field: the figures behind the sentences."""
    rows = tuple(
        cells(lever.name, each.field, each.rules, points(each.difference),
              points_span(each.interval), f"{each.p:.2g}")
        for lever in levers.each
        for each in lever.contrasts
    )  # fmt: skip
    names = ("choice", "field without it", "rule without -> with it", "difference", "95%", "p")
    note = "At equal forwards, in points. Each p is of its row alone, without a correction."
    shape = columns(*names, left=names[1:3])
    return ReportTable("What each choice changes, field by field", shape, rows, (note,))


def record(arena: Arena) -> dict[str, Any]:
    """For JSON."""
    return {
        "opening": opening(arena),
        "what_pays": Levers.of(arena).sentences(),
        "left_out": dict(arena.left_out),
        "stars": star_words(arena),
        "rules": [{**vars(s), "entry": None, "rule": s.entry.name} for s in arena.standings],
        "fields": [
            {
                "field": field.title,
                "n": field.count,
                "baseline": field.baseline.entry.name,
                "front": [each.trial.rule for each in field.front],
                "rules": [
                    {
                        "rule": each.entry.name,
                        "aup": each.area.value,
                        "settings": [
                            {"rule": s.trial.rule, **s.record()} for s in each.curve.summaries
                        ],
                    }
                    for each in field.contestants
                ],
                "differences": {
                    name: {
                        **vars(cost),
                        "difference": cost.difference,
                        "p_holm": arena.holm[field.title, name],
                    }
                    for name, cost in field.costs.items()
                },
            }
            for field in arena.fields
        ],
    }
