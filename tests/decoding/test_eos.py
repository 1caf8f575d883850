"""Every EOS policy, on scripted models and random ones."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import Scripted, outcome, places, random_lookup
from unmask import ModelSpec, Rule, Settings, decode, decode_steps, infill, prompt_request
from unmask.decoding.eos import first_stop, is_stop
from unmask.decoding.options import Eos

MASK, EOS, TURN = 7, 6, 5
SPEC = ModelSpec(MASK, 8, EOS)
CHAT = ModelSpec(MASK, 8, EOS, (EOS, TURN))


def model(tokens, sureness, spec=SPEC):
    """After one prompt token, these tokens with these logits, all others 0."""
    logits = torch.zeros(len(tokens) + 1, 8)
    for place, (token, sure) in enumerate(zip(tokens, sureness, strict=True), 1):
        logits[place, token] = sure
    return Scripted([logits], spec)


def run(denoiser, eos, rule="confidence | top(1)", block=None):
    length = len(denoiser.script[0]) - 1
    return decode(denoiser, [0], rule, length=length, eos=eos, block=block)


TOKENS = [1, 2, EOS, 3, 4]
ORDER = [5.0, 3.0, 9.0, 7.0, 1.0]  # the EOS first, then positions 4, 1, 2, 5


def test_keep_treats_eos_as_any_token():
    result = run(model(TOKENS, ORDER), "keep")
    assert result.answer.tolist() == TOKENS
    assert result.commit_step.tolist() == [-1, 2, 3, 0, 1, 4]
    assert (result.nfe, result.nfe_eos) == (5, 4)


def test_the_text_ends_before_the_first_eos():
    assert run(model(TOKENS, ORDER), "keep").ids == [1, 2]


def test_a_text_without_eos_is_the_whole_answer():
    result = run(model([1, 2, 3], [3.0, 2.0, 1.0]), "keep")
    assert result.ids == [1, 2, 3]
    assert (result.nfe, result.nfe_eos) == (3, 3)


def test_an_eos_at_the_front_is_an_empty_text():
    result = run(model([EOS, 2, 3], [3.0, 2.0, 1.0]), "keep")
    assert result.ids == []
    assert (result.nfe, result.nfe_eos) == (3, 1)


def test_suppress_never_predicts_eos():
    result = run(model(TOKENS, ORDER), "suppress")
    assert EOS not in result.answer.tolist()


def test_last_commits_eos_after_all_other_tokens():
    result = run(model(TOKENS, ORDER), "last")
    assert result.answer.tolist() == TOKENS
    assert result.commit_step.tolist() == [-1, 1, 2, 4, 0, 3]


def test_last_commits_the_rightmost_eos_first():
    result = run(model([EOS, 1, EOS, EOS], [9.0, 1.0, 8.0, 2.0]), "last")
    assert result.commit_step.tolist() == [-1, 3, 0, 2, 1]


@pytest.mark.parametrize(
    "rule", ["threshold(0.1)", "eb(0.01)", "factor(0.5)", "hierarchy(0.1, low=0)"]
)
def test_last_holds_for_selections_that_take_many(rule):
    denoiser = model([1, EOS, 2, EOS], [3.0, 9.0, 4.0, 9.0])
    result = run(denoiser, "last", f"confidence | {rule}")
    commit = result.commit_step[1:]
    assert max(commit[0], commit[2]) <= min(commit[1], commit[3])


def test_last_gives_all_ends_one_score_so_that_a_slack_takes_them_by_every_score():
    denoiser = model([EOS, EOS, EOS], [3.0, 2.0, 1.0])
    for rule in ("confidence | threshold(0.9", "margin | threshold(0.9", "entropy | threshold(0"):
        assert run(denoiser, "last", f"{rule}, slack=0.1)").nfe == 1, rule


@pytest.mark.parametrize("score", ["confidence", "margin", "entropy"])
def test_last_scores_the_other_tokens_as_if_eos_did_not_exist(score):
    logits = torch.zeros(3, 8)
    logits[1, 1], logits[1, EOS] = 2.0, 1.9
    logits[2, 2] = 1.9
    denoiser = Scripted([logits], SPEC)
    chosen = Settings(Rule.parse(f"{score} | top(1)"), eos="last")
    step = next(decode_steps(denoiser, [prompt_request(SPEC, [0], 2, chosen)]))
    assert places(step.decision.chosen) == [0]
    assert step.view.token.tolist() == [[1, 2]]


def test_last_is_certain_of_nothing_where_only_eos_is_possible():
    logits = torch.full((3, 8), -torch.inf)
    logits[:, EOS] = 0.0
    logits[2, 1] = 0.0
    logits[2, EOS] = -torch.inf
    result = decode(Scripted([logits], SPEC), [0], "confidence | top(1)", length=2, eos="last")
    assert result.commit_step.tolist() == [-1, 1, 0]


def test_stop_ends_once_everything_before_the_first_eos_is_fixed():
    result = run(model(TOKENS, ORDER), "stop")
    assert result.answer.tolist() == [1, 2, EOS, EOS, EOS]
    assert (result.nfe, result.nfe_eos) == (3, 3)


def test_stop_spends_nothing_behind_the_first_eos():
    chosen = Settings(Rule.parse("confidence | top(1)"), eos="stop")
    request = prompt_request(SPEC, [0], 5, chosen)
    steps = list(decode_steps(model(TOKENS, ORDER), [request]))
    assert [places(step.decision.chosen) for step in steps] == [[2], [0], [1]]
    assert steps[1].view.masked.tolist() == [[True, True, False, False, False]]
    assert places(steps[-1].filled) == [4, 5]


def test_stop_keeps_what_was_committed_behind_the_eos_before_it():
    result = run(model([1, EOS, 3], [1.0, 2.0, 9.0]), "stop")
    assert result.answer.tolist() == [1, EOS, 3]
    assert result.ids == [1]


def test_stop_waits_for_masks_before_the_eos_in_an_earlier_place_only():
    result = run(model([EOS, 2, 3], [9.0, 2.0, 1.0]), "stop")
    assert result.nfe == 1
    assert result.answer.tolist() == [EOS] * 3


def test_stop_ends_a_row_across_blocks():
    result = run(model(TOKENS, ORDER), "stop", block=3)
    assert result.nfe == 3
    assert result.answer.tolist() == [1, 2, EOS, EOS, EOS]


def test_block_ends_with_the_block_that_holds_the_first_eos():
    tokens, order = [1, EOS, 2, 3, 4, 5], [3.0, 9.0, 5.0, 1.0, 1.0, 1.0]
    result = run(model(tokens, order), "block", block=3)
    assert result.answer.tolist() == [1, EOS, 2, EOS, EOS, EOS]
    assert (result.nfe, result.nfe_eos) == (3, 3)


def test_block_in_a_full_window_is_keep():
    assert outcome(run(model(TOKENS, ORDER), "block")) == outcome(run(model(TOKENS, ORDER), "keep"))


def test_fill_writes_eos_behind_the_first_eos_after_each_step():
    result = run(model(TOKENS, ORDER), "fill")
    assert result.answer.tolist() == [1, 2, EOS, EOS, EOS]
    assert result.commit_step.tolist() == [-1, 1, 2, 0, 0, 0]
    assert result.nfe == 3


def test_fill_overwrites_what_was_committed_behind_a_later_eos():
    result = run(model([1, EOS, 3], [1.0, 2.0, 9.0]), "fill")
    assert result.answer.tolist() == [1, EOS, EOS]
    assert result.commit_step.tolist() == [-1, 2, 1, 1]


@pytest.mark.parametrize("eos", ["stop", "fill", "block"])
def test_an_eos_in_the_prompt_ends_nothing(eos):
    logits = torch.zeros(5, 8)
    logits[:, 1] = torch.tensor([0.0, 4.0, 3.0, 2.0, 1.0])
    prompt = [EOS, 2]
    result = decode(
        Scripted([logits], SPEC), prompt, "confidence | top(1)", length=3, eos=eos, block=3
    )
    assert result.answer.tolist() == [1, 1, 1]
    assert result.nfe == 3


@pytest.mark.parametrize("eos", ["stop", "fill", "block"])
def test_fixed_tokens_behind_an_eos_are_never_overwritten(eos):
    logits = torch.zeros(5, 8)
    logits[1, EOS] = 9.0
    canvas = [0, MASK, 3, MASK, 4]
    result = infill(Scripted([logits], SPEC), canvas, "confidence | top(1)", eos=eos)
    assert result.canvas.tolist()[2::2] == [3, 4]
    assert result.canvas.tolist()[1] == EOS


@pytest.mark.parametrize("eos", ["stop", "fill"])
def test_every_end_token_ends_an_answer_and_stays(eos):
    result = run(model([1, TURN, 2], [3.0, 2.0, 1.0], CHAT), eos)
    assert result.ids == [1]
    assert result.answer.tolist() == [1, TURN, EOS]


def test_last_defers_every_end_token():
    result = run(model([TURN, 1, EOS], [9.0, 1.0, 8.0], CHAT), "last")
    assert result.commit_step.tolist() == [-1, 2, 0, 1]


def test_an_end_token_is_found_by_id():
    tokens = torch.tensor([EOS, 1, TURN])
    assert is_stop(tokens, (EOS, TURN)).tolist() == [True, False, True]
    assert is_stop(tokens, ()).tolist() == [False] * 3


def test_the_first_end_is_among_what_was_written():
    canvas, written = torch.tensor([EOS, 1, EOS, 2]), torch.tensor([False, True, True, True])
    assert first_stop(canvas, written, (EOS,)) == 2
    assert first_stop(canvas, written, (TURN,)) == 3


RULES = st.sampled_from(
    ["confidence | top(1)", "confidence | swd(1) | eb(0.5)", "margin | threshold(0.3)"]
)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**16), rule=RULES, block=st.sampled_from([None, 4]))
def test_stop_gives_a_text_that_ends_where_every_token_is_fixed(seed, rule, block):
    denoiser = random_lookup(seed, eos=5.0)
    steps = list(
        decode_steps(
            denoiser,
            [prompt_request(denoiser.spec, [1], 10, Settings(Rule.parse(rule), block, "stop"))],
        )
    )
    result = steps[-1].finished[0]
    assert result.nfe == result.nfe_eos == len(steps)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**16), block=st.sampled_from([None, 4]))
def test_stop_with_one_token_at_a_time_never_costs_more_than_keep(seed, block):
    denoiser = random_lookup(seed, eos=5.0)
    keep, stop = (
        decode(denoiser, [1], "confidence | top(1)", length=10, block=block, eos=eos)
        for eos in ("keep", "stop")
    )
    assert stop.nfe <= keep.nfe
    if denoiser.spec.eos_id not in keep.answer.tolist():
        assert outcome(stop) == outcome(keep)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**16), eos=st.sampled_from(get_args(Eos)), rule=RULES)
def test_nfe_eos_counts_the_forwards_until_the_text_was_fixed(seed, eos, rule):
    denoiser = random_lookup(seed, eos=4.0)
    result = decode(denoiser, [1], rule, length=10, eos=eos)
    answer, steps = result.answer.tolist(), result.commit_step[1:].tolist()
    end = denoiser.spec.eos_id
    upto = answer.index(end) + 1 if end in answer else len(answer)
    assert result.nfe_eos == max(steps[:upto]) + 1
    assert result.nfe_eos <= result.nfe


@pytest.mark.parametrize("eos", get_args(Eos))
def test_a_model_that_never_ends_is_decoded_alike_by_every_policy(eos):
    denoiser = model([1, 2, 3, 4], [4.0, 3.0, 2.0, 1.0])
    keep = run(model([1, 2, 3, 4], [4.0, 3.0, 2.0, 1.0]), "keep")
    assert outcome(run(denoiser, eos)) == outcome(keep)


def test_a_rule_that_asks_sees_which_tokens_would_end_the_answer():
    denoiser = model([1, TURN, EOS, 3], [5.0, 3.0, 9.0, 7.0], CHAT)
    for rule, known in (("swd(1) | only(ends) | ", True), ("", False)):
        parsed = Settings(Rule.parse(f"confidence | {rule}top(1)"))
        step = next(iter(decode_steps(denoiser, [prompt_request(CHAT, [0], 4, parsed)])))
        ends = step.view.ends
        assert (ends is not None) == known
        if known:
            assert ends.tolist() == [[False, True, True, False]]
