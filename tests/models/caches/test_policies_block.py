"""The block cache of block-causal models: exact, to the token and the forward."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch

from tests.helpers import outcome
from tests.models.caches.watch import PROMPTS, alone, positions_fed
from tests.models.configs import MASK
from unmask import (
    Batch,
    Cached,
    Guided,
    RequestError,
    Rule,
    Sampling,
    Settings,
    decode,
    decode_many,
    infill,
    prompt_request,
)
from unmask.models.pretrained import Pretrained

RULES = [
    "confidence | top(1)",
    "confidence | swd(5) | eb(0.1)",
    "confidence | swd(5) | eb(2)",
    "entropy | swd(2, kl=cur_prev) | threshold(-1)",
    "margin | swd(2, start=skip, scope=block) | threshold(0.3)",
    "entropy | swd(2, start=single, form=signed) | eb(0.5)",
    "confidence | klass(0.2, kl=0.5, gate=no)",
    "credit(0.65) | confidence | swd(1) | eb(1) | floor(2)",
    "confidence | swd(1) | threshold(0.2) | revoke(0.2, times=2)",
    "random | top(2)",
]
FAMILIES = [("sdar", None), ("sdar", 8), ("llada2", 8)]


def same(cached, plain):
    assert [outcome(result) for result in cached] == [outcome(result) for result in plain]


PAIRS = [  # every rule, every family
    (*FAMILIES[number % len(FAMILIES)], RULES[number % len(RULES)])
    for number in range(max(len(FAMILIES), len(RULES)))
]


@pytest.mark.parametrize(("family", "block", "rule"), PAIRS)
def test_a_batch_of_unequal_prompts_is_decoded_as_without_a_cache(model_of, family, block, rule):
    model = model_of(family, block=block)
    knobs = {"length": 10, "batch_size": 2}
    same(
        decode_many(Cached(model, "block"), PROMPTS[:4], rule, **knobs),
        decode_many(model, PROMPTS[:4], rule, **knobs),
    )


@pytest.mark.parametrize("rule", ["confidence | swd(5) | eb(2)", "confidence | top(1)"])
@pytest.mark.parametrize("eos", ["stop", "block", "fill", "last", "suppress"])
def test_rows_that_end_early_do_not_disturb_the_others(model_of, rule, eos):
    plain = model_of("sdar")
    free = decode_many(plain, PROMPTS[:3], rule, length=10)
    frequent = Counter(token for result in free for token in result.answer.tolist())
    stop = frequent.most_common(1)[0][0]
    model = Pretrained(plain.module, replace(plain.spec, eos_id=stop, stop_ids=(stop,)))
    knobs = {"length": 10, "batch_size": 2, "eos": eos}
    actual = decode_many(model, PROMPTS[:3], rule, **knobs)
    same(decode_many(Cached(model, "block"), PROMPTS[:3], rule, **knobs), actual)
    if eos in ("stop", "fill"):
        assert len({result.nfe for result in actual}) > 1


def test_drawn_tokens_are_the_same_as_without_a_cache(model_of):
    model = model_of("sdar")
    knobs = {"length": 14, "sampling": Sampling(0.8, top_p=0.9), "seed": 3}
    rule = "confidence | swd(1) | eb(1)"
    same(
        decode_many(Cached(model, "block"), PROMPTS, rule, **knobs),
        decode_many(model, PROMPTS, rule, **knobs),
    )


@pytest.mark.parametrize("holes", [[0, 1, 6, 9, 15], [3, 4, 5, 12, 13], [14], [2, 15]])
def test_holes_anywhere_are_filled_as_without_a_cache(model_of, holes):
    model = model_of("sdar")
    canvas = [MASK if i in holes else 3 * i + 1 for i in range(16)]
    rule = "confidence | swd(5) | eb(0.5)"
    same([infill(Cached(model, "block"), canvas, rule)], [infill(model, canvas, rule)])


def admitted(model, *requests):
    batch = Batch(model)
    for rule, prompt in requests:
        settings = Settings(Rule.parse(rule))
        batch.admit(prompt_request(model.spec, prompt, 14, settings))
    return batch


def drained(batch):
    results = {}
    while len(batch):
        for step in batch.step():
            results.update({result.key: result for result in step.finished})
    return results


def test_rows_of_different_rules_share_one_cache(model_of):
    model = model_of("sdar")
    requests = [
        (rule, prompt)
        for prompt in PROMPTS[:3]
        for rule in ("confidence | top(1)", "confidence | swd(5) | eb(2)", "entropy | top(3)")
    ]
    actual = drained(admitted(Cached(model, "block"), *requests))
    for key, (rule, prompt) in enumerate(requests):
        assert outcome(actual[key]) | {"key": key} == outcome(
            decode(model, prompt, rule, length=14)
        ) | {"key": key}


def test_a_row_that_enters_late_and_one_that_is_dropped_change_no_other(model_of):
    model = model_of("sdar")
    rule = "confidence | swd(5) | eb(0.1)"
    batch = admitted(Cached(model, "block"), *((rule, prompt) for prompt in PROMPTS[:3]))
    for _ in range(3):
        batch.step()
    batch.drop(0)
    late = prompt_request(model.spec, PROMPTS[4], 14, Settings(Rule.parse(rule)))
    assert batch.admit(late) == 3
    actual = drained(batch)
    for key, prompt in ((1, PROMPTS[1]), (2, PROMPTS[2]), (3, PROMPTS[4])):
        assert outcome(actual[key]) == outcome(decode(model, prompt, rule, length=14))


def test_each_forward_computes_the_open_block_and_once_the_one_before(model_of):
    model = model_of("sdar")  # blocks of 4
    with positions_fed(model) as fed:
        decode(Cached(model, "block"), PROMPTS[0], "confidence | top(1)", length=9)
    open_first, open_second, open_third = range(4), range(4, 8), range(8, 12)
    assert alone(fed) == [
        [*open_first],  # one mask beside the prompt
        [*open_first, *open_second],  # the block before, now complete
        *[[*open_second]] * 3,
        [*open_second, *open_third],
        *[[*open_third]] * 3,
    ]


def test_a_long_prompt_is_computed_once(model_of):
    model = model_of("sdar")
    prompt = list(range(1, 42))
    with positions_fed(model) as fed:
        decode(Cached(model, "block"), prompt, "confidence | top(1)", length=6)
    assert alone(fed)[0] == list(range(44))
    assert all(len(positions) <= 8 for positions in alone(fed)[1:])


def test_without_a_cache_every_forward_goes_up_to_the_open_block(model_of):
    model = model_of("sdar")
    with positions_fed(model) as fed:
        decode(model, PROMPTS[0], "confidence | top(1)", length=9)
    assert [len(positions) for positions in alone(fed)] == [4, 8, 8, 8, 8, 12, 12, 12, 12]


def test_logits_with_the_cache_are_those_without(model_of):
    """Compare every forward, at every masked position of the active block."""
    model = model_of("llada2", block=8)
    seen = []

    class Twice:
        spec, device = model.spec, model.device

        def __init__(self):
            self.cached = Cached(model, "block")

        def trunk(self, canvas):
            self.plain = model.trunk(canvas)
            return self.cached.trunk(canvas)

        def head(self, hidden, rows, positions):
            actual = self.cached.head(hidden, rows, positions)
            seen.append((actual - model.head(self.plain, rows, positions)).abs().max())
            return actual

    decode_many(Twice(), PROMPTS, "confidence | top(2)", length=20, batch_size=3)
    assert len(seen) > 20
    assert max(seen) < 1e-4


def test_guidance_over_the_cache_is_guidance_without(model_of):
    model = model_of("sdar")
    rule = "confidence | swd(5) | eb(0.5)"
    same(
        decode_many(Guided(Cached(model, "block"), 1.5), PROMPTS, rule, length=10),
        decode_many(Guided(model, 1.5), PROMPTS, rule, length=10),
    )


def test_a_block_of_its_own_needs_no_other_in_the_request(model_of):
    with pytest.raises(RequestError, match="attends in blocks of 4"):
        decode(Cached(model_of("sdar"), "block"), [1], "confidence | top(1)", length=8, block=2)


def test_half_precision_is_cached_in_half_precision(model_of, tmp_path):
    from tests.models.makers import make
    from unmask import load

    model = load(make(tmp_path, "sdar", stored=torch.bfloat16)).model
    cached = Cached(model, "block")
    results = decode_many(cached, PROMPTS, "confidence | top(2)", length=6, batch_size=2)
    assert all(MASK not in result.canvas.tolist() for result in results)
    kept = [tensor for pair in cached._store.layers.values() for tensor in pair]
    assert {tensor.dtype for tensor in kept} == {torch.bfloat16}
