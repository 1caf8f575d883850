"""`unmask demo`: what SWD does to the embedded model, on held-out problems."""

from __future__ import annotations

import argparse
import json
import sys
from io import StringIO
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import TYPE_CHECKING

from unmask.cli.options import examples
from unmask.errors import RequestError

if TYPE_CHECKING:
    from unmask.lab.lam_table import LamTable
    from unmask.lab.summary import Summary
    from unmask.lab.sweep.plan import Work
    from unmask.lab.sweep.store import AskedExample
    from unmask.text.terminal import Painter

SWEEP = "demo"  # in unmask/lab/sweep/files
LENGTH = 24  # of the answers that are compared; longer ones show what the model can do
SHOWN = ("confidence | eb(0.1)", "confidence | swd(5) | eb(0.1)")
SEARCHED = 40  # problems that are tried until one shows the difference


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "demo",
        help="watch a small trained model commit too early, and what SWD changes",
        description="Decodes held-out word problems with the model inside the package: one problem "
        "step by step with and without SWD; then a table of 108 settings (three scores, three "
        "selections, lam 0, 1 and 5, full window and blocks, EOS kept and suppressed) with paired "
        "intervals; then EB-Sampler's gamma sweep as a plot, with 20 more settings. It downloads "
        "nothing and takes about a minute on two free cores.",
        epilog=examples("unmask demo", "unmask demo --problems 20", "unmask demo --oracle"),
    )
    option = command.add_argument
    problems = "number of held-out problems, 2 to 200; more of them take longer (default: 100)"
    option("--problems", type=int, default=100, metavar="N", help=problems)
    output = "folder for results.json and the plot (default: unmask-demo)"
    option("--output", type=Path, default=Path("unmask-demo"), metavar="FOLDER", help=output)
    oracle = "show sixteen sentences with known true probabilities instead; takes a few seconds"
    option("--oracle", action="store_true", help=oracle)
    seeds = "with --oracle: number of noise seeds (default: 100)"
    option("--seeds", type=int, default=100, metavar="N", help=seeds)
    colour = "when to use colour (default: auto)"
    option("--colour", choices=("auto", "always", "never"), default="auto", help=colour)
    command.set_defaults(run=run, resume=resume)


def run(arguments: argparse.Namespace) -> int:
    """Show one problem, then the table and the sweep."""
    if arguments.oracle:
        from unmask.cli import oracle

        return oracle.run(arguments)
    if not 2 <= arguments.problems <= 200:
        raise RequestError(f"--problems must be from 2 to 200, got {arguments.problems}")
    _check_folder(arguments.output)
    from unmask.lab.lam_table import LamTable, measured
    from unmask.lab.sweep.grid import read_sweep
    from unmask.lab.sweep.plan import plan
    from unmask.text.terminal import Painter, has_colour

    paint = Painter(has_colour(arguments.colour))
    works = plan(read_sweep(SWEEP, {"limit": arguments.problems}).settings, None)
    _show_one(works, paint)
    compared = sum(each.trial.length == LENGTH for each in works)
    print(
        f"Next: {compared} settings with {arguments.problems} problems each, for a table and a "
        "plot. With 100 problems this takes about a minute on two free cores. Ctrl-C stops it.\n",
        file=sys.stderr,
    )
    begin = perf_counter()
    summaries = measured(works, Count())
    table = LamTable([each for each in summaries if each.trial.length == LENGTH])
    _print_ability([each for each in summaries if each.trial.length != LENGTH])
    _print_table(table, paint)
    _print_sweep(table, paint)
    _write(table, arguments.output)
    print(f"\n{perf_counter() - begin:.0f} s for {len(table.summaries)} settings.")
    return 0


def resume(arguments: argparse.Namespace) -> str:
    """The end of the line that an interrupt prints: how to continue."""
    return "; nothing is kept: run it again, or a shorter one with --problems 20"


