"""`unmask demo`: what SWD does to the embedded model, on held-out problems."""

from __future__ import annotations

import argparse
import json
import sys
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from unmask.errors import RequestError

if TYPE_CHECKING:
    from unmask.embedded.cells import Cell
    from unmask.embedded.compare import Outcomes, Series
    from unmask.embedded.report import Report
    from unmask.embedded.tasks import Problem
    from unmask.text.terminal import Painter

TASK, LENGTH = "words", 24
ROOMY = 32  # tokens, where nothing is compared
SEARCHED = 40  # problems among which one is looked for that shows the difference


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "demo",
        help="watch a small trained model commit too early, and what SWD changes",
        description="Decodes held-out word problems with the model inside the package: one problem "
        "step by step with and without SWD; then a table of 108 settings (three scores, three "
        "selections, lam 0, 1 and 5, full window and blocks, EOS kept and suppressed) with paired "
        "intervals; then EB-Sampler's gamma sweep as a plot. No download; about 80 seconds on two "
        "cores.",
    )
    command.add_argument(
        "--problems", type=int, default=200, metavar="N", help="held-out problems (200)"
    )
    command.add_argument(
        "--output", type=Path, default=Path("unmask-demo"), metavar="FOLDER",
        help="for results.json and the plot (unmask-demo)",
    )  # fmt: skip
    command.add_argument(
        "--oracle",
        action="store_true",
        help="instead: sixteen sentences whose true probabilities are known; a few seconds",
    )
    command.add_argument(
        "--seeds", type=int, default=100, metavar="N", help="with --oracle: noise seeds (100)"
    )
    command.add_argument(
        "--colour", choices=("auto", "always", "never"), default="auto", help="colour (auto)"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show one problem, then the table and the sweep."""
    if arguments.oracle:
        from unmask.cli import oracle

        return oracle.run(arguments)
    if arguments.problems < 2:
        raise RequestError(f"--problems must be >= 2, got {arguments.problems}")
    from unmask.embedded import FOLDER
    from unmask.embedded.cells import FAST_GAMMAS, SAFE, Grid, gamma_sweep
    from unmask.embedded.compare import Series
    from unmask.embedded.report import Report
    from unmask.text.terminal import Painter, has_colour

    paint = Painter(has_colour(arguments.colour))
    series = Series(TASK, arguments.problems, LENGTH)
    _show_one(series, paint)
    table, sweep = Grid().cells(), gamma_sweep(gammas=FAST_GAMMAS)
    begin = perf_counter()
    studies = {series: list(dict.fromkeys(table + sweep))}
    studies |= {Series(task, series.count, ROOMY): [SAFE] for task in ("words", "code")}
    found = _compared(FOLDER, studies)
    reports = [Report.of(each, outcomes) for each, outcomes in found.items()]
    report = next(each for each in reports if each.series == series)
    _print_ability([each for each in reports if each is not report])
    _print_table(report, table, paint)
    _print_sweep(report, sweep, paint)
    _write(report, sweep, arguments.output)
    print(f"\n{perf_counter() - begin:.0f} s for {len(studies[series])} settings.")
    return 0


def _show_one(series: Series, paint: Painter) -> None:
    """A problem that the baseline gets wrong and SWD right, as both canvases fill."""
    from unmask.embedded.cells import EB, Cell
    from unmask.embedded.compare import decode_cells
    from unmask.models.load import load
    from unmask.models.wrappers.memoised import Remembered

    loaded = load()
    baseline, swd = Cell("confidence", 0.0, EB), Cell("confidence", 5.0, EB)
    print(
        f"A masked diffusion model of {loaded.model.parameters / 1e6:.2f} million parameters, "
        "trained by this project,\nand word problems that it has never seen.\n"
    )
    model, problems = Remembered(loaded.model), series.problems()[:SEARCHED]
    gained: list[int] = []
    for place in range(0, len(problems), 8):
        some = problems[place : place + 8]
        tried = decode_cells(model, loaded.tokenizer, some, (baseline, swd), series.length)
        pairs = zip(tried[baseline], tried[swd], strict=True)
        gained = [place + i for i, (a, b) in enumerate(pairs) if b.solved and not a.solved]
        if gained:
            break
    else:
        print(f"In none of {len(problems)} problems is SWD right where the baseline is wrong.\n")
        return
    problem = problems[gained[0]]
    print(f"The first one that only SWD gets right (number {gained[0] + 1}):\n")
    print(paint(f"  {problem.prompt}", "bold"))
    for cell in (baseline, swd):
        _watch(cell, problem, series, paint)
    print("\n· is a mask, ∎ the end of the answer; what a step adds is green in a terminal.\n")


def _watch(cell: Cell, problem: Problem, series: Series, paint: Painter) -> None:
    from unmask.embedded.tasks import TASKS
    from unmask.text.session import Session
    from unmask.text.watch import Watch

    block = "full" if cell.block is None else cell.block
    session = Session(rule=cell.rule, block=block, eos=cell.eos, length=series.length)
    request = session.request(session.format().of_text(problem.prompt))
    drawn = StringIO()
    watch = Watch(session, request, drawn, paint.colour)
    _, answer = next(session.decode([request], on_step=watch))
    right = TASKS[problem.task].solved(problem, answer.text)
    verdict = "right" if right else f"wrong: it is {problem.facts}"
    print(f"\n{paint(cell.rule, 'bold')}\n{drawn.getvalue().rstrip()}")
    print(paint(f"  NFE {answer.nfe}, {verdict}", "cyan" if right else "red"))


def _compared(folder: Path, studies: dict[Series, list[Cell]]) -> dict[Series, Outcomes]:
    """All cells on all cores, with a count on stderr where that is a terminal."""
    from unmask.embedded.compare import compare, gathered

    parts, done, total = [], 0, sum(series.count for series in studies)
    for part in compare(folder, studies):
        parts.append(part)
        done += len(part.places)
        if sys.stderr.isatty():
            print(f"\r{done}/{total} problems", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return gathered(parts)


def _print_ability(reports: list[Report]) -> None:
    """What the model can do when nothing hurries it."""
    shown = []
    for report in reports:
        (summary,) = report.summaries.values()
        low, high = summary.interval
        share = f"{100 * summary.accuracy:.1f}% [{100 * low:.1f}, {100 * high:.1f}]"
        shown.append(f"{report.series.task} {share}")
    series = reports[0].series
    print(
        f"What it can do: one token per forward in blocks of 16, {series.length} tokens, "
        f"{series.count} held-out problems each:\n{', '.join(sorted(shown, reverse=True))}.\n"
    )


def _print_table(report: Report, cells: list[Cell], paint: Painter) -> None:
    from unmask.embedded.report import difference

    series = report.series
    print(
        f"{series.count} held-out problems, {series.length} tokens each. "
        "Accuracy % @ forwards (NFE), tokens of the answer\nper forward, and the difference to "
        "lam 0 in points with its paired 95% interval (* excludes 0):\n"
    )
    for line in report.panels(cells):
        print(paint(line, "bold") if ", EOS " in line else line)
    losses = report.losses(cells)
    print(f"\nWhere SWD loses (interval below 0): {len(losses) or 'nowhere'}"
          f"{' of ' + str(sum(1 for cell in cells if cell.lam)) if losses else ''}")  # fmt: skip
    for cell, pair in losses:
        print(f"  {cell.rule:<44} {cell.window}, EOS {cell.eos:<9} {difference(pair)}")


def _print_sweep(report: Report, cells: list[Cell], paint: Painter) -> None:
    from unmask.embedded.report import difference

    print(paint("\nEB-Sampler on confidence, gamma sweep: accuracy % @ forwards", "bold"))
    for curve in report.curves(cells):
        points = "  ".join(f"{100 * p.accuracy:5.1f} @{p.nfe:5.1f}" for p in curve.points)
        print(f"  {curve.label:<24} {points}")
    knobs = "  ".join(f"{'gamma ' + p.knob:<12}" for p in report.curves(cells)[0].points)
    print(f"  {'':<24} {knobs.rstrip()}")
    print(paint("\nAt equal cost: SWD against the best lam 0 that spends as much or more", "bold"))
    for cell in cells:
        found = report.at_equal_cost(cell) if cell.lam else None
        if found is None:
            continue
        mine, (rival, pair) = report.summaries[cell], found
        print(
            f"  {cell.rule:<33} {100 * mine.accuracy:5.1f} @{mine.nfe:5.1f}   "
            f"{rival.cell.rule:<26} {100 * rival.accuracy:5.1f} @{rival.nfe:5.1f}   "
            f"{difference(pair)}"
        )


def _write(report: Report, sweep: list[Cell], folder: Path) -> None:
    from unmask.errors import UnmaskError
    from unmask.lab.figures.plots import accuracy_against_forwards

    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.json"
    results.write_text(json.dumps(report.record(), indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten: {results}")
    plot = folder / "accuracy-forwards.svg"
    title = f"EB-Sampler on {report.series.count} held-out word problems (numbers: gamma)"
    try:
        for file in (plot, plot.with_suffix(".png")):
            accuracy_against_forwards(report.curves(sweep), title, file)
            print(f"written: {file}")
    except UnmaskError as error:
        print(f"no plot: {error}")
