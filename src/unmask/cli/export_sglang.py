"""`unmask export sglang`: writes a rule as a file for SGLang, and prints the command."""

from __future__ import annotations

import argparse
from pathlib import Path

from unmask.cli.options import add_options, read_options
from unmask.errors import RequestError
from unmask.integrations import BLOCK_OPTIONS


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
    add_options(group, BLOCK_OPTIONS, {"seed": "a different one for each request"})
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the file and print how to serve with it."""
    from unmask.integrations.sglang.launch import commands, file_text, options_for
    from unmask.models.describe import describe

    options = read_options(arguments)
    if options.eos not in (None, "keep") and arguments.model is None:
        raise RequestError(f"--eos {options.eos} needs --model, whose files name the end token")
    checkpoint = None if arguments.model is None else describe(_folder(arguments.model))
    arguments.output.write_text(file_text(options_for(options, checkpoint)))
    print(f"written: {arguments.output}")
    for line in commands(arguments.output, arguments.model):
        print(line)
    return 0


def _folder(path: str) -> Path:
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise RequestError(f"--model {path}: no such folder; give the folder of a checkpoint")
    return folder
