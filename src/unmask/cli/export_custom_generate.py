"""`unmask export custom-generate`: writes a rule as a folder for transformers' generate."""

from __future__ import annotations

import argparse
from pathlib import Path

from unmask.cli.options import add_options, read_options
from unmask.integrations import GENERATE_OPTIONS


def add(targets: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the target."""
    command = targets.add_parser(
        "custom-generate",
        help="write a folder for generate(custom_generate=...) of transformers",
        description="Writes DIR/custom_generate/generate.py with its requirements and a README, so "
        "that model.generate(..., custom_generate=DIR, trust_remote_code=True) of transformers "
        "decodes by the rule. A call can override every option that is written here.",
        epilog="example: unmask export custom-generate DIR --rule 'confidence | swd(5) | eb(0.1)'",
    )
    command.add_argument(
        "folder",
        type=Path,
        metavar="DIR",
        help="folder to write into: a new one, or that of a checkpoint",
    )
    group = command.add_argument_group("decoding")
    names = [name for name in GENERATE_OPTIONS if name != "mask_id"]
    add_options(group, names, {"length": "max_new_tokens of the call"})
    group = command.add_argument_group("the model, if its class and config do not tell")
    add_options(group, ["mask_id"])
    group.add_argument("--shift", action="store_true", help="output i - 1 predicts token i (Dream)")
    group.add_argument(
        "--attention-block", type=int, metavar="N", help="width of block-causal attention (SDAR)"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the folder and print how to use it."""
    from unmask.integrations.transformers.custom_generate import write

    options = read_options(arguments).given()
    if arguments.attention_block is not None:
        options["attention_block"] = arguments.attention_block
    if arguments.shift:
        options["shift"] = True
    for file in write(arguments.folder, options):
        print(f"written: {file}")
    where = repr(str(arguments.folder))
    print(f"model.generate(**inputs, custom_generate={where}, trust_remote_code=True)")
    return 0
