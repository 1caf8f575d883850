"""Every row of a batch is decoded as if it were alone."""

from __future__ import annotations

import random
from typing import get_args

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.helpers import EOS, LENGTH, outcome, random_lookup, rule_texts
from unmask import Batch, Rule, Sampling, Settings, decode, decode_many, prompt_request
from unmask.decoding.options import Eos
from unmask.models.wrappers.noisy import Noisy

LONGEST = 8
PLAIN = (Phase.explicit, Phase.generate)  # to shrink a failing run takes long and says little
PROMPTS = st.lists(
    st.lists(st.integers(0, EOS), min_size=1, max_size=LENGTH - LONGEST), min_size=5, max_size=5
)
SAMPLINGS = [
    Sampling(),
    Sampling(0.8),
    Sampling(1.2, top_p=0.9, top_k=4),
    Sampling(0.5, top_p=0.8, tempered=True),
]


def _anything(text, seed):
    """Three prompts of unequal lengths, and any way to decode them."""
    pick = random.Random(f"{text} {seed}")
    prompts = [
        [pick.randrange(EOS) for _ in range(length)]
        for length in pick.sample(range(1, LENGTH - LONGEST + 1), 3)
    ]
    knobs = {
        "length": pick.randint(5, LONGEST),
        "block": pick.choice([None, 3, 4]),
        "eos": pick.choice(get_args(Eos)),
        "sampling": pick.choice(SAMPLINGS),
        "steps": pick.choice([None, None, 5]),
    }
    return prompts, pick.randint(2, 3), knobs


def _same_as_alone(model, prompts, rule, batch_size, seed, **knobs):
    together = decode_many(model, prompts, rule, batch_size=batch_size, seed=seed, **knobs)
    for i, prompt in enumerate(prompts):
        alone = decode(model, prompt, rule, seed=seed + i, **knobs)
        assert outcome(together[i]) == outcome(alone), f"row {i}"


@pytest.mark.parametrize(("seed", "text"), [*enumerate(rule_texts())])
def test_a_batch_of_unequal_prompts_is_as_many_single_runs(text, seed):
    prompts, batch_size, knobs = _anything(text, seed)
    _same_as_alone(random_lookup(seed, eos=2.0), prompts, text, batch_size, seed, **knobs)


@pytest.mark.parametrize("eos", get_args(Eos))
@pytest.mark.parametrize("block", [None, 4])
@settings(max_examples=2, phases=PLAIN)
@given(prompts=PROMPTS, seed=st.integers(0, 2**16))
def test_rows_that_end_early_leave_the_others_alone(eos, block, prompts, seed):
    model = random_lookup(seed, eos=4.0)
    rule = "confidence | swd(1) | threshold(0.4)"
    _same_as_alone(model, prompts, rule, 3, seed, length=LONGEST, block=block, eos=eos)


@settings(max_examples=5, phases=PLAIN)
@given(prompts=PROMPTS, seed=st.integers(0, 2**16))
def test_blocks_opened_in_one_row_leave_what_another_row_committed_alone(prompts, seed):
    model = random_lookup(seed)
    rule = "confidence | swd(1) | top(2) | revoke(0.3, times=2)"
    _same_as_alone(model, prompts, rule, 3, seed, length=LONGEST, block=3)


@settings(max_examples=5, phases=PLAIN)
@given(prompts=PROMPTS, seed=st.integers(0, 2**16))
def test_a_noisy_model_gives_every_row_its_own_noise(prompts, seed):
    model = Noisy(random_lookup(seed), 2.0, seed)
    _same_as_alone(model, prompts, "confidence | swd(1) | eb(1)", 3, seed, length=LONGEST)


@settings(max_examples=5, phases=PLAIN)
@given(
    prompts=PROMPTS,
    seed=st.integers(0, 2**16),
    rules=st.lists(st.sampled_from(rule_texts()), min_size=5, max_size=5),
    blocks=st.lists(st.sampled_from([None, 3, 4]), min_size=5, max_size=5),
    policies=st.lists(st.sampled_from(get_args(Eos)), min_size=5, max_size=5),
    late=st.integers(0, 4),
)
def test_settings_mix_in_one_batch(prompts, seed, rules, blocks, policies, late):
    model = random_lookup(seed, eos=2.0)
    chosen = [
        Settings(Rule.parse(rule), block, eos, Sampling(0.5 if i % 2 else 0.0))
        for i, (rule, block, eos) in enumerate(zip(rules, blocks, policies, strict=True))
    ]
    requests = [
        prompt_request(model.spec, prompt, 8, setting, seed + i)
        for i, (prompt, setting) in enumerate(zip(prompts, chosen, strict=True))
    ]
    batch, results = Batch(model), {}
    for request in requests[late:]:
        batch.admit(request)
    order, waiting = [*range(late, 5), *range(late)], requests[:late]
    while len(batch) or waiting:
        if waiting:
            batch.admit(waiting.pop(0))
        for step in batch.step():
            results |= {result.key: result for result in step.finished}
    for key, index in enumerate(order):
        alone = Batch(model)
        alone.admit(requests[index])
        single = None
        while len(alone):
            for step in alone.step():
                single = next(iter(step.finished), None)
        assert outcome(results[key]) == outcome(single)


def test_a_batch_size_of_one_is_the_same_too():
    model, prompts = random_lookup(3), [[1], [2, 3], [4, 5, 6]]
    _same_as_alone(model, prompts, "confidence | swd(5) | eb(0.5)", 1, 0, length=9)


def test_double_precision_rows_are_independent_too():
    model, prompts = random_lookup(4, dtype=torch.float64), [[1], [2, 3], [4, 5, 6]]
    _same_as_alone(model, prompts, "confidence | swd(5) | eb(0.5)", 2, 0, length=9, block=4)
