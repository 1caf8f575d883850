"""`unmask export`: writes a rule for another program."""

from __future__ import annotations

import argparse
from pathlib import Path

from unmask.cli.options import add_import, add_options, examples, read_options
from unmask.errors import RequestError
from unmask.integrations import BLOCK_OPTIONS, GENERATE_OPTIONS


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and its targets."""
    command = subparsers.add_parser(
        "export",
        help="write a rule for another program",
        description="Writes files that make another program decode by a rule of unmask, and "
        "prints how to call that program.",
        epilog="'unmask export TARGET --help' lists the options of a target.",
    )
    targets = command.add_subparsers(dest="target", metavar="TARGET", required=True)
    _add_sglang(targets)
    _add_custom_generate(targets)


def _add_sglang(targets: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = targets.add_parser(
        "sglang",
        help="write a file for SGLang's --dllm-algorithm Unmask",
        description="Writes the file for SGLang's --dllm-algorithm-config and prints the command "
        "that serves with it: for LLaDA2 and SDAR, or for the checkpoint of --model, whose block "
        "and end tokens are then written too. SGLang finds the algorithm if unmask[sglang] is "
        "installed in its environment.",
        epilog=examples("unmask export sglang --rule 'confidence | swd(5) | eb(0.1)' -o rule.yaml"),
    )
    option = command.add_argument
    option("--model", metavar="PATH", help="folder of the checkpoint to serve")
    output = "file to write (default: rule.yaml)"
    option("-o", "--output", type=Path, default=Path("rule.yaml"), metavar="FILE", help=output)
    group = command.add_argument_group("decoding of each block")
    add_options(group, BLOCK_OPTIONS, {"seed": "a different one for each request"})
    add_import(group)
    command.set_defaults(run=run_sglang)


def _add_custom_generate(targets: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = targets.add_parser(
        "custom-generate",
        help="write a folder for generate(custom_generate=...) of transformers",
        description="Writes DIR/custom_generate/generate.py with its requirements and a README, so "
        "that model.generate(..., custom_generate=DIR, trust_remote_code=True) of transformers "
        "decodes by the rule. A call can override every option that is written here.",
        epilog=examples("unmask export custom-generate DIR --rule 'confidence | swd(5) | eb(0.1)'"),
    )
    folder = "folder to write into: a new one, or that of a checkpoint"
    command.add_argument("folder", type=Path, metavar="DIR", help=folder)
    group = command.add_argument_group("decoding")
    names = [name for name in GENERATE_OPTIONS if name != "mask_id"]
    add_options(group, names, {"length": "max_new_tokens of the call"})
    add_import(group)
    group = command.add_argument_group("the model, if its class and config do not tell")
    add_options(group, ["mask_id"])
    group.add_argument("--shift", action="store_true", help="output i - 1 predicts token i (Dream)")
    group.add_argument(
        "--attention-block", type=int, metavar="N", help="width of block-causal attention (SDAR)"
    )
    command.set_defaults(run=run_custom_generate)


def run_sglang(arguments: argparse.Namespace) -> int:
    """Write the file and print how to serve with it."""
    from unmask.integrations.sglang.launch import commands, file_text, options_for
    from unmask.models.describe import describe

    options = read_options(arguments)
    if options.eos not in (None, "keep") and arguments.model is None:
        raise RequestError(f"--eos {options.eos} needs --model, whose files name the end token")
    checkpoint = None if arguments.model is None else describe(_folder(arguments.model))
    imports = {"imports": arguments.imports} if arguments.imports else {}
    arguments.output.write_text(file_text(imports | options_for(options, checkpoint)))
    print(f"written: {arguments.output}")
    for line in commands(arguments.output, arguments.model):
        print(line)
    return 0


def _folder(path: str) -> Path:
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise RequestError(f"--model {path}: no such folder; give the folder of a checkpoint")
    return folder


def run_custom_generate(arguments: argparse.Namespace) -> int:
    """Write the folder and print how to use it."""
    from unmask.integrations.transformers.custom_generate import write

    options = read_options(arguments).given()
    if arguments.attention_block is not None:
        options["attention_block"] = arguments.attention_block
    if arguments.shift:
        options["shift"] = True
    for file in write(arguments.folder, options, arguments.imports):
        print(f"written: {file}")
    where = repr(str(arguments.folder))
    print(f"model.generate(**inputs, custom_generate={where}, trust_remote_code=True)")
    return 0
