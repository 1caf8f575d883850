"""A small scheduler around SGLang's own `DllmAlgorithm.run`, with a fake model runner under it."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from tests.helpers import MASK, VOCABULARY, canvas_of, logits_of, random_lookup

BLOCK = 12


class Runner:
    """Answers forwards from a lookup table; its output buffer is the same each time."""

    def __init__(self, seed: int, rows: int = 16) -> None:
        self.model = random_lookup(seed, length=BLOCK)
        self.buffer = torch.zeros(rows * BLOCK, VOCABULARY)
        self.forwards = 0

    def forward(self, forward_batch: Any, pp_proxy_tensors: Any = None) -> Any:
        self.forwards += 1
        self.buffer.fill_(torch.nan)  # overwrites logits that a caller still holds
        blocks = forward_batch.input_ids.view(-1, BLOCK)
        logits = logits_of(self.model, canvas_of(*blocks.tolist()))
        out = self.buffer[: blocks.numel()]
        out.copy_(logits.view(-1, VOCABULARY))
        out[:, MASK] = -30.0  # a trained model does not write masks
        output = SimpleNamespace(full_logits=out, next_token_logits=None)
        return SimpleNamespace(logits_output=output, can_run_graph=False)


def algorithm(cls: type, fdfo: bool, **options: Any) -> Any:
    """An algorithm of SGLang or ours, created as SGLang's worker does."""
    from sglang.srt.dllm.config import DllmConfig

    return cls(DllmConfig(cls.__name__, options, BLOCK, MASK, 16, first_done_first_out_mode=fdfo))


def batch_of(blocks: list[list[int]], names: list[str], prompt: Tensor | None = None) -> Any:
    """The fields of SGLang's ForwardBatch that an algorithm reads."""
    return SimpleNamespace(
        batch_size=len(blocks),
        input_ids=torch.tensor(blocks).view(-1),
        positions=torch.arange(BLOCK).repeat(len(blocks)),
        rids=names,
        dllm_prompt_mask=prompt,
    )


def blocks_of(seed: int, count: int) -> list[list[int]]:
    """Blocks of masks, some of which begin with a few tokens of a prompt."""
    draw = random.Random(seed)
    blocks = []
    for _ in range(count):
        given = draw.randrange(BLOCK - 2)
        blocks.append([draw.randrange(VOCABULARY - 2) for _ in range(given)])
        blocks[-1] += [MASK] * (BLOCK - given)
    return blocks


def synchronous(chosen: Any, seed: int, blocks: list[list[int]]) -> tuple[list[list[int]], int]:
    """Decode all blocks in one call; returns the blocks and the number of forwards."""
    runner = Runner(seed)
    batch = batch_of(blocks, [f"request {i}" for i in range(len(blocks))])
    chosen.run(runner, batch)
    return batch.input_ids.view(-1, BLOCK).tolist(), runner.forwards


def first_done_first_out(
    chosen: Any, seed: int, blocks: list[list[int]], shuffled: bool = False
) -> tuple[list[list[int]], list[int]]:
    """Make one forward per round until each block is done; returns blocks and forwards of each.

    `shuffled`, blocks come one after another, and a round takes some of them in any order.
    """
    draw, runner = random.Random(seed), Runner(seed)
    now, states = [list(block) for block in blocks], [None] * len(blocks)
    forwards, left, arrived = [0] * len(blocks), set(range(len(blocks))), len(blocks)
    if shuffled:
        arrived = 1
    while left:
        here = sorted(left & set(range(arrived)))
        if shuffled:
            arrived += draw.random() < 0.5
            here = draw.sample(here, draw.randint(min(1, len(here)), len(here)))
        if not here:
            arrived += 1
            continue
        batch = batch_of([now[i] for i in here], [f"request {i}" for i in here])
        _, tokens, accepted, carried, _ = chosen.run(runner, batch, [states[i] for i in here])
        for place, i in enumerate(here):
            now[i], states[i] = tokens[place], carried[place]
            forwards[i] += 1
            if accepted[place]:
                left.remove(i)
    return now, forwards
