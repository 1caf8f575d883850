"""Positions that were not computed are neither candidates nor history; and what if they were."""

from __future__ import annotations

from itertools import islice

import pytest
import torch

from tests.helpers import places
from tests.models.configs import MASK
from unmask import Cached, Hidden, Rule, Settings, decode, decode_steps, prompt_request

PROMPT = [5, 17]
LENGTH = 10
SWD = "confidence | swd(1000) | top(1)"


def alternating(canvas, memory):
    """All positions first, then even and odd positions in turn, and new tokens."""
    place = torch.arange(canvas.tokens.shape[-1])
    turn = (place % 2)[None] == (memory.age % 2)[:, None]
    written = canvas.tokens != memory.tokens
    return turn | written | ~memory.computed.any(-1)[:, None]


class Lying:
    """A cache that claims to compute everything, but returns old hidden states."""

    def __init__(self, model):
        self.model = model
        self.spec, self.device = model.spec, model.device

    def trunk(self, canvas):
        return Hidden(self.model.trunk(canvas).states)

    def head(self, hidden, rows, positions):
        return self.model.head(hidden, rows, positions)


def first_steps(model, count, rule=SWD):
    request = prompt_request(model.spec, PROMPT, LENGTH, Settings(Rule.parse(rule)))
    return list(islice(decode_steps(model, [request]), count))


@pytest.fixture
def honest(model_of):
    return Cached(model_of("llada"), alternating)


def test_only_what_was_computed_is_a_candidate(honest):
    first, second, third = first_steps(honest, 3)
    assert places(first.view.masked) == list(range(LENGTH))
    assert all(place % 2 == 0 for place in places(second.view.masked))
    assert all(place % 2 == 1 for place in places(third.view.masked))
    assert second.view.masked.sum() >= 4


def test_only_what_was_computed_is_committed(honest):
    for step in first_steps(honest, 6):
        assert not (step.decision.chosen & ~step.view.masked).any()


def test_what_was_not_computed_has_no_history_when_it_is_computed_again(honest):
    _, second, third = first_steps(honest, 3)
    assert second.view.seen[second.view.masked].all()  # the even ones, just before
    assert not third.view.seen[third.view.masked].any()  # the odd ones, two forwards ago


def test_what_moves_is_no_more_stable_for_being_cached(honest):
    second = first_steps(honest, 2)[1]
    assert (second.view.kl_prev_cur[second.view.masked] > 0).all()


def test_a_cache_that_lies_makes_old_distributions_look_perfectly_stable(model_of):
    lying = Lying(Cached(model_of("llada"), alternating))
    second = first_steps(lying, 2)[1]
    stale = second.view.masked & (torch.arange(LENGTH) % 2 == 1)
    assert stale.sum() >= 4
    assert second.view.seen[stale].all()
    assert (second.view.kl_prev_cur[stale] == 0).all()
    assert (second.view.kl_prev_cur[second.view.masked & ~stale] > 0).all()


def test_a_cache_that_lies_makes_the_stability_rule_commit_what_is_stale(model_of):
    lying = Lying(Cached(model_of("llada"), alternating))
    second = first_steps(lying, 2)[1]
    assert [place % 2 for place in places(second.decision.chosen)] == [1]


def test_an_honest_cache_makes_the_stability_rule_commit_what_is_fresh(honest):
    second = first_steps(honest, 2)[1]
    assert [place % 2 for place in places(second.decision.chosen)] == [0]


def test_what_was_never_computed_is_not_looked_at(model_of):
    """A policy that skips later blocks decodes as if they did not exist."""

    def up_to_the_window(canvas, memory):
        return torch.arange(canvas.tokens.shape[-1]) < canvas.stop[:, None]

    model = model_of("llada")
    cached = Cached(model, up_to_the_window)
    long = decode(cached, PROMPT, "confidence | top(1)", length=8, block=4)
    short = decode(model, PROMPT, "confidence | top(1)", length=4)
    assert long.canvas[: len(short.canvas)].tolist() == short.canvas.tolist()
    whole = decode(model, PROMPT, "confidence | top(1)", length=8, block=4)
    assert whole.canvas[: len(short.canvas)].tolist() != short.canvas.tolist()


def test_a_row_whose_forward_computed_no_mask_waits(model_of):
    def prompt_only_in_between(canvas, memory):
        given = canvas.given.clone()
        return given | (memory.age % 2 == 1)[:, None] | ~memory.computed.any(-1)[:, None]

    cached = Cached(model_of("llada"), prompt_only_in_between)
    result = decode(cached, PROMPT, "confidence | top(1)", length=4)
    assert MASK not in result.canvas.tolist()
    assert sorted(result.commit_step[2:].tolist()) == [0, 2, 4, 6]


def test_the_next_block_of_a_dual_cache_opens_without_history(model_of):
    cached = Cached(model_of("llada"), "dual")
    settings = Settings(Rule.parse("confidence | swd(5) | top(1)"), block=4)
    request = prompt_request(cached.spec, PROMPT, 8, settings)
    seen = [bool(step.view.seen.any()) for step in decode_steps(cached, [request])]
    assert seen == [False, True, True, True, False, True, True, True]


@pytest.mark.parametrize("cache", ["prefix", "delayed"])
def test_the_next_block_of_other_caches_opens_with_history(model_of, cache):
    cached = Cached(model_of("llada"), cache)
    settings = Settings(Rule.parse("confidence | swd(5) | top(1)"), block=4)
    request = prompt_request(cached.spec, PROMPT, 8, settings)
    seen = [bool(step.view.seen.any()) for step in decode_steps(cached, [request])]
    assert seen == [False] + [True] * 7


def test_a_shifted_model_is_fresh_where_the_position_before_was_computed(model_of):
    model = model_of("dream")
    fresh = []

    class Watching(Lying):
        def trunk(self, canvas):
            hidden = self.model.trunk(canvas)
            fresh.append(hidden.fresh[0].tolist())
            return hidden

    watching = Watching(Cached(model, "dual"))
    settings = Settings(Rule.parse("confidence | top(1)"), block=3)
    list(decode_steps(watching, [prompt_request(model.spec, PROMPT, 6, settings)]))
    everywhere, window = [True] * 8, [False, False, True, True, True, False, False, False]
    assert fresh[0] == everywhere
    assert [row[2:5] for row in fresh[:3]] == [[True] * 3] * 3
    assert fresh[1][:2] == window[:2]
    assert fresh[1][6:] == window[6:]  # position 5 is read from 4, which was computed


def test_hidden_states_already_handed_out_do_not_change(model_of):
    model = model_of("llada")
    cached, kept = Cached(model, "dual"), []

    class Keeping(Lying):
        def trunk(self, canvas):
            hidden = self.model.trunk(canvas)
            kept.append((hidden.states, hidden.states.clone()))
            return hidden

    decode(Keeping(cached), PROMPT, "confidence | top(1)", length=6)
    assert len(kept) == 6
    assert all(torch.equal(states, copy) for states, copy in kept)
