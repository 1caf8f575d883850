"""`unmask run`: a prompt, or a file of them, through a model."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from unmask.cli.importing import add_import
from unmask.embedded import NAME
from unmask.errors import RequestError

if TYPE_CHECKING:
    from unmask.decoding.request import Request
    from unmask.text.answers import Answer
    from unmask.text.job import Job
    from unmask.text.jsonl import AnswerFile, Line
    from unmask.trace.recording.files import TraceFiles

EOS = ("keep", "suppress", "last", "stop", "block", "fill")
CACHES = ("none", "prefix", "dual", "delayed", "block")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "run",
        help="continue a prompt, fill the masks of a text, or answer a file of prompts",
        description="Prints the text on stdout and its cost on stderr. Without PROMPT, or with -, "
        "the prompt is read from stdin. With --input it answers a file of JSON lines, batched; an "
        "interrupted run goes on where it was when it is called again.",
        epilog="""examples: unmask run "Ann has 12 pens. She buys 3, then
        loses 5. How many now?" --watch; unmask run "2 + 2 =" --model FOLDER --rule swd-block32;
        unmask run --model FOLDER --input in.jsonl --output out.jsonl; a line of in.jsonl is
        {"prompt": "..."}, {"messages": [...]} or {"canvas": "text with [MASK*8]"}, with an "id"
        and a "seed" of its own if you like""",
    )
    command.add_argument("prompt", nargs="?", metavar="PROMPT", help="the prompt; - reads stdin")
    add_model(command.add_argument_group("model"))
    add_decoding(command.add_argument_group("decoding"))
    _add_prompt(command.add_argument_group("prompt"))
    _add_output(command.add_argument_group("input and output"))
    command.set_defaults(run=run)


def add_model(group: argparse._ArgumentGroup) -> None:
    """Which model, in `run` and in `serve`."""
    group.add_argument(
        "--model", default=NAME, metavar="PATH", help="a folder or a hub id (embedded)"
    )
    group.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), help="(as stored)")
    group.add_argument("--device", metavar="NAME", help="(cuda where there is one, else cpu)")
    group.add_argument("--mask-id", type=int, metavar="ID", help="if the files name a wrong one")
    group.add_argument("--cache", choices=CACHES, default="none", help="keys and values (none)")
    group.add_argument(
        "--guidance", type=float, metavar="SCALE", help="classifier-free; twice the work a step"
    )


def add_decoding(group: argparse._ArgumentGroup) -> None:
    """How it decodes; in `serve`, what a request leaves open."""
    group.add_argument("--rule", default="swd", help="a rule or a recipe (swd)")
    add_import(group)
    group.add_argument(
        "--length", type=int, metavar="N", help="tokens to write (the recipe's, 256; embedded: 48)"
    )
    group.add_argument(
        "--block",
        metavar="N",
        help="positions per block, or full (the recipe's, else full); of a block-causal model "
        "also the width of its attention (the model's)",
    )
    group.add_argument("--eos", choices=EOS, help="what the end token means (keep)")
    group.add_argument("--steps", type=int, metavar="N", help="finish within N forwards")
    group.add_argument(
        "--history", type=int, metavar="K",
        help="keep the K likeliest tokens of the last forward, not all its logits (all)",
    )  # fmt: skip
    group.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0: greedy (0)")
    group.add_argument("--top-p", type=float, default=1.0, metavar="P", help="(1)")
    group.add_argument("--top-k", type=int, default=0, metavar="K", help="0: all tokens (0)")
    group.add_argument("--tempered", action="store_true", help="score what temperature leaves")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="(0)")


def _add_prompt(group: argparse._ArgumentGroup) -> None:
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--chat", action="store_const", const=True, help="use the chat template (if there is one)"
    )
    form.add_argument(
        "--raw", dest="chat", action="store_const", const=False, help="take the prompt as it is"
    )
    group.add_argument("--system", metavar="TEXT", help="the system message of the chat")
    group.add_argument(
        "--infill", action="store_true", help="fill [MASK], or [MASK*8], wherever the prompt has it"
    )


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("--watch", action="store_true", help="show the canvas after each step")
    group.add_argument(
        "--trace",
        metavar="FILE",
        help="write every step here, for replay, explain, figure and page; with --input a folder",
    )
    group.add_argument("--input", metavar="FILE", help="JSON lines; - reads stdin")
    group.add_argument("--output", metavar="FILE", help="append the answers here (stdout)")
    group.add_argument("--batch-size", type=int, default=8, metavar="N", help="rows at once (8)")


def run(arguments: argparse.Namespace) -> int:
    """Answer one prompt, or many."""
    _check(arguments)
    from unmask.text.job import Job

    if arguments.input is not None:
        _many(Job.of(arguments), arguments)
    else:
        prompt = _prompt(arguments.prompt)
        _one(Job.of(arguments), prompt, arguments)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Options that contradict each other."""
    many = arguments.input is not None
    wrong = {
        "--input and PROMPT are given; give one of them": many and arguments.prompt is not None,
        "--watch shows a single prompt, not an --input file": many and arguments.watch,
        "--output is for the answers to --input; to keep a single one, redirect stdout": (
            not many and arguments.output is not None
        ),
        "--output must name a file, so that an interrupted run can go on": (
            str(arguments.output) == "-"
        ),
        "--watch draws for people and --json prints for programs; give one of them": (
            arguments.watch and arguments.json
        ),
        "--infill writes where the masks are, so it takes no --length": (
            arguments.infill and arguments.length is not None
        ),
        f"--batch-size must be >= 1, got {arguments.batch_size}": arguments.batch_size < 1,
        f"--seed must be >= 0, got {arguments.seed}": arguments.seed < 0,
    }
    for message, holds in wrong.items():
        if holds:
            raise RequestError(message)


