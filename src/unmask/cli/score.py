"""`unmask score`: grades texts that another program generated."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.cli.lab_options import UNSANDBOXED_HELP
from unmask.cli.options import examples, shown_count

if TYPE_CHECKING:
    from unmask.lab.benchmarks import Benchmark
    from unmask.lab.grading import Scorer, Tools
    from unmask.lab.grading.generations import GeneratedText, Generations
    from unmask.lab.grading.graded_texts import Marked

FIELDS = """\
A line of FILE is {"id": ..., "text": ...}, with "task" and "gen_length" if FILE
has several of them. Other common names of these fields work too, such as "resps".

"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "score",
        help="grade texts that another program generated",
        description="Grades a file of generated texts against a benchmark and prints the accuracy "
        "of each length with its 95% interval. First it tests the grader on reference answers and "
        "on wrong ones. Code that a model wrote runs in the sandbox.",
        epilog=FIELDS
        + examples(
            "unmask score --task gsm8k --generations out.jsonl --data DIR",
            "unmask score --task math500 --generations out.jsonl --data DIR --scorer all --json",
        ),
    )
    option = command.add_argument
    option("--task", required=True, metavar="NAME", help="task; 'unmask tasks' lists them")
    option("--generations", required=True, type=Path, metavar="FILE", help="texts as JSON lines")
    option("--data", type=Path, metavar="DIR", help="folder of benchmark files (default: the hub)")
    scorer = "scorer, or all; may be repeated (default: unmask, and daedal if the task has it)"
    option("--scorer", action="append", metavar="NAME", help=scorer)
    option("--length", type=int, metavar="N", help="grade texts of this length only (default: all)")
    option("--preset", metavar="NAME", help="apply the prefill and stop strings of this preset")
    limit = "CPU seconds for each formula (default: 5)"
    option("--limit", type=float, default=5.0, metavar="SECONDS", help=limit)
    option("--output", type=Path, metavar="FILE", help="write a JSON line per text to this file")
    option("--allow-unsandboxed", action="store_true", help=UNSANDBOXED_HELP)
    option("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Test the grader, grade the texts and print a report."""
    from unmask.lab.benchmarks import benchmark as named
    from unmask.lab.grading import Tools, Verifier, selftest
    from unmask.lab.grading.generations import read_generations
    from unmask.lab.grading.graded_texts import lines, record, summarised

    benchmark = named(arguments.task)
    names = arguments.scorer or [scorer.name for scorer in benchmark.graders]
    scorers = benchmark.chosen(names)
    examples = benchmark.load(arguments.data)
    generations = read_generations(
        arguments.generations, benchmark.name, examples, arguments.length
    )
    judge = Tools.of([benchmark], arguments.allow_unsandboxed).judge
    with Tools(judge, Verifier(arguments.limit)) as tools:
        selftest(benchmark, examples, tools)
        marked = list(_marked(benchmark, generations, scorers, tools, arguments.preset))
    if arguments.output is not None:
        _write(arguments.output, marked)
    reports = summarised(marked, scorers, len(examples))
    if arguments.json:
        print(json.dumps(record(benchmark, generations, reports), indent=2))
    else:
        print("\n".join(lines(benchmark, generations, reports)))
    return 0


def _marked(
    benchmark: Benchmark,
    generations: Generations,
    scorers: list[Scorer],
    tools: Tools,
    preset: str | None,
) -> Iterator[Marked]:
    from unmask.lab.grading import Response, score

    def response(each: GeneratedText) -> Response:
        if preset is None:
            return Response(each.text)
        return benchmark.response(each.example, each.text, preset)

    answers = [(each.example, response(each)) for each in generations.texts]
    with shown_count(len(answers)) as show:
        for done, (number, marks) in enumerate(score(answers, scorers, tools), 1):
            show(done)
            yield generations.texts[number], marks


def _write(file: Path, marked: list[Marked]) -> None:
    from unmask.errors import UnmaskError

    ordered = sorted(marked, key=lambda each: (each[0].length or 0, each[0].example.index))
    rows = [
        {
            "id": each.example.id,
            "length": each.length,
            "right": {name: mark.right for name, mark in marks.items()},
            "detail": {name: mark.detail for name, mark in marks.items() if mark.detail},
        }
        for each, marks in ordered
    ]
    try:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    except OSError as error:
        raise UnmaskError(f"{file} cannot be written: {error.strerror}") from None
