"""`unmask theory`: checks the paper's lemma and bound by enumeration."""

from __future__ import annotations

import argparse
import json


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "theory",
        help="check Lemma 1 and the Sensitivity-Dependency Bound on random distributions",
        description="Enumerates random small joint distributions. The expected KL(current || "
        "previous) must equal the information gain and must not exceed the mutual information. "
        "Prints the largest violation, counter-examples for the other direction of the KL, and "
        "what the bound does and does not say. Then checks what the free position of eb costs. "
        "Exits with 1 if a violation exceeds rounding.",
    )
    option = command.add_argument
    option("--cases", type=int, default=5000, metavar="N", help="number of cases (default: 5000)")
    option("--seed", type=int, default=0, metavar="N", help="seed of the draws (default: 0)")
    option("--json", action="store_true", help="print the numbers as JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check the bound and print a report."""
    from dataclasses import asdict

    from unmask.studies.free_slot import check_free_slot, free_slot_lines
    from unmask.studies.theory import TOLERANCE, check, lines

    result = check(arguments.cases, arguments.seed)
    free = check_free_slot(arguments.cases, arguments.seed)
    if arguments.json:
        told = {"largest_violation": result.largest_violation, **asdict(result)}
        told["free_slot"] = {"largest_violation": free.largest_violation, **asdict(free)}
        print(json.dumps(told, indent=2))
    else:
        print("\n".join([*lines(result), *free_slot_lines(free)]))
    holds = result.largest_violation < TOLERANCE and free.largest_violation < TOLERANCE
    return 0 if holds else 1
