"""Taking commitments back: bounded, and forgetful."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import (
    SPEC,
    Counting,
    Scripted,
    bits,
    hand_view,
    outcome,
    places,
    random_lookup,
    table,
)
from unmask import Rule, RuleError, Settings, decode, decode_steps, from_function, prompt_request
from unmask.decoding.view_layout import MOST_REVOCATIONS
from unmask.rules.registry import kinds
from unmask.rules.revoke import Drift

REVOKING = Rule.parse("confidence | top(1) | revoke(0.01, times=2)")
ADAPTIVE = ["top(1)", "threshold(0.3)", "eb(0.5)", "factor(1)", "budget(1)", "ar(0.3)"]


def fickle(size=8, mask=7):
    """A model that changes its mind wholly with every token that is fixed."""

    def function(ids):
        known = (ids != mask).sum(-1)[:, None, None]
        place = torch.arange(ids.shape[-1])[None, :, None]
        token = torch.arange(size)[None, None, :]
        return 12.0 * (((known + place) % (size - 1)) == token).float()

    return from_function(function, mask_id=mask, vocab_size=size)


def run(model, text, length=6, prompt=(1,), **knobs):
    rule_settings = Settings(Rule.parse(text), **knobs)
    request = prompt_request(model.spec, list(prompt), length, rule_settings)
    return list(decode_steps(model, [request]))


def test_drift_takes_back_what_has_moved_too_far():
    view = hand_view(
        [0.5] * 4,
        masked=bits([1, 0, 0, 0]),
        drift=table([0.0, 2.0, 0.5, 3.0]),
        revocable=bits([0, 1, 1, 1]),
        revoked_times=torch.tensor([[0, 0, 0, 1]]),
    )
    assert places(Drift(1.0)(view)) == [1]
    assert places(Drift(0.4)(view)) == [1, 2]
    assert places(Drift(1.0, times=2)(view)) == [1, 3]


def test_a_drift_equal_to_the_limit_stays():
    view = hand_view([0.5], masked=bits([0]), drift=table([1.0]), revocable=bits([1]))
    assert places(Drift(1.0)(view)) == []


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("select", ADAPTIVE)
def test_a_model_that_flips_its_mind_at_every_step_still_ends(select, times):
    length = 5
    text = f"confidence | {select} | cap(2) | revoke(0.01, times={times})"
    steps = run(fickle(), text, length)
    assert len(steps) <= length * (1 + times)
    assert any(step.decision.revoked.any() for step in steps)


@pytest.mark.parametrize("select", ADAPTIVE)
@settings(max_examples=4)
@given(seed=st.integers(0, 2**16), times=st.integers(1, 3), block=st.sampled_from([None, 3]))
def test_revoking_takes_at_most_masks_times_one_plus_times_steps(select, seed, times, block):
    text = f"confidence | {select} | revoke(0.05, times={times})"
    steps = run(random_lookup(seed), text, 6, block=block)
    assert len(steps) <= 6 * (1 + times)
    assert len(steps[-1].finished) == 1


def test_every_selection_ends_with_revocation():
    for kind in kinds("select"):
        knobs = {"steps": 8} if kind.arguments and kind.arguments[0].name == "steps" else {}
        rule = replace(REVOKING, select=kind.make(**knobs))
        request = prompt_request(fickle().spec, [1], 5, Settings(rule))
        assert len(list(decode_steps(fickle(), [request]))) <= 5 * 3 + 8


@pytest.mark.parametrize("times", [1, 2, 40])
def test_a_position_is_taken_back_at_most_so_many_times(times):
    steps = run(fickle(), f"confidence | top(1) | revoke(0.01, times={times})", 4)
    taken = sum(step.decision.revoked[0].long() for step in steps)
    assert int(taken.max()) == min(times, MOST_REVOCATIONS)


def test_a_revoked_position_is_a_mask_again():
    steps = run(fickle(), "confidence | top(2) | revoke(0.01)", 4)
    first = next(step for step in steps if step.decision.revoked.any())
    for column in places(first.decision.revoked):
        assert int(first.tokens[0, 1 + column]) == fickle().spec.mask_id


def test_a_revoked_position_has_no_history():
    steps = run(fickle(), "confidence | swd(0.01, start=skip) | top(2) | revoke(0.01)", 5)
    index = next(i for i, step in enumerate(steps) if step.decision.revoked.any())
    revoked = steps[index].decision.revoked
    after = steps[index + 1].view
    assert after.masked[revoked].all()
    assert not after.seen[revoked].any()
    assert after.kl_prev_cur[revoked].tolist() == [0.0] * int(revoked.sum())
    others = after.masked & ~revoked
    assert after.seen[others].all()


def test_a_revoked_position_is_compared_with_its_next_commitment():
    steps = run(fickle(), "confidence | top(1) | revoke(0.01, times=9)", 3)
    for step in steps:
        assert not (step.decision.chosen & step.decision.revoked).any()
        assert not (step.view.masked & step.view.revocable).any()


def test_the_commit_step_is_that_of_the_last_commitment():
    model = fickle()
    steps = run(model, "confidence | top(1) | revoke(0.01)", 4)
    committed = {}
    for number, step in enumerate(steps):
        committed |= {1 + column: number for column in places(step.decision.chosen)}
    result = steps[-1].finished[0]
    assert result.commit_step.tolist() == [-1, *(committed[i] for i in range(1, 5))]


def test_without_drift_nothing_is_taken_back():
    logits = torch.randn(9, SPEC.vocab_size, generator=torch.Generator().manual_seed(0))
    steps = run(Scripted([logits], SPEC), "confidence | top(1) | revoke(0.01)", 8)
    assert len(steps) == 8


def test_the_drift_is_the_divergence_since_the_commitment():
    flat, sharp = torch.zeros(3, SPEC.vocab_size), torch.zeros(3, SPEC.vocab_size)
    sharp[:, 2] = 4.0
    second = run(Scripted([sharp, flat], SPEC), "confidence | top(1) | revoke(99)", 2)[1]
    p = sharp[0, : SPEC.mask_id].double().softmax(-1)
    wanted = float((p * (p * SPEC.mask_id).log()).sum())
    assert float(second.view.drift[0, 0]) == pytest.approx(wanted, rel=1e-5)


def test_the_drift_has_two_directions():
    flat, sharp = torch.zeros(3, SPEC.vocab_size), torch.zeros(3, SPEC.vocab_size)
    sharp[:, 2] = 4.0
    text = "confidence | top(1) | revoke(99, kl=cur_prev)"
    second = run(Scripted([sharp, flat], SPEC), text, 2)[1]
    p = sharp[0, : SPEC.mask_id].double().softmax(-1)
    wanted = float(-(p * SPEC.mask_id).log().mean())
    assert float(second.view.drift[0, 0]) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("steps", [1, 2, 4, 7])
@pytest.mark.parametrize("block", [None, 6])
def test_a_budget_of_steps_holds_with_revocation(steps, block):
    model = fickle()
    decoded = run(model, "confidence | top(1) | revoke(0.01, times=3)", 6, block=block, steps=steps)
    assert len(decoded) <= steps
    assert model.spec.mask_id not in decoded[-1].finished[0].canvas.tolist()


def test_an_earlier_block_stays_as_it_is():
    steps = run(fickle(), "confidence | top(1) | revoke(0.01, times=2)", 6, block=3)
    second = [step for step in steps if int(step.start[0]) == 4]
    assert second
    assert all(torch.equal(step.tokens[0, :4], second[0].tokens[0, :4]) for step in second)


def test_an_earlier_block_is_no_longer_watched():
    model = Counting(fickle())
    steps = run(model, "confidence | top(1) | revoke(0.01)", 6, block=3)
    first = sum(int(step.start[0]) == 1 for step in steps)
    later = {position for call in model.head_calls[first:] for _, position in call}
    assert later == {4, 5, 6}


@pytest.mark.parametrize("eos", ["stop", "block", "fill", "last"])
def test_revocation_ends_under_every_eos_policy(eos):
    for seed in range(6):
        model = random_lookup(seed, eos=4.0)
        rule = "confidence | threshold(0.3) | revoke(0.02, times=2)"
        result = decode(model, [1], rule, length=8, eos=eos)
        assert model.spec.mask_id not in result.canvas.tolist()
        assert result.nfe <= 8 * 3


def test_a_limit_that_is_never_reached_changes_nothing():
    for seed in range(3):
        model = random_lookup(seed)
        plain = decode(model, [1], "confidence | swd(2) | eb(0.5)", length=10, block=5)
        never = "confidence | swd(2) | eb(0.5) | revoke(1000)"
        assert outcome(decode(model, [1], never, length=10, block=5)) == outcome(plain)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Drift(0), "revoke: limit must be > 0, got 0"),
        (lambda: Drift(times=0), "revoke: times must be >= 1, got 0"),
    ],
)
def test_revocation_checks_its_knobs(make, message):
    with pytest.raises(RuleError, match=message):
        make()
