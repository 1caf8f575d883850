"""`unmask conformance`: golden cases of the original implementations against this build."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "conformance",
        help="replay golden cases of the original decoders against this build",
        description="Replays every golden case of a folder in float64 and float32, prints a table "
        "by family, what differs knowingly and why, and in the last line 'N passed, M failed'. "
        "Exits with 1 if a case failed.",
    )
    command.add_argument("folder", type=Path, metavar="DIR", help="where the golden cases are")
    command.add_argument(
        "--dtype",
        choices=("float64", "float32", "both"),
        default="both",
        help="the precision of the denoiser's logits (default: both)",
    )
    command.add_argument(
        "--failures", type=int, default=10, metavar="N", help="how many failures to show (10)"
    )
    command.add_argument("--json", action="store_true", help="print every outcome as JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Replay and report."""
    import torch

    from unmask.conformance import run as replay
    from unmask.errors import UnmaskError

    if not arguments.folder.is_dir():
        raise UnmaskError(f"{arguments.folder} is not a folder; give the one with the golden cases")
    torch.set_num_threads(1)  # the toy models are far too small for more
    names = ("float64", "float32") if arguments.dtype == "both" else (arguments.dtype,)
    report = replay(arguments.folder, [getattr(torch, name) for name in names])
    if arguments.json:
        outcomes = [vars(outcome) for outcome in report.outcomes]
        passed, failed = report.count("passed"), report.count("failed")
        print(json.dumps({"passed": passed, "failed": failed, "outcomes": outcomes}, indent=2))
    else:
        print("\n".join(report.lines(arguments.failures)))
    return 1 if report.count("failed") else 0
