"""`unmask conformance`: compares this build with golden cases of the original decoders."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from unmask.cli.options import examples


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "conformance",
        help="replay golden cases of the original decoders against this build",
        description="Replays every golden case of a folder in float64 and float32. Prints a table "
        "by family, proven ties and known differences with their reasons, and 'N passed, M failed' "
        "as the last line. A tie is a case in which the original took another position of exactly "
        "the same score in float64, and all else agrees. Exits with 1 if a case failed.",
        epilog=examples("unmask conformance tests/golden/decoders"),
    )
    option = command.add_argument
    option("folder", type=Path, metavar="DIR", help="folder of golden cases")
    dtype = "precision of the model's logits (default: both)"
    option("--dtype", choices=("float64", "float32", "both"), default="both", help=dtype)
    option("--failures", type=int, default=10, metavar="N", help="show N failures (default: 10)")
    option("--json", action="store_true", help="print every outcome as JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Replay the cases and print the report."""
    import torch

    from unmask.conformance import run as replay
    from unmask.errors import UnmaskError

    if not arguments.folder.is_dir():
        raise UnmaskError(
            f"{arguments.folder} is not a folder; give the folder of the golden cases"
        )
    torch.set_num_threads(1)  # the toy models are too small for more threads
    names = ("float64", "float32") if arguments.dtype == "both" else (arguments.dtype,)
    report = replay(arguments.folder, [getattr(torch, name) for name in names])
    if arguments.json:
        outcomes = [vars(outcome) for outcome in report.outcomes]
        counts = {"passed": report.count("passed"), "failed": report.count("failed")}
        counts["ties"] = report.count("tie")
        print(json.dumps({**counts, "outcomes": outcomes}, indent=2))
    else:
        print("\n".join(report.lines(arguments.failures)))
    return 1 if report.count("failed") else 0
