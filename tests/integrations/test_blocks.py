"""Blocks of a host that makes the forwards join, wait, leave and are regrouped in any order."""

from __future__ import annotations

import gc
import random
import weakref

import pytest
import torch

from tests.helpers import MASK, VOCABULARY, canvas_of, hosted_texts, logits_of, random_lookup
from unmask import infill
from unmask.errors import UnmaskError
from unmask.integrations.block_options import BlockOptions
from unmask.integrations.blocks import Blocks, BlockState

WIDTH = 12
SWD = "confidence | swd(5) | top(1)"


def blocks_of(count, seed):
    draw = random.Random(seed)
    prompts = [
        [draw.randrange(VOCABULARY - 2) for _ in range(draw.randrange(9))] for _ in range(count)
    ]
    return [prompt + [MASK] * (WIDTH - len(prompt)) for prompt in prompts]


class Host:
    """Holds blocks and their states; one buffer of logits for all of its forwards."""

    def __init__(self, blocks, model, **options):
        self.now = [list(block) for block in blocks]
        self.states = [BlockState() for _ in blocks]
        self.forwards = [0] * len(blocks)
        self.model, self.blocks = model, Blocks(BlockOptions.read(options), MASK, "a host's model")
        self.buffer = torch.zeros(len(blocks), WIDTH, VOCABULARY)

    def round(self, chosen):
        """One forward of these blocks, in this order."""
        tokens = torch.tensor([self.now[i] for i in chosen])
        logits = self.buffer.fill_(torch.nan)[: len(chosen)]
        logits.copy_(logits_of(self.model, canvas_of(*tokens.tolist())))
        after = self.blocks.step(
            tokens, logits, [self.states[i] for i in chosen], [0] * len(chosen)
        )
        for i, block in zip(chosen, after.tolist(), strict=True):
            self.now[i] = block
            self.forwards[i] += 1

    @property
    def unfilled(self):
        return [i for i, block in enumerate(self.now) if MASK in block]


def test_a_host_may_keep_a_short_history():
    rule, block = "confidence | swd(5) | eb(0.1)", blocks_of(1, 3)[0]
    model = random_lookup(3, length=WIDTH)
    host = Host([block], model, rule=rule, history=2)
    while host.unfilled:
        host.round([0])
    assert host.now == [infill(model, block, rule, history=2).canvas.tolist()]
    assert host.blocks.options.settings.history == 2


@pytest.mark.parametrize("rule", hosted_texts())
def test_blocks_in_any_company_and_order_are_decided_as_if_alone(rule):
    model, blocks, draw = random_lookup(7, length=WIDTH), blocks_of(4, 7), random.Random(7)
    host = Host(blocks, model, rule=rule)
    while host.unfilled:
        host.round(draw.sample(host.unfilled, draw.randint(1, len(host.unfilled))))
    expected = [infill(model, block, rule) for block in blocks]
    assert host.now == [result.canvas.tolist() for result in expected]
    assert host.forwards == [result.nfe for result in expected]


def test_blocks_that_stay_together_stay_one_group_and_nothing_is_copied():
    host = Host(blocks_of(3, 1), random_lookup(1, length=WIDTH), rule=SWD)
    host.round([0, 1, 2])
    group, kept = host.states[0].rows, host.states[0].rows.history.last
    assert all(state.rows is group for state in host.states)
    host.round([2, 0, 1])
    assert host.states[0].rows is group
    assert group.history.last is not kept
    host.round([0, 2])
    assert host.states[0].rows is host.states[2].rows is not group
    assert host.states[1].rows is group


def test_what_a_request_remembers_goes_with_it():
    host = Host(blocks_of(2, 2), random_lookup(2, length=WIDTH), rule=SWD)
    host.round([0])
    host.round([1])
    held = weakref.ref(host.states[1].rows.history.last)
    host.states[1] = BlockState()  # the host dropped the request
    gc.collect()
    assert held() is None
    assert host.states[0].rows.history.last is not None


def test_a_block_is_not_confused_with_the_one_before_it():
    model = random_lookup(3, length=WIDTH)
    host = Host([[MASK] * WIDTH], model, rule=SWD)
    while host.unfilled:
        host.round([0])
    host.now, first = [[5] + [MASK] * (WIDTH - 1)], host.now[0]
    while host.unfilled:
        host.round([0])
    assert first == infill(model, [MASK] * WIDTH, SWD).canvas.tolist()
    assert host.now[0] == infill(model, [5] + [MASK] * (WIDTH - 1), SWD).canvas.tolist()


def test_broken_logits_are_named():
    host = Host([[MASK] * WIDTH], random_lookup(4, length=WIDTH), rule=SWD)
    broken = torch.full((1, WIDTH, VOCABULARY), torch.nan)
    with pytest.raises(UnmaskError, match="a host's model gave NaN"):
        host.blocks.step(torch.tensor(host.now), broken, host.states, [0])


def test_a_mask_outside_the_vocabulary_is_named():
    host = Host([[MASK] * WIDTH], random_lookup(4, length=WIDTH), rule=SWD)
    with pytest.raises(UnmaskError, match="lies outside the vocabulary"):
        host.blocks.step(torch.tensor(host.now), torch.zeros(1, WIDTH, MASK), host.states, [0])
