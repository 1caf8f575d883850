"""Train the embedded model from a seed, or continue an interrupted run.

Writes a checkpoint to the folder, and a log.jsonl with the mean loss and the seconds so far.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from torch import multiprocessing

from train.loop import work
from train.plan import Plan


def main() -> None:
    """Read the options and start the workers."""
    command = argparse.ArgumentParser(prog="python -m train", description=__doc__)
    command.add_argument("--output", type=Path, default=Path("build/embedded"), metavar="FOLDER")
    command.add_argument("--seed", type=int, default=Plan.seed)
    command.add_argument("--steps", type=int, default=Plan.steps)
    arguments = command.parse_args()
    plan = Plan(seed=arguments.seed, steps=arguments.steps)
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as meeting:
        multiprocessing.spawn(work, (plan, arguments.output, meeting), plan.workers)


if __name__ == "__main__":
    main()
