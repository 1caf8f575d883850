"""`unmask lm-eval`: lm-evaluation-harness's own command line, with our models in it."""

from __future__ import annotations

import argparse


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command; all it is given belongs to lm_eval."""
    command = subparsers.add_parser(
        "lm-eval",
        help="lm-evaluation-harness with any rule",
        usage="unmask lm-eval --tasks NAMES [--model_args NAME=VALUE,...] [OPTION ...]",
        description="Registers the model 'unmask' and hands over to the command line of lm_eval: "
        "all its options are understood, its commands ls and validate too. --model is unmask, "
        "--device cuda where there is one, else cpu, and --batch_size 8 unless they are given. "
        "Model arguments: pretrained (embedded), rule (swd), length, block, eos, steps, dtype, "
        "mask_id, cache, guidance, seed (0), max_length; of likelihoods mc_num (128) and "
        "check_greedy (true). 'unmask lm-eval run --help' lists lm_eval's own options. Needs the "
        "extra 'lm-eval'.",
        epilog="""example: unmask lm-eval --tasks gsm8k --model_args
        pretrained=FOLDER,rule="confidence | swd(5) | eb(0.1)",block=32 --apply_chat_template
        --output_path out --log_samples""",
        add_help=False,
        prefix_chars="\0",  # nothing here is an option of ours
    )
    command.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    command.set_defaults(run=run, print_help=command.print_help)


def run(arguments: argparse.Namespace) -> int:
    """Hand over, or say how."""
    if arguments.arguments in ([], ["-h"], ["--help"]):
        arguments.print_help()
        raise SystemExit(0)
    from unmask.integrations.lm_eval.launch import launch

    launch(arguments.arguments)
    return 0
