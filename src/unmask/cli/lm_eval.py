"""`unmask lm-eval`: runs the command line of lm-evaluation-harness with our models."""

from __future__ import annotations

import argparse

from unmask.cli.options import add_import, examples, import_all
from unmask.decoding.options import OPTIONS, SAMPLING


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command; all of its arguments go to lm_eval."""
    names = [name for name in OPTIONS if name not in SAMPLING]
    command = subparsers.add_parser(
        "lm-eval",
        help="run lm-evaluation-harness with any rule",
        usage="unmask lm-eval --tasks NAMES [--model_args NAME=VALUE,...] [OPTION ...]",
        description="Registers the model 'unmask' and runs the command line of lm_eval. All its "
        "options and commands work; 'unmask lm-eval run --help' lists them. Changed defaults: "
        "--model unmask, --device cuda if there is a GPU, --batch_size 8. Model arguments: "
        f"pretrained (default: embedded), max_length, {', '.join(names)}, as in 'unmask run'; for "
        "likelihoods mc_num (default: 128) and check_greedy (default: true). --import FILE, "
        "anywhere on the line, first registers rule parts of a Python file or module. Needs the "
        "extra 'lm-eval'.",
        epilog=examples(
            "unmask lm-eval --tasks gsm8k --model_args pretrained=FOLDER,rule=swd,block=32",
        ),
        add_help=False,
        prefix_chars="\0",  # no argument is an option of unmask
    )
    command.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    command.set_defaults(run=run, print_help=command.print_help)


def run(arguments: argparse.Namespace) -> int:
    """Run lm_eval, or print the help."""
    if arguments.arguments in ([], ["-h"], ["--help"]):
        arguments.print_help()
        raise SystemExit(0)
    own = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    add_import(own)
    imports, words = own.parse_known_args(arguments.arguments)
    import_all(imports)
    from unmask.integrations.lm_eval.launch import launch

    launch(words)
    return 0
