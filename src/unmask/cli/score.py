"""`unmask score`: texts that were generated elsewhere, graded."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unmask.lab.benchmarks import Benchmark
    from unmask.lab.grading import Scorer, Tools
    from unmask.lab.grading.generations import GeneratedText, Generations
    from unmask.lab.grading.graded_texts import Marked


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "score",
        help="grade texts that were generated elsewhere, by our rules and by those of others",
        description="Grades a file of generated texts against a benchmark and prints the accuracy "
        "of each length with its 95% interval. Before it begins, the grader must find references "
        "right and spoiled references wrong. Programs that a model wrote run in the sandbox.",
        epilog="""a line of FILE is {"id": ..., "text": ...}, with "task" and "gen_length" if it
        holds several; the usual names of these fields are known, "doc_id" and "resps" too.
        examples: unmask score --task gsm8k --generations out.jsonl --data DIR;
        unmask score --task math500 --generations out.jsonl --data DIR --scorer all --json""",
    )
    command.add_argument(
        "--task", required=True, metavar="NAME", help="gsm8k, math500, humaneval..."
    )
    command.add_argument(
        "--generations", required=True, type=Path, metavar="FILE", help="texts as JSON lines"
    )
    command.add_argument(
        "--data", type=Path, metavar="DIR", help="where the benchmark's files are (from the hub)"
    )
    command.add_argument(
        "--scorer",
        action="append",
        metavar="NAME",
        help="may be given several times; all: every one (unmask, and daedal where there is one)",
    )
    command.add_argument("--length", type=int, metavar="N", help="only texts of this length (all)")
    command.add_argument(
        "--preset", metavar="NAME", help="the texts answer this preset's prompts: mind its prefill"
    )
    command.add_argument(
        "--limit", type=float, default=5.0, metavar="SECONDS", help="processor time per formula (5)"
    )
    command.add_argument(
        "--output", type=Path, metavar="FILE", help="write a JSON line per text here"
    )
    command.add_argument(
        "--allow-unsandboxed",
        action="store_true",
        help="run generated code though no sandbox is at hand",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read, check the grader, grade and report."""
    from unmask.lab.benchmarks import benchmark as named
    from unmask.lab.grading import Tools, Verifier, selftest
    from unmask.lab.grading.generations import read_generations
    from unmask.lab.grading.graded_texts import lines, record, summarised

    benchmark = named(arguments.task)
    names = arguments.scorer or [scorer.name for scorer in benchmark.graders]
    scorers = benchmark.chosen(names)
    examples = benchmark.load(arguments.data)
    found = read_generations(arguments.generations, benchmark.name, examples, arguments.length)
    judge = Tools.of([benchmark], arguments.allow_unsandboxed).judge
    with Tools(judge, Verifier(arguments.limit)) as tools:
        selftest(benchmark, examples, tools)
        marked = list(_marked(benchmark, found, scorers, tools, arguments.preset))
    if arguments.output is not None:
        _write(arguments.output, marked)
    reports = summarised(marked, scorers, len(examples))
    if arguments.json:
        print(json.dumps(record(benchmark, found, reports), indent=2))
    else:
        print("\n".join(lines(benchmark, found, reports)))
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
    seen = sys.stderr.isatty()
    for done, (number, marks) in enumerate(score(answers, scorers, tools), 1):
        if seen:
            print(f"\r{done}/{len(answers)}", end="", file=sys.stderr, flush=True)
        yield generations.texts[number], marks
    if seen:
        print(file=sys.stderr)


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