def _check_folder(folder: Path) -> None:
    """Make the folder; raise if no file can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise RequestError(
            f"--output {folder} cannot be written: {error.strerror}; give another folder"
        ) from None


class Count:
    """Shows on stderr how many examples are done, if it is a terminal."""

    def __init__(self) -> None:
        self.finished = self.total = 0

    def begin(self, work: Work, done: int) -> None:
        self.total += len(work.asks)

    def done(self, work: Work, count: int = 1) -> None:
        self.finished += count
        if sys.stderr.isatty():
            text = f"\r{self.finished}/{self.total} answers"
            wiped = "\r\x1b[K" if self.finished == self.total else text
            print(wiped, end="", file=sys.stderr, flush=True)


def _show_one(works: list[Work], paint: Painter) -> None:
    """Draw step by step a problem that the baseline gets wrong and SWD right."""
    from unmask.models.load import load

    size = load(device="cpu").model.parameters / 1e6
    print(
        f"A masked diffusion model of {size:.2f} million parameters, "
        "trained by this project,\nand word problems that it has never seen.\n"
    )
    full = {each.trial.rule: each for each in works if _is_shown(each)}
    baseline, swd = (full[rule] for rule in SHOWN)
    asks = baseline.asks[:SEARCHED]
    for number, ask in enumerate(asks, 1):
        before, first = _watched(baseline, ask, paint)
        after, second = _watched(swd, ask, paint)
        if after and not before:
            prompt = baseline.by_name[ask.example].slots["prompt"]
            print(f"The first one that only SWD gets right (number {number}):\n")
            print(paint(f"  {prompt}", "bold"))
            print(f"\n{first}\n\n{second}\n")
            print(
                "· is a mask, ∎ the end of the answer; what a step adds is green in a terminal.\n",
                flush=True,  # before the wait for the table
            )
            return
    print(f"SWD corrects the baseline in none of the first {len(asks)} problems.\n")


def _is_shown(work: Work) -> bool:
    trial = work.trial
    return (trial.length, trial.block, trial.eos) == (LENGTH, None, "keep")


def _watched(work: Work, ask: AskedExample, paint: Painter) -> tuple[bool, str]:
    """Whether a problem is solved, and a drawing of its canvas after each step."""
    from unmask.lab.grading import Tools
    from unmask.text.watch import Watch

    example, request, drawn = work.by_name[ask.example], work.request(ask), StringIO()
    watch = Watch(work.session, request, drawn, paint.colour)
    _, answer = next(work.session.decode([request], on_step=watch))
    response = work.bench.response(example, answer.text, work.preset.name)
    with Tools() as tools:
        right = work.bench.grade(example, response, tools).acc
    verdict = "right" if right else f"wrong: it is {example.fields['problem'].facts}"
    outcome = paint(f"  NFE {answer.nfe}, {verdict}", "cyan" if right else "red")
    return right, f"{paint(work.trial.rule, 'bold')}\n{drawn.getvalue().rstrip()}\n{outcome}"


def _print_ability(summaries: list[Summary]) -> None:
    """Print the accuracy of one token per forward."""
    shares = []
    for each in summaries:
        low, high = each.interval()
        share = f"{100 * each.accuracy():.1f}% [{100 * low:.1f}, {100 * high:.1f}]"
        shares.append(f"{each.trial.task} {share}")
    trial, count = summaries[0].trial, summaries[0].count
    print(
        f"What it can do: one token per forward in {trial.window}, {trial.length} tokens, "
        f"{count} held-out problems each:\n{', '.join(shares)}.\n"
    )


def _print_table(table: LamTable, paint: Painter) -> None:
    from unmask.lab.lam_table import difference
    from unmask.lab.stats import star_rule

    first = table.summaries[0]
    print(
        f"{first.count} held-out problems, {first.trial.length} tokens each. "
        "Accuracy % @ forwards (NFE), tokens of the answer\nper forward, and the difference to "
        "lam 0 in points with its paired 95% interval.\n"
        f"* {star_rule(len(table.compared))}:\n"
    )
    for line in table.lines():
        print(paint(line, "bold") if ", EOS " in line else line)
    print(paint("\nIn short", "bold"))
    for sentence in table.reading():
        print(f"  {sentence}")
    losses = table.losses()
    count = f"{len(losses)} of {len(table.compared)}" if losses else "nowhere"
    below = sum(gain.interval.high < 0 for _, gain in table.compared)
    print(
        f"\nWhere SWD loses (with a star): {count}; {below} intervals, not corrected, are below 0"
    )
    for each, pair in losses:
        trial = each.trial
        print(f"  {trial.rule:<44} {trial.window}, EOS {trial.eos:<9} {difference(pair, True)}")


def _print_sweep(table: LamTable, paint: Painter) -> None:
    from unmask.lab.lam_table import difference
    from unmask.lab.report.rule_parts import parts_of
    from unmask.lab.stats import star_rule, starred

    print(paint("\nEB-Sampler on confidence, gamma sweep: accuracy % @ forwards", "bold"))
    swept = table.swept()
    for label, members in swept:
        points = "  ".join(_figure(each) for each in members)
        print(f"  {label:<24} {points}")
    knobs = "  ".join(f"{'gamma ' + parts_of(each.trial.rule).knob:<12}" for each in swept[0][1])
    print(f"  {'':<24} {knobs.rstrip()}")
    print(paint("\nAt equal cost: SWD against the best lam 0 that spends as much or more", "bold"))
    trials = (each for _, members in swept for each in members if parts_of(each.trial.rule).lam)
    rivals = [(each, *rival) for each in trials if (rival := table.at_equal_cost(each))]
    marks = starred([pair.p for *_, pair in rivals])
    for (each, best, pair), has_star in zip(rivals, marks, strict=True):
        print(
            f"  {each.trial.rule:<33} {_figure(each)}   "
            f"{best.trial.rule:<26} {_figure(best)}   {difference(pair, has_star)}"
        )
    if rivals:
        print(f"  * {star_rule(len(rivals))}")


def _figure(summary: Summary) -> str:
    return f"{100 * summary.accuracy():5.1f} @{summary.mean('nfe'):5.1f}"


def _write(table: LamTable, folder: Path) -> None:
    from unmask.errors import UnmaskError
    from unmask.lab.figures.plots import accuracy_against_forwards

    results = folder / "results.json"
    results.write_text(json.dumps(table.record(), indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten: {results}")
    plot = folder / "accuracy-forwards.svg"
    count = table.summaries[0].count
    title = f"EB-Sampler on {count} held-out word problems (numbers: gamma)"
    try:
        for file in (plot, plot.with_suffix(".png")):
            accuracy_against_forwards(table.curves(), title, file)
            print(f"written: {file}")
    except UnmaskError as error:
        print(f"no plot: {error}")
