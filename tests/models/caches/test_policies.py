"""Which positions the approximate caches compute, and that rows are independent."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.helpers import outcome
from tests.models.caches.watch import PROMPTS, alone, positions_fed
from tests.models.configs import MASK
from unmask import (
    Cached,
    Guided,
    RequestError,
    Rule,
    Scores,
    Settings,
    UnknownName,
    decode,
    decode_many,
    decode_steps,
    infill,
    prompt_request,
)
from unmask.models import words
from unmask.models.caches import POLICIES, DelayedCache, DualCache, PrefixCache
from unmask.rules.select import TopK

FULL = ["llada", "dream", "llada-moe"]
CACHES = ["prefix", "dual", "delayed"]
RULES = [
    "confidence | top(1)",
    "confidence | swd(5) | eb(0.5)",
    "confidence | klass(0.2, kl=0.5, gate=no)",
    "confidence | swd(1) | threshold(0.3) | revoke(0.3, times=2)",
]
TOP = "confidence | top(1)"
PROMPT = [5, 17, 200]  # the answer begins at 3


def rightmost(view):
    """A score that grows to the right."""
    place = torch.arange(view.masked.shape[-1]).double()
    return Scores.log_utility(place.expand(view.masked.shape))


RIGHT_TO_LEFT = Rule(rightmost, TopK(1))


def fed_by(model, policy, rule=TOP, prompt=PROMPT, **knobs):
    """The positions of every forward of one row."""
    with positions_fed(model) as fed:
        decode(Cached(model, policy), prompt, rule, **knobs)
    return alone(fed)


# Rows


@pytest.mark.parametrize(
    ("family", "block", "rule"),
    [
        *(("llada", 4, rule) for rule in RULES),
        *(("dream", 4, rule) for rule in RULES[1::2]),
        ("llada", None, RULES[1]),
        ("llada-moe", 4, RULES[1]),
    ],
)
@pytest.mark.parametrize("cache", CACHES)
def test_a_row_of_a_batch_is_decoded_as_if_it_were_alone(model_of, family, cache, rule, block):
    model = model_of(family)
    knobs = {"length": 6, "block": block}
    together = decode_many(Cached(model, cache), PROMPTS[:4], rule, batch_size=2, **knobs)
    for row, prompt in enumerate(PROMPTS[:4]):
        single = decode(Cached(model, cache), prompt, rule, seed=row, **knobs)
        assert outcome(together[row]) == outcome(single)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("family", FULL)
def test_one_cache_serves_many_decodes_as_if_each_had_its_own(model_of, family, cache):
    model = model_of(family)
    kept = Cached(model, cache)
    for prompt in (*PROMPTS[:3], PROMPTS[0]):
        knobs = {"length": 6, "block": 3}
        fresh = decode(Cached(model, cache), prompt, RULES[1], **knobs)
        assert outcome(decode(kept, prompt, RULES[1], **knobs)) == outcome(fresh)


@pytest.mark.parametrize("cache", CACHES)
def test_a_decode_that_was_given_up_leaves_nothing_behind(model_of, cache):
    model = model_of("llada")
    kept = Cached(model, cache)
    settings = Settings(Rule.parse(TOP), block=4)
    steps = decode_steps(kept, [prompt_request(model.spec, PROMPTS[2], 12, settings)])
    for _ in range(3):
        next(steps)
    steps.close()
    fresh = decode(Cached(model, cache), PROMPTS[2], TOP, length=12, block=4)
    assert outcome(decode(kept, PROMPTS[2], TOP, length=12, block=4)) == outcome(fresh)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("block", [4, None])
def test_two_decodes_in_turns_do_not_mix(model_of, cache, block):
    model = model_of("llada")
    kept, settings = Cached(model, cache), Settings(Rule.parse(TOP), block=block)
    requests = [prompt_request(model.spec, prompt, 12, settings) for prompt in PROMPTS[:2]]
    pair = [decode_steps(kept, [request]) for request in requests]
    results = [
        step.finished[0] for both in zip(*pair, strict=True) for step in both if step.finished
    ]
    for result, prompt in zip(results, PROMPTS, strict=False):
        assert MASK not in result.canvas.tolist()
        assert result.canvas[: len(prompt)].tolist() == prompt


# What is computed


def test_the_prefix_cache_computes_from_the_open_block_on(model_of):
    whole, second, third = range(15), range(7, 15), range(11, 15)
    assert fed_by(model_of("llada"), "prefix", length=12, block=4) == [
        [*whole],
        *[[*range(3, 15)]] * 3,
        [*whole],
        *[[*second]] * 3,
        [*whole],
        *[[*third]] * 3,
    ]


def test_the_dual_cache_computes_the_open_block(model_of):
    whole = [*range(15)]
    assert fed_by(model_of("llada"), "dual", length=12, block=4) == [
        whole,
        *[[*range(3, 7)]] * 3,
        whole,
        *[[*range(7, 11)]] * 3,
        whole,
        *[[*range(11, 15)]] * 3,
    ]


@pytest.mark.parametrize("cache", ["prefix", "dual"])
def test_without_blocks_the_answer_is_the_window(model_of, cache):
    fed = fed_by(model_of("llada"), cache, length=6)
    assert fed == [[*range(9)], *[[*range(3, 9)]] * 5]


def test_the_delayed_cache_computes_masks_and_what_was_just_committed(model_of):
    # From left to right: the token written in a forward is computed once more, then kept.
    fed = fed_by(model_of("llada"), "delayed", "confidence | ar(2)", length=6)
    assert fed == [[*range(9)], *([*range(3 + i, 9)] for i in range(5))]


def test_the_delayed_cache_computes_the_masks_of_later_blocks_too(model_of):
    fed = fed_by(model_of("llada"), "delayed", "confidence | ar(2)", length=6, block=3)
    assert fed == [[*range(9)], *([*range(3 + i, 9)] for i in range(5))]


@pytest.mark.parametrize("refresh", [1, 2, 3, 8])
def test_the_delayed_cache_computes_everything_after_so_many_forwards(model_of, refresh):
    model = model_of("llada")
    fed = fed_by(model, DelayedCache(refresh), "confidence | ar(2)", length=12)
    whole = [number for number, positions in enumerate(fed) if len(positions) == 15]
    assert whole == list(range(0, 12, refresh + 1))


def test_rows_that_enter_later_are_refreshed_by_their_own_age(model_of):
    model = model_of("llada")
    prompts = [PROMPT, [6, 18, 201]]
    knobs = {"length": 12, "batch_size": 2}
    rule, policy = "confidence | ar(2)", DelayedCache(3)
    together = decode_many(Cached(model, policy), prompts, rule, **knobs)
    for prompt, result in zip(prompts, together, strict=True):
        single = decode(Cached(model, policy), prompt, rule, length=12)
        assert outcome(result) == outcome(single)


@pytest.mark.parametrize("refresh", [0, -1])
def test_a_refresh_is_at_least_one(refresh):
    with pytest.raises(RequestError, match=f"refresh must be >= 1, got {refresh}"):
        DelayedCache(refresh)


@pytest.mark.parametrize("cache", CACHES)
def test_guidance_keeps_a_cache_for_each_of_its_passes(model_of, cache):
    model = model_of("llada")
    plain = fed_by(model, cache, "confidence | ar(2)", length=12, block=4)
    with positions_fed(model) as fed:
        guided = Guided(Cached(model, cache), 1.0)
        decode(guided, PROMPT, "confidence | ar(2)", length=12, block=4)
    for row in range(2):  # with the prompt, and without it
        assert [sorted(rows[row]) for rows in fed] == plain


# Dream reads token i from its output at i - 1


@pytest.mark.parametrize(("cache", "ends"), [("prefix", (11, 11)), ("dual", (7, 11))])
def test_the_position_before_a_window_is_computed_while_its_first_token_is_a_mask(
    model_of, cache, ends
):
    first, second = ends
    fed = fed_by(model_of("dream"), cache, RIGHT_TO_LEFT, length=8, block=4)
    assert fed == [
        [*range(11)],
        *[[*range(2, first)]] * 3,
        [*range(11)],
        *[[*range(6, second)]] * 3,
    ]
    fed = fed_by(model_of("dream"), cache, "confidence | ar(2) | lead", length=8, block=4)
    assert fed == [
        [*range(11)],
        *[[*range(3, first)]] * 3,
        [*range(11)],
        *[[*range(7, second)]] * 3,
    ]


def test_the_delayed_cache_of_a_shifted_model_computes_the_position_before_each_mask(model_of):
    canvas = [MASK, 4, 5, MASK, 6, 7, 8, MASK, MASK, 9]
    model = model_of("dream")
    with positions_fed(model) as fed:
        infill(Cached(model, "delayed"), canvas, "confidence | ar(2)")
    assert alone(fed)[:3] == [
        [*range(10)],
        [0, 2, 3, 6, 7, 8],  # 0 was just written
        [2, 3, 6, 7, 8],  # and 3, so 2 because of it
    ]


def test_a_shifted_model_whose_first_token_is_masked_is_cached_as_well(model_of):
    canvas = [MASK, 4, MASK, 5]
    model = model_of("dream", num_hidden_layers=1)
    for cache in ("prefix", "dual", "delayed"):
        actual = infill(Cached(model, cache), canvas, TOP)
        assert outcome(actual) == outcome(infill(model, canvas, TOP))


# A model of one layer shows no difference: its keys and values depend on their own token only


@pytest.mark.parametrize("rule", RULES[:3])
@pytest.mark.parametrize("cache", ["prefix", "delayed"])
@pytest.mark.parametrize("family", FULL)
def test_a_model_of_one_layer_is_cached_without_loss(model_of, family, cache, rule):
    one = {"n_layers": 1} if family == "llada" else {"num_hidden_layers": 1}
    model = model_of(family, **one)
    knobs = {"length": 8, "block": 4, "batch_size": 2}
    actual = decode_many(Cached(model, cache), PROMPTS[:3], rule, **knobs)
    wanted = decode_many(model, PROMPTS[:3], rule, **knobs)
    assert [outcome(result) for result in actual] == [outcome(result) for result in wanted]


@pytest.mark.parametrize(
    "rule", [TOP, "entropy | eb(1)", "confidence | swd(5, scope=block) | eb(1)"]
)
@pytest.mark.parametrize("family", FULL)
def test_a_dual_cache_loses_nothing_of_one_layer_but_history(model_of, family, rule):
    one = {"n_layers": 1} if family == "llada" else {"num_hidden_layers": 1}
    model = model_of(family, **one)
    knobs = {"length": 8, "block": 4, "batch_size": 2}
    actual = decode_many(Cached(model, "dual"), PROMPTS[:3], rule, **knobs)
    wanted = decode_many(model, PROMPTS[:3], rule, **knobs)
    assert [outcome(result) for result in actual] == [outcome(result) for result in wanted]


@pytest.mark.parametrize("cache", CACHES)
def test_guidance_over_a_cache_loses_nothing_of_one_layer(model_of, cache):
    model = model_of("llada", n_layers=1)
    knobs = {"length": 12, "block": 4, "batch_size": 2}
    actual = decode_many(Guided(Cached(model, cache), 1.5), PROMPTS, TOP, **knobs)
    wanted = decode_many(Guided(model, 1.5), PROMPTS, TOP, **knobs)
    assert [outcome(result) for result in actual] == [outcome(result) for result in wanted]


# Names


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("family", ["sdar", "llada2"])
def test_a_block_causal_model_takes_the_block_cache_only(model_of, family, cache):
    with pytest.raises(RequestError) as caught:
        Cached(model_of(family), cache)
    message = str(caught.value)
    assert "has block-causal attention; the caches for it are 'block'" in message
    assert "\n" not in message


@pytest.mark.parametrize("family", FULL)
def test_a_full_attention_model_takes_no_block_cache(model_of, family):
    with pytest.raises(RequestError) as caught:
        Cached(model_of(family), "block")
    message = str(caught.value)
    assert "has full attention; the caches for it are 'prefix', 'dual' or 'delayed'" in message
    assert "\n" not in message


def test_an_unknown_cache_suggests_the_nearest(model_of):
    with pytest.raises(UnknownName, match="unknown cache 'prefx'; did you mean 'prefix'"):
        Cached(model_of("llada"), "prefx")


def test_every_policy_has_a_name():
    assert ("none", *POLICIES) == words.CACHES
    assert POLICIES["prefix"]() == PrefixCache()
    assert POLICIES["dual"]() == DualCache()


def test_a_cached_model_shows_the_same_special_tokens(model_of):
    model = model_of("llada")
    cached = Cached(model, "prefix")
    spec = replace(model.spec, shadows=False)  # a cache cannot compute them
    assert (cached.spec, cached.device) == (spec, model.device)
