"""`unmask theory`: the paper's lemma and bound, checked by enumeration."""

from __future__ import annotations

import argparse
import json


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "theory",
        help="check Lemma 1 and the Sensitivity-Dependency Bound on random small joints",
        description="Enumerates random small joints: the expected KL(current || previous) must "
        "equal the information gain and stay within the mutual information. Prints the largest "
        "violation, counter-examples for the other direction, and what the bound does and does "
        "not say. Exits with 1 if a violation is more than rounding.",
    )
    command.add_argument(
        "--cases", type=int, default=5000, metavar="N", help="how many joints (default: 5000)"
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="the same seed, the same joints (0)"
    )
    command.add_argument("--json", action="store_true", help="print the numbers as JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check and report."""
    from dataclasses import asdict

    from unmask.studies.theory import TOLERANCE, check, lines

    result = check(arguments.cases, arguments.seed)
    if arguments.json:
        print(
            json.dumps({"largest_violation": result.largest_violation, **asdict(result)}, indent=2)
        )
    else:
        print("\n".join(lines(result)))
    return 0 if result.largest_violation < TOLERANCE else 1
