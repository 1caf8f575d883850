"""`unmask export sglang`: writes a rule as a file for SGLang, and prints the command."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from unmask.decoding.options import EOS_POLICIES
from unmask.errors import RequestError

_PLAIN = {"eos": "keep", "temperature": 0.0, "top_p": 1.0, "top_k": 0, "tempered": False}
_ASKED = (*_PLAIN, "steps", "seed")


def add(targets: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the target."""
    command = targets.add_parser(
        "sglang",
        help="write a file for SGLang's --dllm-algorithm Unmask",
        description="Writes the file for SGLang's --dllm-algorithm-config and prints the command "
        "that serves with it: for LLaDA2 and SDAR, or for the checkpoint of --model, whose block "
        "and end tokens are then written too. SGLang finds the algorithm if unmask[sglang] is "
        "installed in its environment.",
        epilog="example: unmask export sglang --rule 'confidence | swd(5) | eb(0.1)' -o rule.yaml",
    )
    command.add_argument("--rule", default="swd", help="rule or recipe (default: swd)")
    command.add_argument("--model", metavar="PATH", help="folder of the checkpoint to serve")
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("rule.yaml"),
        metavar="FILE",
        help="file to write (default: rule.yaml)",
    )
    group = command.add_argument_group("decoding of each block")
    group.add_argument(
        "--eos",
        choices=EOS_POLICIES,
        default="keep",
        help="what the end token does (default: keep)",
    )
    group.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="finish a block within N forwards (default: no limit)",
    )
    group.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="0 is greedy (default: 0)"
    )
    group.add_argument(
        "--top-p", type=float, default=1.0, metavar="P", help="nucleus to draw from (default: 1)"
    )
    group.add_argument(
        "--top-k", type=int, default=0, metavar="K", help="tokens to draw from (default: 0, all)"
    )
    group.add_argument(
        "--tempered", action="store_true", help="score the distribution after temperature"
    )
    group.add_argument(
        "--seed", type=int, metavar="N", help="seed of all draws (default: one for each request)"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the file and print how to serve with it."""
    from unmask.integrations.sglang.launch import commands, file_text, options_for
    from unmask.models.describe import describe

    if arguments.eos != "keep" and arguments.model is None:
        raise RequestError(f"--eos {arguments.eos} needs --model, whose files name the end token")
    shape = None if arguments.model is None else describe(_folder(arguments.model))
    values = options_for(_given(arguments), shape)
    arguments.output.write_text(file_text(values))
    print(f"written: {arguments.output}")
    for line in commands(arguments.output, arguments.model):
        print(line)
    return 0


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    """The rule and the options that were given."""
    options = {name: getattr(arguments, name) for name in _ASKED}
    given = {name: value for name, value in options.items() if value != _PLAIN.get(name)}
    return {"rule": arguments.rule, **given}


def _folder(given: str) -> Path:
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise RequestError(f"--model {given}: no such folder; give the folder of a checkpoint")
    return folder
