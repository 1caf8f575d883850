"""The policy follows the protocol of vLLM's dllm-plugin: keywords, lengths, committed tokens."""

from __future__ import annotations

import inspect

import pytest
import torch

from tests.helpers import MASK, canvas_of, hosted_texts, logits_of, random_lookup
from unmask import infill
from unmask.errors import UnmaskError
from unmask.integrations.vllm.policy import UnmaskPolicy

BLOCK = 12
CONFIG = {"mask_token_id": MASK, "commit_confidence_threshold": 0.9, "denoise_step_index": 3}
SWD = "confidence | swd(5) | eb(0.1)"


def run(policies, model, blocks):
    """The plug-in's worker in short: a forward of all blocks, then each request's policy."""
    drafts, done, forwards = [tuple(b) for b in blocks], {}, [0] * len(blocks)
    while len(done) < len(blocks):
        logits = logits_of(model, canvas_of(*map(list, drafts)))
        for i, policy in enumerate(policies):
            if i in done:
                continue
            step = policy.apply(input_draft=drafts[i], logits=logits[i], remasking_config=CONFIG)
            forwards[i] += 1
            assert len(step.next_input_block) == BLOCK
            assert len(step.committed_token_ids) in (0, BLOCK)
            assert {type(token) for token in step.next_input_block} == {int}
            drafts[i] = step.next_input_block
            if step.committed_token_ids:
                assert step.next_input_block == (MASK,) * BLOCK
                done[i] = list(step.committed_token_ids)
        logits.fill_(torch.nan)  # the worker reuses its buffer
    return [done[i] for i in range(len(blocks))], forwards


def test_the_signature_is_the_contracts():
    parameters = inspect.signature(UnmaskPolicy.apply).parameters
    assert list(parameters) == ["self", "input_draft", "logits", "remasking_config"]
    keywords = [parameters[name] for name in list(parameters)[1:]]
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in keywords)
    assert [each.default for each in keywords] == [inspect.Parameter.empty, None, None]


@pytest.mark.parametrize("rule", hosted_texts()[::3])
def test_one_policy_per_request_decides_as_unmask_alone(rule):
    model, blocks = random_lookup(2, length=BLOCK), [[MASK] * BLOCK, [1, 2, 3] + [MASK] * 9]
    expected = [infill(model, block, rule) for block in blocks]
    filled, forwards = run([UnmaskPolicy(rule) for _ in blocks], model, blocks)
    assert filled == [result.canvas.tolist() for result in expected]
    assert forwards == [result.nfe for result in expected]


def test_one_policy_for_two_requests_loses_their_history_and_nothing_else():
    model, blocks = random_lookup(0, length=BLOCK), [[1] + [MASK] * 11, [2] + [MASK] * 11]
    shared = UnmaskPolicy("confidence | swd(5, start=skip) | top(1)")
    filled, _ = run([shared, shared], model, blocks)
    plain = [infill(model, block, "confidence | top(1)").canvas.tolist() for block in blocks]
    assert filled == plain


def test_a_block_without_masks_is_committed_as_it_is():
    block = (3, 4, 5, 6) * 3
    step = UnmaskPolicy(SWD).apply(input_draft=block, remasking_config=CONFIG)
    assert step.committed_token_ids == block
    assert step.next_input_block == (MASK,) * BLOCK


def test_nested_lists_are_logits_too_and_nothing_of_the_callers_is_changed():
    model, draft = random_lookup(1, length=BLOCK), [MASK] * BLOCK
    logits = logits_of(model, canvas_of(draft))[0].tolist()
    kept = [list(row) for row in logits]
    step = UnmaskPolicy(SWD).apply(input_draft=draft, logits=logits, remasking_config=CONFIG)
    assert step.committed_token_ids == ()
    assert draft == [MASK] * BLOCK
    assert logits == kept


@pytest.mark.parametrize(
    ("logits", "said"),
    [
        (None, "logits are missing"),
        (torch.zeros(2, BLOCK, 5), r"must be floats of shape \(12, vocabulary\)"),
        (torch.zeros(BLOCK, 5, dtype=torch.int64), "got torch.int64"),
    ],
)
def test_logits_that_cannot_be_are_refused_in_one_line(logits, said):
    with pytest.raises(UnmaskError, match=said):
        UnmaskPolicy(SWD).apply(input_draft=[MASK] * BLOCK, logits=logits, remasking_config=CONFIG)


def test_unknown_options_are_refused():
    with pytest.raises(UnmaskError, match="unknown option 'lam'"):
        UnmaskPolicy(SWD, lam=3)
