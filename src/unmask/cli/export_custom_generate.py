"""`unmask export custom-generate`: a rule as a folder for transformers' generate."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from unmask.cli.run import EOS

_ASKED = ("block", "length", "eos", "steps", "history", "seed", "mask_id", "attention_block")
_SWITCHES = ("tempered", "shift")


def add(targets: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the target."""
    command = targets.add_parser(
        "custom-generate",
        help="a folder for generate(custom_generate=...) of transformers",
        description="Writes DIR/custom_generate/generate.py with its requirements and a README, so "
        "that model.generate(..., custom_generate=DIR, trust_remote_code=True) of transformers "
        "decodes by the rule. Everything that is written here can be said otherwise in a call.",
        epilog="example: unmask export custom-generate DIR --rule 'confidence | swd(5) | eb(0.1)'",
    )
    command.add_argument("folder", type=Path, metavar="DIR", help="a new folder, or a checkpoint's")
    group = command.add_argument_group("decoding")
    group.add_argument("--rule", default="swd", help="a rule or a recipe (swd)")
    group.add_argument("--block", metavar="N", help="positions per block, or full (the recipe's)")
    group.add_argument("--length", type=int, metavar="N", help="tokens to write (generate's)")
    group.add_argument("--eos", choices=EOS, help="what the end token means (keep)")
    group.add_argument("--steps", type=int, metavar="N", help="finish within N forwards")
    group.add_argument("--history", type=int, metavar="K", help="keep K tokens of a forward (all)")
    group.add_argument("--tempered", action="store_true", help="score what temperature leaves")
    group.add_argument("--seed", type=int, metavar="N", help="(0)")
    group = command.add_argument_group("the model, where its class and config do not say it")
    group.add_argument("--mask-id", type=int, metavar="ID", help="the mask token")
    group.add_argument("--shift", action="store_true", help="output i - 1 predicts token i (Dream)")
    group.add_argument("--attention-block", type=int, metavar="N", help="block-causal width (SDAR)")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the folder and say how to use it."""
    from unmask.integrations.transformers.custom_generate import write

    for file in write(arguments.folder, _options(arguments)):
        print(f"written: {file}")
    where = repr(str(arguments.folder))
    print(f"model.generate(**inputs, custom_generate={where}, trust_remote_code=True)")
    return 0


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The rule, and what was asked for besides."""
    from unmask.text.job import block_named

    found: dict[str, Any] = {"rule": arguments.rule}
    for name in _ASKED:
        value = getattr(arguments, name)
        if value is not None:
            found[name] = block_named(value) if name == "block" else value
    return found | {name: True for name in _SWITCHES if getattr(arguments, name)}
