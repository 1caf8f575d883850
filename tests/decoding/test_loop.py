"""The one loop: filling, counting, entering and leaving."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import unmask
from tests.helpers import (
    EOS,
    MASK,
    SPEC,
    Counting,
    outcome,
    places,
    random_lookup,
)
from unmask import (
    Batch,
    RequestError,
    Rule,
    RuleError,
    Sampling,
    Settings,
    decode,
    decode_many,
    decode_steps,
    infill,
    infill_request,
    prompt_request,
)
from unmask.rules.select import best_first, first_in

TOP = "confidence | top(1)"


def request_of(model, length=6, rule=TOP, prompt=(1,), seed=0, **knobs):
    return prompt_request(
        model.spec, list(prompt), length, Settings(Rule.parse(rule), **knobs), seed
    )


def test_the_answer_is_written_behind_the_prompt():
    result = decode(random_lookup(0), [3, 4], TOP, length=6)
    assert result.canvas.tolist()[:2] == [3, 4]
    assert result.canvas.tolist()[2:] == result.answer.tolist()
    assert MASK not in result.answer.tolist()


def test_one_token_at_a_time_takes_as_many_forwards_as_tokens():
    model = Counting(random_lookup(0))
    result = decode(model, [1], TOP, length=6)
    assert result.nfe == model.forwards == 6
    assert sorted(result.commit_step.tolist()) == [-1, 0, 1, 2, 3, 4, 5]


def test_a_step_says_what_was_decided_and_what_the_canvas_became():
    model = random_lookup(0)
    steps = list(decode_steps(model, [request_of(model)]))
    assert [int(step.forward) for step in steps] == [0, 1, 2, 3, 4, 5]
    for step in steps:
        column = places(step.decision.chosen)[0]
        token = int(step.view.token[0, column])
        assert int(step.tokens[0, int(step.start[0]) + column]) == token
    assert [len(step.finished) for step in steps] == [0, 0, 0, 0, 0, 1]


def test_steps_are_snapshots_that_later_steps_do_not_change():
    model = random_lookup(0)
    request = request_of(model, rule="confidence | swd(1) | klass(0.5) | revoke(0.1)", block=3)
    seen, copies = [], []
    for step in decode_steps(model, [request]):
        seen.append(step)
        copies.append(
            (step.tokens.clone(), step.view.masked.clone(), step.view.progress.step.clone())
        )
        copies[-1] += (step.forward.clone(), step.start.clone(), step.view.trail.clone())
    for step, copy in zip(seen, copies, strict=True):
        now = (step.tokens, step.view.masked, step.view.progress.step)
        now += (step.forward, step.start, step.view.trail)
        assert all(torch.equal(a, b) for a, b in zip(now, copy, strict=True))


@pytest.mark.parametrize(
    "canvas",
    [
        [MASK, MASK, 1, 2],
        [1, MASK, 2, MASK, 3],
        [1, 2, MASK],
        [MASK, 1, MASK, MASK, 2, MASK],
        [MASK],
    ],
    ids=str,
)
@pytest.mark.parametrize("block", [None, 1])
def test_infilling_fills_the_masks_and_leaves_the_rest(canvas, block):
    result = infill(random_lookup(0), canvas, "confidence | swd(1) | eb(0.1)", block=block)
    filled = result.canvas.tolist()
    assert MASK not in filled
    assert [a for a, b in zip(filled, canvas, strict=True) if b != MASK] == [
        token for token in canvas if token != MASK
    ]
    assert result.answer.tolist() == [a for a, b in zip(filled, canvas, strict=True) if b == MASK]
    assert [c == -1 for c in result.commit_step.tolist()] == [token != MASK for token in canvas]


def test_infilling_counts_blocks_from_the_first_mask_and_skips_full_ones():
    model = random_lookup(0)
    canvas = [1, MASK, MASK, 2, 2, 2, MASK, 2]
    request = infill_request(SPEC, canvas, Settings(Rule.parse(TOP), block=2))
    steps = list(decode_steps(model, [request]))
    assert [int(step.start[0]) for step in steps] == [1, 1, 5]
    assert int(steps[0].view.progress.num_windows) == 2


def test_infilling_a_prompt_is_decoding_it():
    model = random_lookup(0)
    rule = "confidence | swd(1) | eb(0.5)"
    filled = infill(model, [1, 2, *[MASK] * 7], rule, block=3)
    assert outcome(filled) == outcome(decode(model, [1, 2], rule, length=7, block=3))


def test_the_last_block_is_narrower_where_the_blocks_do_not_divide_the_length():
    model = random_lookup(0)
    steps = list(decode_steps(model, [request_of(model, 7, block=3)]))
    assert [int(step.start[0]) for step in steps] == [1, 1, 1, 4, 4, 4, 7]
    assert steps[-1].view.masked.shape == (1, 1)


def test_blocks_are_filled_from_left_to_right():
    result = decode(random_lookup(0), [1], TOP, length=8, block=3)
    commit = result.commit_step[1:]
    assert max(commit[:3]) < min(commit[3:6])
    assert max(commit[3:6]) < min(commit[6:])


def test_one_block_is_the_full_window():
    model = random_lookup(0)
    rule = "confidence | swd(5) | eb(0.5)"
    block = decode(model, [1], rule, length=8, block=8)
    assert outcome(block) == outcome(decode(model, [1], rule, length=8))


def test_progress_tells_a_rule_where_it_stands():
    model = random_lookup(0)
    steps = list(decode_steps(model, [request_of(model, 5, block=3)]))
    told = [step.view.progress for step in steps]
    assert [int(p.step) for p in told] == [0, 1, 2, 0, 1]
    assert [int(p.opened) for p in told] == [3, 3, 3, 2, 2]
    assert [int(p.offset) for p in told] == [0, 0, 0, 3, 3]
    assert {int(p.num_windows) for p in told} == {2}
    assert {int(p.answer_length) for p in told} == {5}
    assert [int(p.known.sum()) for p in told] == [0, 1, 2, 3, 4]


def test_dropping_a_row_frees_it_at_once_and_leaves_the_others_alone():
    model = random_lookup(0)
    batch = Batch(model)
    prompts = [[1], [2, 3], [4]]
    rule = "confidence | swd(5) | eb(0.5)"
    keys = [batch.admit(request_of(model, 8, rule, prompt)) for prompt in prompts]
    batch.step()
    batch.drop(keys[1])
    assert len(batch) == 2
    results = {}
    while len(batch):
        for step in batch.step():
            assert keys[1] not in step.keys
            results |= {result.key: result for result in step.finished}
    assert set(results) == {keys[0], keys[2]}
    for key in results:
        assert outcome(results[key]) == outcome(decode(model, prompts[key], rule, length=8))


def test_many_prompts_are_taken_longest_first_and_answered_in_their_order():
    seen = []

    class Watching(Counting):
        def trunk(self, canvas):
            seen.append(canvas.lengths.tolist())
            return super().trunk(canvas)

    prompts = [[1], [1, 2, 3, 4], [1, 2], [1, 2, 3]]
    model = random_lookup(0)
    many = decode_many(Watching(model), prompts, TOP, length=4, batch_size=2)
    assert seen == [[8, 7]] * 4 + [[6, 5]] * 4
    assert [result.key for result in many] == [0, 1, 2, 3]
    for result, prompt in zip(many, prompts, strict=True):
        assert outcome(result) == outcome(decode(model, prompt, TOP, length=4))


def test_dropping_the_last_row_empties_the_batch():
    model = random_lookup(0)
    batch = Batch(model)
    batch.drop(batch.admit(request_of(model)))
    assert len(batch) == 0


def test_an_empty_batch_takes_no_step():
    model = Counting(random_lookup(0))
    assert Batch(model).step() == []
    assert model.forwards == 0


def test_rows_enter_and_leave():
    model = random_lookup(0)
    batch, seen, done = Batch(model), [], []
    batch.admit(request_of(model, 2))
    for number in range(5):
        if number == 1:
            batch.admit(request_of(model, 3, prompt=(2,)))
        for step in batch.step():
            seen.append(step.keys)
            done += [(result.key, result.nfe) for result in step.finished]
        if not len(batch):
            break
    assert seen == [(0,), (0, 1), (1,), (1,)]
    assert done == [(0, 2), (1, 3)]


def test_a_finished_rows_place_is_taken_at_the_next_step():
    model = Counting(random_lookup(0))
    requests = [request_of(model, length) for length in (2, 4, 3)]
    keys = [step.keys for step in decode_steps(model, requests, 2)]
    assert keys == [(0, 1), (0, 1), (1, 2), (1, 2), (2,)]
    assert model.forwards == 5


def test_all_settings_share_one_forward():
    model = Counting(random_lookup(0))
    batch = Batch(model)
    batch.admit(request_of(model, 3))
    batch.admit(request_of(model, 3, "margin | top(1)"))
    assert len(batch.step()) == 2
    assert model.forwards == 1


def test_equal_settings_share_one_decision():
    model = random_lookup(0)
    batch = Batch(model)
    batch.admit(request_of(model, 3))
    batch.admit(request_of(model, 4, seed=3))
    steps = batch.step()
    assert [step.keys for step in steps] == [(0, 1)]


def test_results_come_in_the_order_of_the_prompts():
    model = random_lookup(0)
    results = decode_many(model, [[1], [2], [3]], "confidence | eb(1)", length=6, batch_size=2)
    assert [result.key for result in results] == [0, 1, 2]
    assert [int(result.canvas[0]) for result in results] == [1, 2, 3]


def test_no_prompts_are_no_results():
    assert decode_many(random_lookup(0), [], TOP) == []


def test_every_prompt_has_a_seed_of_its_own():
    model = random_lookup(0)
    results = decode_many(
        model, [[1]] * 4, TOP, length=8, sampling=Sampling(1.5), seed=3, batch_size=4
    )
    alone = decode(model, [1], TOP, length=8, sampling=Sampling(1.5), seed=5)
    assert outcome(results[2]) == outcome(alone)
    assert len({tuple(result.answer.tolist()) for result in results}) > 1


def test_the_rule_may_be_given_as_an_object():
    model = random_lookup(0)
    text = "margin | swd(2) | eb(0.3)"
    by_object = decode(model, [1], Rule.parse(text), length=6)
    assert outcome(by_object) == outcome(decode(model, [1], text, length=6))


def test_the_caller_keeps_gradients_as_they_were():
    decode(random_lookup(0), [1], TOP, length=3)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


def test_an_answer_may_hold_eos():
    model = random_lookup(0, eos=30.0)
    result = decode(model, [1], TOP, length=6)
    assert EOS in result.answer.tolist()


def block_causal(width=4):
    return random_lookup(0, spec=replace(SPEC, block=width))


def test_a_block_causal_model_fills_whole_blocks_and_gives_the_length_that_was_asked():
    model = block_causal()
    steps = list(decode_steps(model, [request_of(model, 5, prompt=[1] * 6)]))
    assert [int(step.start[0]) for step in steps] == [6, 6, 8, 8, 8, 8]
    result = steps[-1].finished[0]
    assert len(result.canvas) == 12
    assert result.answer.tolist() == result.canvas.tolist()[6:11]


def test_a_block_causal_model_decodes_in_its_own_blocks_only():
    model = block_causal()
    assert decode(model, [1], TOP, length=7, block=4).nfe == 7
    with pytest.raises(RequestError, match="attends in blocks of 4"):
        decode(model, [1], TOP, length=7, block=2)


@pytest.mark.parametrize("rule", [TOP, "confidence | swd(1) | eb(0.5)", "confidence | klass(0.3)"])
def test_rows_of_a_block_causal_model_are_independent_too(rule):
    model, prompts = block_causal(), [[1], [2, 3, 4], [4, 5], [1] * 7]
    together = decode_many(model, prompts, rule, length=6, batch_size=3)
    for result, prompt in zip(together, prompts, strict=True):
        assert outcome(result) == outcome(decode(model, prompt, rule, length=6))


def test_a_row_has_an_identity_that_no_other_row_ever_has():
    seen = []

    class Watching(Counting):
        def trunk(self, canvas):
            seen.append(canvas.keys)
            return super().trunk(canvas)

    model = Watching(random_lookup(0))
    decode_many(model, [[1], [2], [3]], TOP, length=2, batch_size=1)
    decode(model, [1], TOP, length=2)
    assert seen[0] == seen[1]
    assert len(set(seen)) == 4


def test_a_selection_that_waits_for_ever_is_given_up(monkeypatch):
    monkeypatch.setattr("unmask.decoding.decide.MOST_IDLE", 20)

    class Never:
        waits = True

        def __call__(self, view, scores):
            return torch.zeros_like(view.masked)

    rule = replace(Rule.parse(TOP), select=Never())
    model = Counting(random_lookup(0))
    with pytest.raises(
        RuleError, match="nothing was committed in 20 forwards: Never never chooses"
    ):
        decode(model, [1], rule, length=4)
    assert model.forwards == 21


def test_a_decision_that_fails_takes_its_own_rows_out_and_no_others():
    @unmask.selection
    def fails_at_four(view, scores):
        if int(view.masked.sum(-1).min()) <= 4:
            raise ZeroDivisionError
        return first_in(best_first(scores.key, view.masked), 1, view.masked)

    model = random_lookup(0)
    batch, failed, results = Batch(model), [], {}
    good, rule = {}, "confidence | swd(5) | eb(0.5)"
    good[batch.admit(request_of(model, 8, rule, (1,)))] = (1,)
    bad = [batch.admit(request_of(model, 8, "confidence | fails_at_four", (n,))) for n in (2, 3)]
    good[batch.admit(request_of(model, 8, "confidence | top(1)", (4,)))] = (4,)
    while len(batch):
        for step in batch.step(failed):
            results |= {result.key: result for result in step.finished}
    (failure,) = failed
    assert (failure.keys, type(failure.error.__cause__)) == (tuple(bad), ZeroDivisionError)
    assert set(results) == set(good)
    for key, text in zip(good, (rule, "confidence | top(1)"), strict=True):
        assert outcome(results[key]) == outcome(decode(model, good[key], text, length=8))


def test_a_row_that_stands_apart_fails_alone():
    @unmask.selection
    def fails_on_token_3(view, scores):
        if len(view.masked) > 1 or 3 in view.token:
            raise ZeroDivisionError
        return first_in(best_first(scores.key, view.masked), 1, view.masked)

    model = random_lookup(0)
    batch, failed, results = Batch(model), [], []
    rows = [request_of(model, 6, "confidence | fails_on_token_3", (n,)) for n in range(1, 6)]
    keys = [batch.admit(row, apart=True) for row in rows]
    while len(batch):
        results += [result for step in batch.step(failed) for result in step.finished]
    assert all(len(failure.keys) == 1 for failure in failed)
    assert sorted([r.key for r in results] + [f.keys[0] for f in failed]) == keys
    assert results
    assert failed
