"""What a sparse history saves, and what it changes.

    python -m bench.history [--short] [--json FILE]

The embedded model on held-out word problems, lam 5. "Same answers" is the share of answers that
equal those with all logits. The error of the KL and its bound are the worst of each decode, then
the median over all decodes. Bytes and milliseconds are of 64 positions with LLaDA's vocabulary in
bfloat16, on one thread; the time includes the comparison with the history and storing the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from bench.measure import Bench, Column, Row, by_turns, main
from unmask import Result, Rule, Settings, decode_steps, load, prompt_request
from unmask.decoding.sparse import Likeliest
from unmask.embedded.tasks import TASKS
from unmask.kernels.reduce import Previous, reduce
from unmask.models.denoiser import Denoiser
from unmask.rules.view import KL

RULE = "confidence | swd(5) | eb(0.1)"
ROWS, VOCABULARY = 64, 126464
DIRECTION: frozenset[KL] = frozenset({"prev_cur"})


@dataclass(frozen=True)
class Size:
    """Number of problems, and numbers of tokens to keep (None: all)."""

    problems: int = 200
    keeps: tuple[int | None, ...] = (None, 4, 16, 64)
    rounds: int = 5
    rows: int = ROWS
    vocabulary: int = VOCABULARY


SHORT = Size(problems=48, rounds=2)


class Comparing:
    """`reduce` with a sparse history; also keeps the whole history to measure the error."""

    def __init__(self) -> None:
        self.before: Tensor | None = None
        self.worst = 0.0

    def __call__(self, logits, previous, kl, uniform_start):  # type: ignore[no-untyped-def]
        stats = reduce(logits, previous, kl, uniform_start)
        if previous is not None and self.before is not None:
            true = reduce(logits, Previous(self.before, previous.slot), kl)
            missing = vars(true)["kl_prev_cur"] - vars(stats)["kl_prev_cur"]
            self.worst = max(self.worst, float(missing.max()))
        self.before = logits
        return stats


def decoded(
    model: Denoiser, prompts: list[list[int]], keep: int | None
) -> list[tuple[Result, float]]:
    """Every answer, and the largest error of its KL."""
    settings, answers = Settings(Rule.parse(RULE), history=keep), []
    for prompt in prompts:
        comparing = Comparing()
        request = prompt_request(model.spec, prompt, 48, settings)
        steps = list(decode_steps(model, [request], reducer=comparing))
        answers.append((steps[-1].finished[0], comparing.worst))
    return answers


def step_of(size: Size, keep: int | None) -> tuple[int, float]:
    """Bytes of the history, and seconds of one step with all work for the history."""
    generator = torch.Generator().manual_seed(0)
    before, now = (
        (3 * torch.randn(size.rows, size.vocabulary, generator=generator)).bfloat16()
        for _ in range(2)
    )
    slot = torch.arange(size.rows)
    if keep is None:
        taken = by_turns({"": lambda: reduce(now, Previous(before, slot), DIRECTION)}, size.rounds)
        return before.numel() * before.element_size(), min(taken[""])
    kept = Likeliest.of(before, keep, ())
    bytes_kept = sum(
        part.numel() * part.element_size()
        for part in (kept.tokens, kept.kept, kept.rest, kept.least)
    )

    def step() -> None:
        reduce(now, kept.previous(slot), DIRECTION)
        Likeliest.of(now, keep, ())

    return bytes_kept, min(by_turns({"": step}, size.rounds)[""])


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for each number of tokens."""
    size = size or (SHORT if short else Size())
    model, tokenizer = load("embedded")
    problems = TASKS["words"].sample("test", size.problems)
    prompts = [tokenizer.encode(problem.prompt) for problem in problems]
    whole = decoded(model, prompts, None)
    return [_row(size, keep, decoded(model, prompts, keep), whole) for keep in size.keeps]


def _row(
    size: Size,
    keep: int | None,
    answers: list[tuple[Result, float]],
    whole: list[tuple[Result, float]],
) -> Row:
    same = [torch.equal(a.canvas, b.canvas) for (a, _), (b, _) in zip(answers, whole, strict=True)]
    kept, seconds = step_of(size, keep)
    return {
        "kept": "all" if keep is None else str(keep),
        "same": sum(same) / len(same),
        "nfe": sum(result.nfe for result, _ in answers) / sum(result.nfe for result, _ in whole),
        "off": median(worst for _, worst in answers),
        "bound": median(result.kl_error for result, _ in answers),
        "bytes": kept / size.rows,
        "ms": 1e3 * seconds,
    }


BENCH = Bench(
    "history",
    f"A sparse history, {RULE}, embedded model (one thread)",
    (
        Column("kept", "tokens kept"),
        Column("same", "same answers", ".1%"),
        Column("nfe", "forwards", ".3f", "x"),
        Column("off", "worst KL off by", ".2g"),
        Column("bound", "its bound", ".2g"),
        Column("bytes", "bytes per position", ",.0f"),
        Column("ms", "pass ms", ".1f"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
