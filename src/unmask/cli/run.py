"""`unmask run`: answers a prompt, or a file of prompts."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask import __version__
from unmask.cli.options import (
    DECODING,
    MODEL,
    add_import,
    add_language,
    add_options,
    positive,
    refuse,
    session_of,
    shown_count,
)
from unmask.decoding.options import MOST, Option
from unmask.embedded import NAME, PROMPTS
from unmask.errors import RequestError

if TYPE_CHECKING:
    from unmask.decoding.request import Request
    from unmask.text.answers import Answer
    from unmask.text.jsonl import Line
    from unmask.text.prompts import PromptFormat
    from unmask.text.session import Session
    from unmask.trace.recording.files import Traces

EXAMPLES = f"""\
The embedded model does small sums, lists and functions:
  unmask run "{PROMPTS[0]}" --watch
  unmask run "{PROMPTS[1]}"
  unmask run "{PROMPTS[2]}"

Other models, and files of prompts:
  unmask run "2 + 2 =" --model FOLDER --rule swd-block32
  unmask run --model FOLDER --input in.jsonl --output out.jsonl

A line of in.jsonl is {{"prompt": "..."}}, {{"messages": [...]}} or
{{"canvas": "text with [MASK*8]"}}, and may have an "id" and a "seed".
"""
SPEED = 8  # steps per second that can be read


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "run",
        help="continue a prompt, fill the masks of a text, or answer a file of prompts",
        description="Prints the text on stdout and its cost on stderr. Without PROMPT, or with -, "
        "the prompt is read from stdin. With --input it answers a file of JSON lines; after an "
        "interruption, the same command continues.",
        epilog=EXAMPLES,
    )
    command.add_argument(
        "prompt", nargs="?", metavar="PROMPT", help="prompt; - reads it from stdin (default: -)"
    )
    add_model(command.add_argument_group("model"))
    add_decoding(command.add_argument_group("decoding"))
    _add_prompt(command.add_argument_group("prompt"))
    _add_output(command.add_argument_group("input and output"))
    command.set_defaults(run=run, resume=resume)


def add_model(group: argparse._ArgumentGroup) -> None:
    """Add the options that say which model to load, for `run` and `serve`."""
    option = group.add_argument
    model = "checkpoint folder or hub id (default: embedded, the model inside the package)"
    option("--model", default=NAME, metavar="PATH", help=model)
    option(
        "--device", metavar="NAME", help="torch device (default: cuda if there is one, else cpu)"
    )
    context = "most positions of prompt and answer (default: the checkpoint's own limit)"
    option("--context", type=positive, metavar="N", help=context)
    add_options(group, MODEL)


def add_decoding(group: argparse._ArgumentGroup) -> None:
    """Add the options that say how to decode; in `serve` they are the defaults of requests."""
    add_options(group, DECODING)
    add_language(group)
    add_import(group)


def _add_prompt(group: argparse._ArgumentGroup) -> None:
    form = group.add_mutually_exclusive_group()
    chat = "use the chat template (default: if it exists)"
    form.add_argument("--chat", action="store_const", const=True, help=chat)
    form.add_argument(
        "--raw", dest="chat", action="store_const", const=False, help="use no chat template"
    )
    option = group.add_argument
    option("--system", metavar="TEXT", help="system message of the chat")
    add_control(group)
    option("--infill", action="store_true", help="fill each [MASK], or [MASK*8], in the prompt")


def add_control(group: argparse._ArgumentGroup) -> None:
    """Add the option that trusts the messages of a chat, for `run` and `serve`."""
    group.add_argument(
        "--control-tokens", action="store_true",
        help="let control tokens in messages, such as <|eot_id|>, be tokens (default: text)",
    )  # fmt: skip


def _add_output(group: argparse._ArgumentGroup) -> None:
    option = group.add_argument
    option("--json", action="store_true", help="print JSON")
    option("--verbose", action="store_true", help="print the cost of an answer in full")
    logprobs = "add to JSON the prompt's ids, each token's log-probability and K alternatives"
    option("--logprobs", type=int, metavar="K", help=logprobs)
    option("--watch", action="store_true", help="show the canvas after each step")
    speed = f"steps per second of --watch in a terminal; 0 does not wait (default: {SPEED})"
    option("--speed", metavar="N", help=speed)
    trace = "write every step to this file (with --input: folder); see explain, page, replay"
    option("--trace", metavar="FILE", help=trace)
    option("--input", metavar="FILE", help="answer these JSON lines; - reads stdin")
    option("--output", metavar="FILE", help="append answers to this file (default: stdout)")
    option("--batch-size", type=int, default=8, metavar="N", help="rows per batch (default: 8)")


def run(arguments: argparse.Namespace) -> int:
    """Answer one prompt, or many."""
    _check(arguments)
    text = None if arguments.input is not None else _prompt(arguments.prompt)
    session = session_of(arguments)
    form = session.format(arguments.chat, arguments.system, arguments.infill)
    if text is None:
        _many(session, form, arguments)
    else:
        _one(session, form, text, arguments)
    return 0


def say_rule(command: str, session: Session, infill: bool = False) -> None:
    """Say on stderr which rule decodes and why, if none was asked for."""
    recommended = session.resolve(infill=infill).recommended
    if recommended is not None:
        print(f"unmask {command}: rule {recommended.words}", file=sys.stderr, flush=True)


def resume(arguments: argparse.Namespace) -> str:
    """The end of the line that an interrupt prints: how to continue."""
    if arguments.output is None:
        return ""
    return f"; finished answers are in {arguments.output}; run the same command again to resume"


def _check(arguments: argparse.Namespace) -> None:
    """Raise if two options contradict each other."""
    many = arguments.input is not None
    wrong = {
        "--input and PROMPT are given; give one of them": many and arguments.prompt is not None,
        "--watch shows a single prompt, not an --input file": many and arguments.watch,
        "--output needs --input; redirect stdout to keep a single answer": (
            not many and arguments.output is not None
        ),
        "--output must name a file, so that an interrupted run can continue": (
            str(arguments.output) == "-"
        ),
        "--speed is the speed of --watch; give both": (
            arguments.speed is not None and not arguments.watch
        ),
        "--watch and --json are given; give one of them": (arguments.watch and arguments.json),
        "--infill fills the given masks, so it takes no --length": (
            arguments.infill and arguments.length is not None
        ),
        f"--batch-size must be from 1 to {MOST}, got {arguments.batch_size}": (
            not 1 <= arguments.batch_size <= MOST
        ),
        "--logprobs goes into JSON; give --json or --input": (
            arguments.logprobs is not None and not many and not arguments.json
        ),
        f"--logprobs must be from 0 to 20, got {arguments.logprobs}": (
            arguments.logprobs is not None and not 0 <= arguments.logprobs <= 20
        ),
    }
    refuse(wrong)


def _prompt(text: str | None) -> str:
    """The prompt, or stdin without its last line break."""
    if text not in (None, "-"):
        return str(text)
    if sys.stdin is None or (text is None and sys.stdin.isatty()):
        raise RequestError("no prompt; give one, pipe one in, or name a file with --input")
    try:
        return sys.stdin.read().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise RequestError(f"stdin is not UTF-8 text: {error}") from None


def _one(session: Session, form: PromptFormat, text: str, arguments: argparse.Namespace) -> None:
    from unmask.text.logprobs import RunLogprobs
    from unmask.text.terminal import has_colour
    from unmask.text.watch import Watch
    from unmask.trace.recording.files import together

    seed = session.options.seed or 0
    request = session.request(form.of_text(text, seed))
    watch, speed = None, _speed(arguments.speed)
    if arguments.watch:
        watch = Watch(session, request, sys.stdout, has_colour(), speed)
    with _traced(session, [request], arguments) as traces:
        say_rule("run", session, arguments.infill)
        logs = RunLogprobs(arguments.logprobs, session.spec.mask_id)
        see, keep = together(watch, traces, logs), traces is not None or logs.wanted
        _, answer = next(
            session.decode([request], on_step=see, keep_logits=keep, timed=arguments.verbose)
        )
    if arguments.json:
        record = {**_record(session, form, answer, seed), **logs.record(0, request, answer)}
        print(json.dumps(record, ensure_ascii=False))
    else:
        print(answer.text, flush=True)
        print(_cost(answer, arguments.verbose), file=sys.stderr)


def _speed(text: str | None) -> float:
    """Steps per second; 0 does not wait."""
    number: float = Option("number", "", "", most=1000).parse("--speed", text or str(SPEED))
    return number


def _record(session: Session, form: PromptFormat, answer: Answer, seed: int) -> dict[str, Any]:
    """An answer with its seed, model and settings, for JSON."""
    return {
        **answer.record(),
        "seed": seed,
        "model": session.name,
        "device": str(session.device),
        "settings": session.settings_record(form),
        "version": __version__,
    }


def _cost(answer: Answer, verbose: bool) -> str:
    """What an answer cost: passes, tokens and seconds; in full with --verbose."""
    rate, seconds = answer.tokens_per_forward, answer.seconds
    ended, plural = answer.eos_found, "es" if answer.nfe != 1 else ""
    parts = [
        f"{answer.nfe} forward pass{plural}, {answer.tokens} tokens "
        f"({answer.tokens / answer.nfe:.2f} per pass), {seconds.total:.2f} s"
    ]
    if verbose:
        parts = [
            f"NFE {answer.nfe}" + (f" ({answer.nfe_eos} until EOS)" if ended else ""),
            f"{answer.tokens} tokens" + (" before EOS" if ended else ""),
            f"{rate['nominal']:.2f} tokens/forward nominal, {rate['effective']:.2f} effective",
            f"{seconds.total:.2f} s: model {seconds.model:.2f}, decision {seconds.decision:.2f}",
        ]
    if answer.kl_error:
        parts.append(f"sparse history: a KL was too low by at most {answer.kl_error:.2g}")
    if answer.cut_off:
        parts.append(f"cut off: no EOS within {answer.written} tokens")
    return "; ".join(parts)


def _many(session: Session, form: PromptFormat, arguments: argparse.Namespace) -> None:
    from unmask.text.jsonl import AnswerFile, write
    from unmask.text.logprobs import RunLogprobs
    from unmask.trace.recording.files import together

    lines = _lines(session, form, arguments)
    output = None
    if arguments.output is not None:
        output = AnswerFile(Path(arguments.output), session.settings_record(form))
    requests = [_request(session, line) for line in lines]
    missing = list(output.unanswered(lines) if output else range(len(lines)))
    done, todo = len(lines) - len(missing), [requests[number] for number in missing]
    stdout = nullcontext(sys.stdout.buffer)
    with output.open() if output else stdout as stream, shown_count(len(lines)) as progress:
        progress(done)
        if not todo:
            return
        with _traced(session, todo, arguments, missing) as traces:
            say_rule("run", session, arguments.infill)
            logs, size = RunLogprobs(arguments.logprobs, session.spec.mask_id), arguments.batch_size
            see, keep = together(traces, logs), traces is not None or logs.wanted
            for key, answer in session.decode(todo, None, size, see, keep, arguments.verbose):
                line = lines[missing[key]]
                record = _record(session, form, answer, line.prompt.seed)
                record |= logs.record(key, todo[key], answer)
                write(stream, {"id": line.id, "asked": line.sha, **record})
                progress(done := done + 1)


@contextmanager
def _traced(
    session: Session,
    requests: list[Request],
    arguments: argparse.Namespace,
    lines: Sequence[int] = (),
) -> Iterator[Traces | None]:
    """Writes traces if --trace was given: one file, or for many prompts a folder of files."""
    if arguments.trace is None:
        yield None
        return
    from unmask.trace.recording.files import Traces, made_folder, writable

    path = Path(arguments.trace)
    if lines:
        made_folder(path)
    else:
        writable(path).close()
    with Traces(
        lambda key: writable(path / f"{lines[key] + 1}.trace" if lines else path),
        lambda key, stream: session.tracer(stream, requests[key]),
    ) as traces:
        yield traces


def _lines(session: Session, form: PromptFormat, arguments: argparse.Namespace) -> list[Line]:
    from unmask.models.untrusted import opened
    from unmask.text.jsonl import read_prompts

    seed = session.options.seed or 0
    if arguments.input == "-":
        if sys.stdin is None:
            raise RequestError("stdin is closed; name a file with --input, or pipe one in")
        return read_prompts(sys.stdin.buffer, "stdin", form, seed)
    file = Path(arguments.input)
    output = Path(arguments.output or "")
    try:
        if arguments.output and output.exists() and output.samefile(file):
            raise RequestError(f"{file} is both --input and --output; give another --output")
        with opened(file) as stream:
            return read_prompts(stream, arguments.input, form, seed)
    except OSError as error:
        raise RequestError(f"{file} cannot be read: {error.strerror}") from None


def _request(session: Session, line: Line) -> Request:
    try:
        return session.request(line.prompt)
    except RequestError as error:
        raise RequestError(f"{line.place}: {error}") from None