def _prompt(given: str | None) -> str:
    """The prompt itself, or all of stdin but its last line break."""
    if given not in (None, "-"):
        return str(given)
    if given is None and sys.stdin.isatty():
        raise RequestError("no prompt; give one, pipe one in, or name a file with --input")
    try:
        return sys.stdin.read().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise RequestError(f"stdin is no UTF-8 text: {error}") from None


def _one(job: Job, text: str, arguments: argparse.Namespace) -> None:
    from unmask.cli.terminal import has_colour
    from unmask.text.answers import generate
    from unmask.text.clock import Clock
    from unmask.text.watch import Watch
    from unmask.trace.recording.files import together

    request = job.request(job.texts.of_text(text, arguments.seed))
    tokenizer, spec = job.shape.tokenizer, job.shape.spec
    watch = Watch(tokenizer, spec, request, sys.stdout, has_colour()) if arguments.watch else None
    with _traced(job, [request], arguments) as traces:
        see = together(watch, traces)
        answers = generate(job.load(), tokenizer, [request], 1, see, traces is not None, Clock())
        _, answer = next(answers)
    if watch is not None:
        watch.close()
    if arguments.json:
        print(json.dumps(job.record(answer, arguments.seed), ensure_ascii=False))
    else:
        print(answer.text, flush=True)
        print(_summary(answer), file=sys.stderr)


def _summary(answer: Answer) -> str:
    rate, seconds = answer.tokens_per_forward, answer.seconds
    ended = answer.eos_found
    parts = [
        f"NFE {answer.nfe}" + (f" ({answer.nfe_eos} until EOS)" if ended else ""),
        f"{answer.tokens} tokens" + (" before EOS" if ended else ""),
        f"{rate['nominal']:.2f} tokens/forward nominal, {rate['effective']:.2f} effective",
        f"{seconds.total:.2f} s: model {seconds.model:.2f}, decision {seconds.decision:.2f}",
    ]
    if answer.kl_error:
        parts.append(f"sparse history: a KL was too low by {answer.kl_error:.2g} at the most")
    if answer.cut_off:
        parts.append(f"cut off: no EOS within {answer.written} tokens")
    return "; ".join(parts)


def _many(job: Job, arguments: argparse.Namespace) -> None:
    from unmask.text.answers import generate
    from unmask.text.clock import Clock
    from unmask.text.jsonl import AnswerFile, write

    lines = _lines(job, arguments)
    output = None
    if arguments.output is not None:
        output = AnswerFile(Path(arguments.output), job.settings_record)
    requests = [_request(job, line) for line in lines]
    missing = list(output.unanswered(lines) if output else range(len(lines)))
    done, todo = len(lines) - len(missing), [requests[number] for number in missing]
    with _stream(output) as stream, _progress(len(lines)) as progress:
        progress(done)
        if not todo:
            return
        with _traced(job, todo, arguments, missing) as traces:
            model, kept = job.load(), traces is not None
            size, tokenizer = arguments.batch_size, job.shape.tokenizer
            for key, answer in generate(model, tokenizer, todo, size, traces, kept, Clock()):
                line = lines[missing[key]]
                record = job.record(answer, line.prompt.seed)
                write(stream, {"id": line.id, "asked": line.sha, **record})
                progress(done := done + 1)


@contextmanager
def _traced(
    job: Job, requests: list[Request], arguments: argparse.Namespace, lines: Sequence[int] = ()
) -> Iterator[TraceFiles | None]:
    """Writes traces where they are asked for: a file, or of many prompts a folder of them."""
    if arguments.trace is None:
        yield None
        return
    from unmask.trace.recording.files import TraceFiles, made_folder, writable

    path = Path(arguments.trace)
    if lines:
        made_folder(path)
    else:
        writable(path).close()
    with TraceFiles(
        lambda key: path / f"{lines[key] + 1}.trace" if lines else path,
        lambda key, stream: job.tracer(stream, requests[key]),
        lambda result: job.text_of(result, requests[result.key]),
    ) as traces:
        yield traces


def _lines(job: Job, arguments: argparse.Namespace) -> list[Line]:
    from unmask.text.jsonl import read_prompts

    if arguments.input == "-":
        return read_prompts(sys.stdin.buffer, "stdin", job.texts, arguments.seed)
    file = Path(arguments.input)
    output = Path(arguments.output or "")
    try:
        if arguments.output and output.exists() and output.samefile(file):
            raise RequestError(f"{file} is both --input and --output; give another --output")
        with file.open("rb") as stream:
            return read_prompts(stream, arguments.input, job.texts, arguments.seed)
    except OSError as error:
        raise RequestError(f"{file} cannot be read: {error.strerror}") from None


def _request(job: Job, line: Line) -> Request:
    try:
        return job.request(line.prompt)
    except RequestError as error:
        raise RequestError(f"{line.place}: {error}") from None


@contextmanager
def _stream(output: AnswerFile | None) -> Iterator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        return
    with output.open() as stream:
        yield stream


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Counts on stderr where that is a terminal."""
    seen = sys.stderr.isatty()

    def show(done: int) -> None:
        if seen:
            print(f"\r{done}/{total}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if seen:
            print(file=sys.stderr)
