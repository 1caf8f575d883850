"""`unmask dissect`: what the gain of a rule's modulator is made of."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.cli.lab_options import add_running, add_task, options_of, progress
from unmask.cli.options import PRESET, add_import, add_options, examples, given_options, positive
from unmask.decoding.options import OPTIONS, DecodingOptions

if TYPE_CHECKING:
    from unmask.lab.dissect.findings import Dissection


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "dissect",
        help="take a rule with a modulator apart: what its gain is made of",
        description="Decodes the same examples with the rule, without its modulator, with the "
        "modulator on end tokens only, on all other tokens only and at its start only, with D "
        "replaced by the row's mean and by another position's, and with EOS policies instead of "
        "it. Prints paired differences, a sentence for each variant and a verdict. Every finished "
        "example is stored at once; after an interruption, the same command continues.",
        epilog=examples(
            'unmask dissect --rule "entropy | swd(5) | eb(0.1)" --task words --block full',
            "unmask dissect --rule swd --task gsm8k --model FOLDER --data DIR --dry-run",
        ),
    )
    add_task(command)
    option = command.add_argument
    option("--limit", type=positive, metavar="N", help="use the first N examples (default: all)")
    option("--modulator", metavar="NAME", help="which of several modulators (default: swd, if any)")
    option(
        "--curve", metavar="X,...", help="run all variants at these values of the selection's "
        "first knob, too, and compare them at equal forwards (default: at their own forwards)",
    )  # fmt: skip
    option("--output", type=Path, metavar="FOLDER", help="write a page, Markdown, JSON and a plot")
    option("--json", type=Path, metavar="FILE", help="write all figures to this file")
    add_options(command.add_argument_group("decoding"), OPTIONS, {**PRESET, "rule": "swd"})
    add_import(command)
    running = command.add_argument_group("running")
    add_running(running)
    running.add_argument("--dry-run", action="store_true", help="print the cost and stop")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Decode and grade all variants, then say what the gain is made of."""
    from unmask.lab.dissect.findings import Dissection
    from unmask.lab.dissect.plan import plan_dissection
    from unmask.lab.grading import Tools
    from unmask.lab.sweep.cost import dry_run
    from unmask.lab.sweep.grid import Setting
    from unmask.lab.sweep.run import check_graders, summaries
    from unmask.lab.sweep.run import run as run_all

    options, names = options_of(arguments), (arguments.model, arguments.task)
    decoding = DecodingOptions.read({"rule": "swd"} | given_options(arguments))
    whole = Setting(*names, decoding, arguments.preset, arguments.limit)
    curve = [] if arguments.curve is None else arguments.curve.split(",")
    plan = plan_dissection(whole, options.data, arguments.modulator, curve)
    if arguments.dry_run:
        for line in dry_run([work.setting for work in plan.every], options):
            print(line)
        return 0
    with Tools.of([plan.every[0].bench], arguments.allow_unsandboxed) as tools:
        check_graders(plan.every, tools)
        with progress() as bars:
            left = run_all(plan.every, options, tools, bars)
    if left:
        print(f"other workers hold {left} examples; run again when they are done")
        return 1
    made = summaries(options.store, plan.every)
    _write(arguments, Dissection.of(plan, {each.trial.key: each for each in made}))
    return 0


def _write(arguments: argparse.Namespace, dissection: Dissection) -> None:
    """Print the result, and write the files that were asked for."""
    from unmask.lab.dissect.pages import as_json, lines, write_pages

    print("\n".join(lines(dissection)))
    if arguments.json is not None:
        arguments.json.write_text(as_json(dissection), encoding="utf-8")
    if arguments.output is not None:
        for file in write_pages(dissection, arguments.output):
            print(f"written: {file}")
