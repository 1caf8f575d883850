"""The report of a store: report.md, report.json, report.html, and its plots beside them.

The way through the files: `gather` reads the store. `findings` holds what is computed from it:
`pairs` (differences), `aup_curves` and `paper_columns` (the paper's figures); `rule_parts`,
`versions` and `panels` say which trials belong together. `about`, `verdicts`, `scores`, `speed`,
`trials`, `overview` and `pictures` make the sections, out of `blocks`. `markdown` and `page` write
them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from unmask.errors import LabError, UnmaskError
from unmask.lab.paper import inconsistencies
from unmask.lab.report.about import about
from unmask.lab.report.blocks import Block, Items, Section, Text
from unmask.lab.report.findings import Findings
from unmask.lab.report.gather import gather
from unmask.lab.report.markdown import markdown
from unmask.lab.report.overview import Plot
from unmask.lab.report.page import page
from unmask.lab.report.pictures import plots
from unmask.lab.report.scores import scores
from unmask.lab.report.speed import speed
from unmask.lab.report.trials import costs, every_trial
from unmask.lab.report.verdicts import summary_of, verdicts

__all__ = ["Findings", "report_of", "write_report"]


def write_report(store: Path, folder: Path, baseline: str | None = None) -> Iterator[Path]:
    """Write the report of a store into a folder and yield each file after it is written.

    The same store gives the same bytes. Without matplotlib the report says that it has no plots.
    """
    findings = Findings.of(gather(store), baseline)
    if folder.exists() and not folder.is_dir():
        raise LabError(f"{folder} is a file; give --output a folder")
    folder.mkdir(parents=True, exist_ok=True)
    drawn, missing = plots(findings), ""
    try:
        for plot in drawn:
            files = [folder / f"{plot.picture.name}{suffix}" for suffix in (".svg", ".png")]
            plot.draw(*files)
            yield from files
    except UnmaskError as error:
        drawn, missing = [], str(error)
    report = report_of(findings, drawn, missing)
    names = [plot.picture.name for plot in drawn]
    drawings = {name: (folder / f"{name}.svg").read_text(encoding="utf-8") for name in names}
    record = {**findings.record(), "plots": names}
    texts = {
        "report.md": markdown(report),
        "report.json": json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        "report.html": page(report, drawings),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        yield folder / name


def report_of(findings: Findings, drawn: list[Plot], missing: str = "") -> Section:
    """The whole report as blocks; `missing` says why there are no plots."""
    blocks: list[Block] = []
    if findings.comparisons.made:
        blocks.append(Text(summary_of(findings)))
    blocks += [about(findings), verdicts(findings), scores(findings), speed(findings)]
    blocks.append(_plots(drawn, missing))
    blocks += [every_trial(findings), costs(findings)]
    if findings.shows_paper:
        intro = Text("The paper's figures are shown as printed. It contradicts itself here:")
        items = Items(tuple(inconsistencies()))
        blocks.append(Section("Contradictions in the paper", (intro, items)))
    return Section(f"Report of {findings.results.name}", tuple(blocks))


def _plots(drawn: list[Plot], missing: str) -> Section:
    if drawn:
        return Section("Plots", tuple(plot.picture for plot in drawn))
    reason = missing or "no parameter was swept"
    return Section("Plots", (Text(f"There are no plots: {reason}."),))
