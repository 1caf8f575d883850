"""`unmask export custom-generate`: writes a rule as a folder for transformers' generate."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from unmask.decoding.options import EOS_POLICIES

_ASKED = ("block", "length", "eos", "steps", "history", "seed", "mask_id", "attention_block")
_SWITCHES = ("tempered", "shift")


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
    group.add_argument("--rule", default="swd", help="rule or recipe (default: swd)")
    group.add_argument(
        "--block", metavar="N", help="positions per block, or full (default: the recipe's)"
    )
    group.add_argument(
        "--length", type=int, metavar="N", help="tokens to write (default: max_new_tokens)"
    )
    group.add_argument(
        "--eos", choices=EOS_POLICIES, help="what the end token does (default: keep)"
    )
    group.add_argument(
        "--steps", type=int, metavar="N", help="finish within N forwards (default: no limit)"
    )
    group.add_argument(
        "--history", type=int, metavar="K", help="tokens to keep of a forward (default: all)"
    )
    group.add_argument(
        "--tempered", action="store_true", help="score the distribution after temperature"
    )
    group.add_argument("--seed", type=int, metavar="N", help="seed of all draws (default: 0)")
    group = command.add_argument_group("the model, if its class and config do not tell")
    group.add_argument("--mask-id", type=int, metavar="ID", help="id of the mask token")
    group.add_argument("--shift", action="store_true", help="output i - 1 predicts token i (Dream)")
    group.add_argument(
        "--attention-block", type=int, metavar="N", help="width of block-causal attention (SDAR)"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the folder and print how to use it."""
    from unmask.integrations.transformers.custom_generate import write

    for file in write(arguments.folder, _options(arguments)):
        print(f"written: {file}")
    where = repr(str(arguments.folder))
    print(f"model.generate(**inputs, custom_generate={where}, trust_remote_code=True)")
    return 0


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The rule and the options that were given."""
    from unmask.text.job import block_named

    options: dict[str, Any] = {"rule": arguments.rule}
    for name in _ASKED:
        value = getattr(arguments, name)
        if value is not None:
            options[name] = block_named(value) if name == "block" else value
    return options | {name: True for name in _SWITCHES if getattr(arguments, name)}
