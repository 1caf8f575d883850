"""Batches as a function of seed, step and worker, so that a run can resume at any step."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from train.plan import Plan
from train.tokens import EOS, EOT, MASK, prompt_text
from unmask.embedded.tasks import TASKS, Problem, split_of
from unmask.embedded.tasks.lists import LISTS

MIXTURE = {
    "words": 40.0,
    "code": 22.0,
    **{task.name: 2.6 for task in LISTS},
    "latin": 5.0,
    "sudoku": 7.0,
    "sums": 20.0,
}
WIDTHS = {48: 12, 56: 30, 64: 28, 80: 16, 96: 9, 128: 5}  # number of positions: relative frequency
BEGUN = 0.5  # share of rows with some answer tokens given, as in later blocks of decoding
TOKENS = 4_096  # per batch, at every width


@dataclass(frozen=True)
class Batch:
    """Rows of one width: a prompt, then the answer, an end of turn, and EOS to the end."""

    clean: Tensor  # [B, T]
    noisy: Tensor  # [B, T] masked in the answer only
    weight: Tensor  # [B, T] 1 / t where masked, divided by the answer's positions; else 0


class Batches:
    """Draws training problems; held-out content is never drawn."""

    def __init__(self, tokenizer: Tokenizer, plan: Plan, worker: int) -> None:
        self.tokenizer = tokenizer
        self.plan = plan
        self.worker = worker
        self.eos, self.mask, self.eot = (tokenizer.token_to_id(name) for name in (EOS, MASK, EOT))

    def at(self, step: int) -> Batch:
        """The batch of a step; all workers use the same width, so they finish together."""
        width = Random(f"{self.plan.seed}/{step}").choices(list(WIDTHS), list(WIDTHS.values()))[0]
        random = Random(f"{self.plan.seed}/{step}/{self.worker}")
        rows = self._rows(random, width, TOKENS // width)
        clean = torch.full((len(rows), width), self.eos)
        answer = torch.zeros((len(rows), width), dtype=torch.bool)
        for row, (prompt, ids) in enumerate(rows):
            clean[row, : len(prompt) + len(ids)] = torch.tensor(prompt + ids)
            answer[row, len(prompt) + self._begun(random, len(ids)) :] = True
        return self._masked(clean, answer, step)

    def _begun(self, random: Random, size: int) -> int:
        """The number of answer tokens that are given like the prompt; 0 in half of the rows."""
        if random.random() >= BEGUN:
            return 0
        return random.randrange(size)

    def _rows(self, random: Random, width: int, count: int) -> list[tuple[list[int], list[int]]]:
        rows: list[tuple[list[int], list[int]]] = []
        while len(rows) < count:
            drawn = self._drawn(random, count)
            prompts = self.tokenizer.encode_batch([prompt_text(p.prompt) for p in drawn])
            answers = self.tokenizer.encode_batch([p.answer + EOT for p in drawn])
            pairs = ((p.ids, a.ids) for p, a in zip(prompts, answers, strict=True))
            rows += [pair for pair in pairs if len(pair[0]) + len(pair[1]) <= width]
        return rows[:count]

    def _drawn(self, random: Random, count: int) -> list[Problem]:
        names = random.choices(list(MIXTURE), list(MIXTURE.values()), k=count)
        drawn = (TASKS[name].draw(random) for name in names)
        return [problem for problem in drawn if split_of(problem.content) == "train"]

    def _masked(self, clean: Tensor, answer: Tensor, step: int) -> Batch:
        """Mask each row's answer at its own ratio t; the ratios are spread evenly."""
        generator = torch.Generator().manual_seed(hash((self.plan.seed, step, self.worker)) % 2**63)
        rows = len(clean)
        spread = (torch.arange(rows) + torch.rand(rows, generator=generator)) / rows
        ratio = (1 - 1e-3) * spread[:, None] + 1e-3
        masked = (torch.rand(clean.shape, generator=generator) < ratio) & answer
        weight = masked / ratio.clamp_min(self.plan.floor) / answer.sum(-1, keepdim=True)
        return Batch(clean, clean.masked_fill(masked, self.mask), weight)
