"""`unmask replay`: repeats the run of a trace, or branches off it under another rule."""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask.cli.options import add_import, examples
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
        description="Repeats the run of a trace and compares every step. The exit code is 0 if all "
        "decisions are the same, else 1. With --branch T the first T steps are repeated and --rule "
        "decides the rest.",
        epilog=examples(
            "unmask replay a.trace",
            'unmask replay a.trace --branch 3 --rule "confidence | eb(0.1)" -o b.trace',
        ),
    )
    option = command.add_argument
    option("trace", type=Path, metavar="TRACE", help="a file written by 'unmask run --trace'")
    option("--branch", type=int, metavar="T", help="repeat the first T steps, then use --rule")
    option("--rule", metavar="RULE", help="the rule that decides after --branch")
    add_import(command)
    option("-o", "--output", type=Path, metavar="FILE", help="write the new trace to FILE")
    option(
        "--model",
        metavar="PATH",
        help="folder or name of the model (default: the folder in the trace)",
    )
    option("--device", metavar="NAME", help="torch device (default: as in the trace)")
    option("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Repeat or branch the run, and print the outcome."""
    from unmask.rules.rule import Rule
    from unmask.trace import Trace
    from unmask.trace.recording.files import writable
    from unmask.trace.recording.replay import branch, replay

    if (arguments.branch is None) != (arguments.rule is None):
        raise RequestError("--branch T and --rule RULE go together; give both or neither")
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
    """Load the model as the trace describes it."""
    from unmask.models.fingerprint import fingerprint
    from unmask.models.load import is_here
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
    if arguments.model is None and not is_here(source.path):
        raise RequestError(
            f"{trace.name} names the model {source.path!r}, which is not a folder on this machine; "
            "to download it, give its name with --model, or give another folder"
        )
    description = source.describe()
    if kept.get("weights") not in (None, fingerprint(description.folder)):
        warnings.warn(f"{source.path} has other weights than the model of the trace", stacklevel=2)
    return source.load(description), description.tokenizer


def _tell(old: Trace, new: Trace, arguments: argparse.Namespace) -> int:
    from unmask.trace.recording.replay import difference

    first = difference(old, new)
    assert new.end is not None, "a replay runs to its end"
    if arguments.json:
        record = {"steps": len(new.moments), **new.end, "identical": first is None}
        record["difference"] = None if first is None else vars(first)
        print(json.dumps(record, ensure_ascii=False))
    else:
        print(new.end["text"])
        print(_verdict(old, new, arguments, str(first) if first else ""))
    decided = first is not None and first.what == "decision"
    return int(decided and arguments.rule is None)


def _verdict(old: Trace, new: Trace, arguments: argparse.Namespace, where: str) -> str:
    steps = f"{len(new.moments)} steps"
    if arguments.rule is not None:
        kept = f"{steps}, the first {arguments.branch} repeated"
        return f"{kept}; {where}" if where else f"{kept}; identical to the last bit"
    cut = "" if old.finished else f" (the trace was cut off after {len(old.moments)})"
    if not where:
        return f"{steps}{cut}: identical to the last bit"
    same = "the same decisions, but " if "numbers" in where else ""
    return f"{steps}{cut}: {same}{where}{_kernels(old, new)}"


def _kernels(old: Trace, new: Trace) -> str:
    """What a difference may come from, if both runs did not use the same kernel."""
    from unmask.kernels import MODULES, missing

    if old.kernel == new.kernel:
        return ""
    if not old.kernel:
        return f"; the trace does not name its kernel, and this run used {new.kernel!r}"
    name = old.kernel[:40]
    known = missing(name) if name in MODULES else "this version of unmask does not have it"
    reason = known or f"the model is on another device than {name!r} needs"
    return (
        f"; the trace was made with the kernel {name!r}, which cannot be used here ({reason}), "
        f"and this run used {new.kernel!r}; replay the trace where {name!r} can be used"
    )
