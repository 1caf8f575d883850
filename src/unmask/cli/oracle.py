"""`unmask demo --oracle`: a rash baseline and SWD side by side where the truth is known."""

from __future__ import annotations

import argparse
import math
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unmask.studies.dog_or_car import RuleTally, SentenceRun
    from unmask.text.terminal import Painter


def run(arguments: argparse.Namespace) -> int:
    """Show one run of two rules, then the count over all seeds."""
    import torch

    from unmask.errors import UnmaskError
    from unmask.studies.dog_or_car import COMPARED, NOISE, DogOrCar, first_difference
    from unmask.text.terminal import Painter, has_colour, side_by_side

    if arguments.seeds < 1:
        raise UnmaskError(f"--seeds must be >= 1, got {arguments.seeds}")
    torch.set_num_threads(1)  # the oracle is tiny
    paint, seeds = Painter(has_colour(arguments.colour)), range(arguments.seeds)
    width = shutil.get_terminal_size((120, 24)).columns
    world = DogOrCar()
    print(
        "Sixteen sentences are possible, eight about a dog and eight about a car. The model knows"
    )
    print("their true probabilities, but its logits are noisy while much of the canvas is masked.")
    difference = first_difference(world, seeds)
    if difference is None:
        print(f"The two rules end alike in all {len(seeds)} noise seeds.")
    else:
        seed, baseline, swd = difference
        print(
            f"The first of {len(seeds)} noise seeds (noise {NOISE:g}) where they differ: {seed}.\n"
        )
        print(side_by_side(_canvas(baseline, paint), _canvas(swd, paint), width))
        print("\nWhy: the position of 'dog' or 'car', step by step.\n")
        print(side_by_side(_subject(baseline, paint), _subject(swd, paint), width))
    print(f"\nOver all {len(seeds)} noise seeds:\n")
    print("\n".join(_tallies([world.tally(rule, seeds) for rule in COMPARED], paint)))
    print("\nSWD needs more forwards for its valid sentences. One token per forward (top) needs no")
    print("SWD here. 'unmask rules' lists every rule; README.md says what to read next.")
    return 0


def _canvas(run: SentenceRun, paint: Painter) -> list[str]:
    lines = [paint(run.rule, "bold")]
    for number, frame in enumerate(run.frames, 1):
        words = [
            paint(word, "green", "bold")
            if place in frame.new
            else paint("···", "dim")
            if word == "[MASK]"
            else word
            for place, word in enumerate(frame.words)
        ]
        lines.append(f"{number:2}  {' '.join(words)}")
    valid = run.log_likelihood > -math.inf
    verdict = f"log p = {run.log_likelihood:.2f}" if valid else "log p = -inf: no such sentence"
    lines.append(paint(f"    NFE {run.nfe}, {verdict}", "cyan" if valid else "red"))
    return lines


def _subject(run: SentenceRun, paint: Painter) -> list[str]:
    lines = [paint(run.rule, "bold"), "step  guess  confidence      D   score"]
    for moment in run.subject:
        moved = "-" if math.isnan(moment.instability) else f"{moment.instability:.2f}"
        line = (
            f"{moment.step:4}  {moment.guess:<5}  {moment.confidence:10.2f}  {moved:>5}  "
            f"{moment.score:6.2f}"
        )
        lines.append(paint(f"{line}  committed", "green") if moment.committed else line)
    return lines


def _tallies(tallies: list[RuleTally], paint: Painter) -> list[str]:
    width = max(len(tally.rule) for tally in tallies)
    lines = [paint(f"{'rule':<{width}}  valid sentences   mean NFE", "bold")]
    for tally in tallies:
        share = f"{tally.valid}/{tally.runs}"
        lines.append(f"{tally.rule:<{width}}  {share:>15}  {tally.mean_nfe:9.1f}")
    return lines
