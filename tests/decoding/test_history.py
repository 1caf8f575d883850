"""History: exactly one forward old, at no extra forward."""

from __future__ import annotations

import pytest
import torch

from tests.helpers import MASK, SPEC, Counting, Scripted, random_lookup
from unmask import Batch, Rule, Settings, decode_steps, prompt_request
from unmask.decoding.history import cells_where
from unmask.kernels.reduce import divergence

SWD = "confidence | swd(1) | top(1)"


def run(model, rule=SWD, length=6, **knobs):
    request = prompt_request(model.spec, [1], length, Settings(Rule.parse(rule), **knobs))
    return list(decode_steps(model, [request]))


def distinct_logits(count, length):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(length + 1, SPEC.vocab_size, generator=generator, dtype=torch.float64)
        for _ in range(count)
    ]


def without_mask(logits):
    logits = logits.clone()
    logits[:, MASK] = -torch.inf
    return logits


def test_cells_come_row_by_row_in_order():
    rows, positions = cells_where(torch.tensor([[False, True, True], [True, False, False]]))
    assert rows.tolist() == [0, 0, 1]
    assert positions.tolist() == [1, 2, 0]


def test_the_first_forward_has_no_history_and_all_later_ones_have():
    steps = run(random_lookup(0))
    assert not steps[0].view.seen.any()
    for step in steps[1:]:
        assert torch.equal(step.view.seen & step.view.masked, step.view.masked)


def test_the_instability_is_between_this_forward_and_the_last():
    script = distinct_logits(6, 6)
    steps = run(Scripted(script, SPEC))
    for number in range(1, 6):
        view = steps[number].view
        wanted = divergence(without_mask(script[number - 1]), without_mask(script[number]))[1:]
        torch.testing.assert_close(view.kl_prev_cur[view.masked], wanted[view.masked[0]])


def test_a_new_block_has_the_history_of_the_last_forward_without_another_one():
    script = distinct_logits(6, 6)
    model = Counting(Scripted(script, SPEC))
    steps = run(model, block=3)
    opening = steps[3].view
    assert int(steps[3].start[0]) == 4
    assert opening.seen.all()
    wanted = divergence(without_mask(script[2]), without_mask(script[3]))[4:]
    torch.testing.assert_close(opening.kl_prev_cur[0], wanted)
    assert model.forwards == len(steps) == 6


def test_a_new_block_costs_one_more_call_of_the_head_on_its_own_rows():
    model = Counting(random_lookup(0))
    run(model, block=3)
    assert [len(call) for call in model.head_calls] == [3, 2, 1, 3, 3, 2, 1]
    assert model.head_calls[3] == [(0, 4), (0, 5), (0, 6)]


def test_without_a_need_for_history_a_new_block_costs_nothing():
    model = Counting(random_lookup(0))
    run(model, "confidence | top(1)", block=3)
    assert [len(call) for call in model.head_calls] == [3, 2, 1, 3, 2, 1]


def test_a_block_scope_forgets_at_the_boundary():
    steps = run(random_lookup(0), "confidence | swd(1, start=skip, scope=block) | top(1)", block=3)
    assert [bool(step.view.seen.any()) for step in steps] == [False, True, True, False, True, True]
    assert steps[3].view.kl_prev_cur.tolist() == [[0.0] * 3]


def test_a_block_scope_with_a_uniform_start_is_uniform_in_every_block():
    rule = "confidence | swd(1, scope=block) | top(1)"
    script = distinct_logits(6, 6)
    steps = run(Scripted(script, SPEC), rule, block=3)
    flat = torch.zeros(7, SPEC.vocab_size, dtype=torch.float64)
    wanted = divergence(without_mask(flat), without_mask(script[3]))[4:]
    torch.testing.assert_close(steps[3].view.kl_prev_cur[0], wanted)


def test_a_block_scope_commits_one_position_at_the_start_of_every_block():
    rule = "confidence | swd(1, start=single, scope=block) | threshold(0.0001)"
    steps = run(random_lookup(0), rule, block=3)
    assert [int(step.decision.chosen.sum()) for step in steps] == [1, 2, 1, 2]


@pytest.mark.parametrize("rule", [SWD, "confidence | top(1)"])
def test_history_changes_nothing_about_the_number_of_forwards(rule):
    model = Counting(random_lookup(0))
    steps = run(model, rule, block=2)
    assert model.forwards == len(steps) == 6


def test_a_trail_holds_the_last_divergences_newest_last():
    script = distinct_logits(6, 6)
    steps = run(Scripted(script, SPEC), "confidence | klass(2, n=3)")  # nobody is that sure
    view = steps[3].view
    moves = [
        divergence(without_mask(script[t]), without_mask(script[t - 1]))[1:] for t in (1, 2, 3)
    ]
    wanted = torch.stack(moves, -1)[view.masked[0]]
    torch.testing.assert_close(view.trail[view.masked], wanted)


def test_a_trail_begins_with_infinity_where_there_was_no_forward_before():
    steps = run(random_lookup(0), "confidence | klass(2, n=2)")
    first = steps[0].view.trail[0]
    assert first.tolist() == [[0.0, torch.inf]] * 6


def test_klass_without_its_gate_follows_later_blocks():
    steps = run(random_lookup(0), "confidence | klass(2, n=2, gate=no)", block=3)
    assert steps[3].view.trail[0].isfinite().all()
    assert (steps[3].view.trail[0] > 0).all()


def test_klass_with_its_gate_does_not_look_at_later_blocks():
    model = Counting(random_lookup(0))
    run(model, "confidence | klass(2, n=2)", block=3)
    assert max(len(call) for call in model.head_calls) == 3
    model = Counting(random_lookup(0))
    run(model, "confidence | klass(2, n=2, gate=no)", block=3)
    assert max(len(call) for call in model.head_calls) == 6


def test_history_is_kept_in_the_dtype_of_the_model():
    model = random_lookup(0, dtype=torch.bfloat16)
    batch = Batch(model)
    batch.admit(prompt_request(SPEC, [1], 6, Settings(Rule.parse(SWD))))
    batch.step()
    kept = next(iter(batch.groups.values())).history.last.logits
    assert kept.dtype == torch.bfloat16
    assert kept.shape == (6, SPEC.vocab_size)
