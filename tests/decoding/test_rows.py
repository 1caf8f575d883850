"""Rows: what they ask of the model, what they refuse, and their budget of forwards."""

from __future__ import annotations

import math

import pytest
import torch

from tests.helpers import (
    EOS,
    MASK,
    SPEC,
    Counting,
    Scripted,
    outcome,
    pair_texts,
    places,
    random_lookup,
)
from unmask import (
    ModelError,
    Rule,
    RuleError,
    Settings,
    decode,
    decode_steps,
    infill,
    prompt_request,
    selection,
)
from unmask.decoding.rows import Rows
from unmask.models.denoiser import Hidden

TOP = "confidence | top(1)"


def request_of(model, length=6, rule=TOP, prompt=(1,), seed=0, **knobs):
    return prompt_request(
        model.spec, list(prompt), length, Settings(Rule.parse(rule), **knobs), seed
    )


@pytest.mark.long
def test_a_row_that_is_dropped_before_its_first_step_leaves_nothing_behind():
    model = random_lookup(0)
    rows = Rows(model, request_of(model).settings)
    rows.admit(request_of(model), 0)
    rows.drop(0)
    rows.admit(request_of(model), 1)
    assert len(rows) == len(rows.state) == 1


def test_a_budget_of_steps_is_never_exceeded_and_fills_everything():
    model = random_lookup(7)
    for number, text in enumerate(pair_texts()):
        steps, block = 3 + number % 3, (None, 2, 3)[number // 3 % 3]
        result = decode(model, [1], text, length=6, block=block, steps=steps)
        assert result.nfe <= steps, text
        assert MASK not in result.canvas.tolist(), text


def test_a_budget_of_one_step_takes_all_at_once():
    assert decode(random_lookup(0), [1], TOP, length=8, steps=1).nfe == 1


def test_a_budget_spreads_over_its_steps():
    model = random_lookup(0)
    request = request_of(model, 8, steps=3)
    counts = [int(step.decision.chosen.sum()) for step in decode_steps(model, [request])]
    assert counts == [3, 3, 2]


def test_a_budget_that_is_not_needed_changes_nothing():
    model = random_lookup(0)
    free = decode(model, [1], TOP, length=8)
    assert outcome(decode(model, [1], TOP, length=8, steps=8)) == outcome(free)


def test_a_budget_leaves_later_blocks_their_share():
    model = random_lookup(0)
    result = decode(model, [1], TOP, length=8, block=4, steps=4)
    assert sorted(result.commit_step[1:5].tolist()) == [0, 0, 1, 1]
    assert sorted(result.commit_step[5:].tolist()) == [2, 2, 3, 3]


def broken_at(step, position, value):
    """A model whose logits are broken at one place from one forward on."""
    good = torch.randn(7, SPEC.vocab_size, generator=torch.Generator().manual_seed(0))
    bad = good.clone()
    bad[position, 2] = value
    return Scripted([good] * step + [bad], SPEC)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("step", [0, 2])
def test_a_broken_output_names_its_step_and_position(value, step):
    model = broken_at(step, 5, value)
    with pytest.raises(ModelError, match=rf"step {step}, position 5 of request 0") as error:
        decode(model, [1], "confidence | ar", length=6)
    assert "\n" not in str(error.value)


def test_a_broken_output_at_a_fixed_position_does_no_harm():
    result = decode(broken_at(1, 1, math.nan), [1], "confidence | ar", length=6)
    assert result.nfe == 6


def test_a_model_that_allows_only_suppressed_tokens_is_told_which():
    logits = torch.full((3, SPEC.vocab_size), -math.inf)
    logits[:, MASK] = 0.0
    only = f"a finite logit only to the mask token {MASK} at step 0, position 1 of request 0, which"
    with pytest.raises(ModelError, match=only):
        decode(Scripted([logits], SPEC), [1], TOP, length=2)
    logits[:, EOS] = 1.0
    both = f"only to the EOS token {EOS} and the mask token {MASK} at step 0, position 1"
    with pytest.raises(ModelError, match=both):
        decode(Scripted([logits], SPEC), [1], TOP, length=2, eos="suppress")
    assert decode(Scripted([logits], SPEC), [1], TOP, length=2).answer.tolist() == [EOS, EOS]


def test_a_model_that_allows_nothing_is_a_broken_output():
    logits = torch.full((3, SPEC.vocab_size), -math.inf)
    with pytest.raises(ModelError, match="only -inf logits at step 0, position 1"):
        decode(Scripted([logits], SPEC), [1], TOP, length=2)
    logits[:, MASK], logits[:, 2] = 0.0, math.nan
    with pytest.raises(ModelError, match="gave NaN"):
        decode(Scripted([logits], SPEC), [1], TOP, length=2)


def test_the_mask_is_never_predicted():
    logits = torch.zeros(4, SPEC.vocab_size)
    logits[:, MASK], logits[:, 3] = 9.0, 1.0
    assert decode(Scripted([logits], SPEC), [1], TOP, length=3).answer.tolist() == [3, 3, 3]


def test_a_model_that_may_predict_its_mask_and_does_is_an_error():
    logits = torch.zeros(4, SPEC.vocab_size)
    logits[:, MASK] = 9.0
    chosen = Settings(Rule.parse(TOP), allow_mask=True)
    request = prompt_request(SPEC, [1], 3, chosen)
    with pytest.raises(ModelError, match="predicted its own mask token"):
        list(decode_steps(Scripted([logits], SPEC), [request]))


def test_a_selection_that_chooses_nothing_is_an_error():
    @selection
    def nobody(view, scores):
        return torch.zeros_like(view.masked)

    with pytest.raises(RuleError, match="nobody chose nothing though masks are left"):
        decode(random_lookup(0), [1], "confidence | nobody", length=3)


@pytest.mark.parametrize(
    ("chooses", "message"),
    [
        (lambda view: torch.ones_like(view.masked), "chose a position that is not masked"),
        (lambda view: view.confidence, "must return a bool tensor"),
        (lambda view: view.masked[:, :1], "must choose among"),
        (lambda view: None, "must return a bool tensor"),
    ],
    ids=["not a mask", "floats", "too few", "nothing"],
)
def test_a_selection_that_breaks_its_promise_is_an_error(chooses, message):
    @selection
    def broken(view, scores):
        return chooses(view)

    with pytest.raises(RuleError, match=message):
        infill(random_lookup(0), [MASK, 1, MASK], "confidence | broken")


def test_a_selection_that_waits_may_commit_nothing_in_a_step():
    result = decode(random_lookup(0), [1], "confidence | timesteps(8)", length=8)
    assert result.nfe == 8
    assert 0 not in result.commit_step.tolist()


def test_the_head_runs_on_the_masks_of_the_window_only():
    model = Counting(random_lookup(0))
    decode(model, [1, 2], TOP, length=4, block=2)
    assert [len(call) for call in model.head_calls] == [2, 1, 2, 1]
    assert model.head_calls[0] == [(0, 2), (0, 3)]


class HalfFresh(Counting):
    """A cache that recomputes odd positions in odd forwards and even ones in even forwards."""

    def trunk(self, canvas):
        hidden = super().trunk(canvas)
        place = torch.arange(canvas.tokens.shape[-1])
        fresh = (place % 2 == self.forwards % 2).expand(canvas.tokens.shape)
        return Hidden(hidden.states, fresh)


def test_positions_that_a_cache_did_not_recompute_are_no_candidates():
    model = HalfFresh(random_lookup(0))
    steps = list(decode_steps(model, [request_of(model, 6, "confidence | swd(1) | top(1)")]))
    for number, step in enumerate(steps, 1):
        for column in places(step.view.masked):
            assert (1 + column) % 2 == number % 2
    assert MASK not in steps[-1].finished[0].canvas.tolist()


def test_a_distribution_older_than_one_forward_is_no_history():
    model = HalfFresh(random_lookup(0))
    steps = list(decode_steps(model, [request_of(model, 6, "confidence | swd(1) | top(1)")]))
    assert not any(step.view.seen.any() for step in steps)
