"""`unmask replay`: the run of a trace again, or from some step on under another rule."""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask.cli.importing import add_import
from unmask.errors import RequestError

if TYPE_CHECKING:
    from unmask.models.denoiser import Denoiser
    from unmask.models.tokenizer import Tokenizer
    from unmask.trace import Trace


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "replay",
        help="repeat the run of a trace bit for bit, or branch off it under another rule",
        description="Runs what a trace holds once more and compares every step: exit code 0 if the "
        "decisions are the same, 1 if they are not. With --branch T the first T steps are kept as "
        "they were and the rest is decided by --rule.",
        epilog="""examples: unmask replay a.trace; unmask replay a.trace --branch 3
        --rule "confidence | eb(0.1)" -o b.trace""",
    )
    command.add_argument("trace", type=Path, metavar="TRACE", help="from unmask run --trace")
    command.add_argument("--branch", type=int, metavar="T", help="keep the first T steps only")
    command.add_argument("--rule", metavar="RULE", help="what decides after them")
    add_import(command)
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="keep the new trace")
    command.add_argument("--model", metavar="PATH", help="where the model is now (as in the trace)")
    command.add_argument("--device", metavar="NAME", help="(as in the trace)")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Repeat or branch, and tell what came of it."""
    from unmask.rules.rule import Rule
    from unmask.trace import Trace
    from unmask.trace.recording.files import writable
    from unmask.trace.recording.replay import branch, replay

    if (arguments.branch is None) != (arguments.rule is None):
        raise RequestError("--branch T and --rule RULE go together: from where, and how to go on")
    old = Trace.read(arguments.trace)
    output: Path | None = arguments.output
    if output is not None and output.exists() and output.samefile(arguments.trace):
        raise RequestError(f"{output} is the trace itself; give another --output")
    rule = None if arguments.rule is None else Rule.parse(arguments.rule)
    model, tokenizer = _model(old, arguments)
    if rule is None:
        made = replay(old, model, tokenizer)
    else:
        made = branch(old, model, arguments.branch, rule, tokenizer)
    if output is not None:
        with writable(output, "--output") as stream:
            stream.write(made)
    return _tell(old, Trace.of(made, "the new run"), arguments)


def _model(trace: Trace, arguments: argparse.Namespace) -> tuple[Denoiser, Tokenizer]:
    """Load the trace's model as it was loaded then."""
    from unmask.models.fingerprint import fingerprint
    from unmask.models.source import ModelSource

    kept: dict[str, Any] = trace.header["model"]
    if "path" not in kept and arguments.model is None:
        raise RequestError(
            f"{trace.name} does not say where its model is; give --model, or use "
            "unmask.trace.recording.replay.replay(trace, model) in Python"
        )
    known = {field.name for field in fields(ModelSource)}
    source = ModelSource(**{"path": "", **{k: v for k, v in kept.items() if k in known}})
    source = replace(
        source, path=arguments.model or source.path, device=arguments.device or source.device
    )
    description = source.describe()
    if kept.get("weights") not in (None, fingerprint(description.folder)):
        warnings.warn(f"{source.path} has other weights than the model of the trace", stacklevel=2)
    return source.load(description), description.tokenizer


def _tell(old: Trace, new: Trace, arguments: argparse.Namespace) -> int:
    from unmask.trace.recording.replay import difference

    found = difference(old, new)
    assert new.end is not None, "a replay runs to its end"
    if arguments.json:
        record = {"steps": len(new.moments), **new.end, "identical": found is None}
        record["difference"] = None if found is None else vars(found)
        print(json.dumps(record, ensure_ascii=False))
    else:
        print(new.end["text"])
        print(_verdict(old, new, arguments, str(found) if found else ""))
    decided = found is not None and found.what == "decision"
    return int(decided and arguments.rule is None)


def _verdict(old: Trace, new: Trace, arguments: argparse.Namespace, found: str) -> str:
    steps = f"{len(new.moments)} steps"
    if arguments.rule is not None:
        kept = f"{steps}, the first {arguments.branch} as they were"
        return f"{kept}; {found}" if found else f"{kept}; the same run to the last bit"
    cut = "" if old.finished else f" (the trace was cut off after {len(old.moments)})"
    if not found:
        return f"{steps}{cut}: identical to the last bit"
    same = "the same decisions, but " if "numbers" in found else ""
    return f"{steps}{cut}: {same}{found}"
