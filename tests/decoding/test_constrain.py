"""Answers stay in their language, with every rule, block, EOS policy and way to sample."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import (
    EOS,
    MASK,
    READINGS,
    SPEC,
    VOCABULARY,
    Counting,
    outcome,
    part_texts,
    random_lookup,
)
from tests.languages.automata import enumerated, random_automaton
from unmask import RequestError, Sampling, decode, decode_many, infill
from unmask.decoding.constrain import Constraint
from unmask.decoding.options import Eos
from unmask.languages.automaton import TokenAutomaton
from unmask.languages.canvas import PartlyFilled

SAMPLINGS = [
    Sampling(),
    Sampling(),
    Sampling(0.8),
    Sampling(1.2, top_p=0.9, top_k=4),
    Sampling(0.5, top_p=0.8, tempered=True),
]


def ending(language: TokenAutomaton, eos: str) -> TokenAutomaton:
    """What the whole answer must be in."""
    never = (MASK, EOS) if eos == "suppress" else (MASK,)
    return language.ending((EOS,), never)


def satisfiable(pick: random.Random, length: int, eos: str) -> TokenAutomaton:
    """A random language with an answer of this length that is not all end tokens."""
    while True:
        language = random_automaton(np.random.default_rng(pick.randrange(2**32)), VOCABULARY, 5)
        row = PartlyFilled.of(
            ending(language, eos), np.zeros(length, dtype=np.int64), np.ones(length, dtype=bool)
        )
        if row.satisfiable() and not language.accepting[language.start]:
            return language


def literal(*texts: list[int]) -> TokenAutomaton:
    """The language of these strings of tokens."""
    prefixes = sorted({tuple(text[:n]) for text in texts for n in range(len(text) + 1)}, key=len)
    number = {prefix: state for state, prefix in enumerate(prefixes)}
    table = np.full((len(prefixes), VOCABULARY), -1, dtype=np.int32)
    for prefix in prefixes[1:]:
        table[number[prefix[:-1]], prefix[-1]] = number[prefix]
    accepting = np.isin(range(len(prefixes)), [number[tuple(text)] for text in texts])
    return TokenAutomaton(np.arange(VOCABULARY, dtype=np.int32), table, accepting, name="the texts")


@pytest.mark.parametrize(("seed", "rule"), [*enumerate([*part_texts(), *READINGS])])
def test_every_rule_stays_in_the_language_and_a_batch_is_as_many_single_runs(seed, rule):
    pick = random.Random(seed)
    model = random_lookup(seed, eos=pick.choice([0.0, 2.0]))
    knobs = {
        "length": pick.randint(4, 7),
        "block": pick.choice([None, 3, 4]),
        "eos": pick.choice(get_args(Eos)),
        "sampling": pick.choice(SAMPLINGS),
        "steps": pick.choice([None, None, 5]),
    }
    knobs["language"] = satisfiable(pick, knobs["length"], knobs["eos"])
    prompts = [[pick.randrange(EOS) for _ in range(size)] for size in pick.sample(range(1, 10), 3)]
    together = decode_many(model, prompts, rule, batch_size=2, seed=seed, **knobs)
    for place, prompt in enumerate(prompts):
        alone = decode(model, prompt, rule, seed=seed + place, **knobs)
        assert outcome(together[place]) == outcome(alone), knobs
        assert ending(knobs["language"], knobs["eos"]).accepts(alone.answer.tolist()), knobs


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_infilling_spans_the_fixed_text_between_masks(seed):
    pick = random.Random(seed)
    model, eos = random_lookup(seed % 1000), pick.choice(get_args(Eos))
    canvas = [pick.randrange(EOS) for _ in range(10)]
    for place in pick.sample(range(1, 10), 5):
        canvas[place] = MASK
    language = random_automaton(np.random.default_rng(seed), VOCABULARY, 4)
    ids = torch.tensor(canvas)
    first, last = (ids == MASK).nonzero()[[0, -1], 0].tolist()
    span = np.array(canvas[first : last + 1])
    whole = ending(language, eos)
    rule = pick.choice(["confidence | top(3)", "confidence | swd(1) | eb(2)", "margin | top(9)"])
    knobs = {"eos": eos, "sampling": pick.choice(SAMPLINGS), "block": pick.choice([None, 3])}
    if not PartlyFilled.of(whole, span, span == MASK).satisfiable():
        counting = Counting(model)
        with pytest.raises(RequestError, match="language"):
            infill(counting, canvas, rule, language=language, **knobs)
        assert counting.forwards == 0
        return
    result = infill(model, canvas, rule, language=language, **knobs)
    assert whole.accepts(result.canvas[first : last + 1].tolist())
    assert result.canvas[ids != MASK].tolist() == ids[ids != MASK].tolist()


def test_the_confidence_is_the_marginal_and_the_divergence_is_the_models_own():
    """The first step's view against enumeration, with the plain run beside it."""
    from unmask import Batch, Rule, Settings, prompt_request

    model, language = random_lookup(5), literal([1, 2, 3], [1, 4, 3], [2, 2, 2], [2, 2])
    rule = Rule.parse("confidence | swd(1) | top(1)")

    def first_step(**more):
        batch = Batch(model, keep_logits=True)
        batch.admit(prompt_request(SPEC, [0, 1], 3, Settings(rule, **more)))
        return batch.step()[0]

    plain, step = first_step(), first_step(language=language)
    assert torch.equal(plain.view.kl_prev_cur, step.view.kl_prev_cur)
    logp = step.logits.values.double().log_softmax(-1)
    automaton = Constraint.of(Settings(rule, language=language), SPEC).automaton
    strings = enumerated(automaton, np.zeros(3, dtype=np.int64), np.ones(3, dtype=bool))
    assert len(strings) == 4
    exact = torch.zeros(3, VOCABULARY, dtype=torch.float64)
    for string in strings:
        weight = logp[torch.arange(3), torch.tensor(string)].sum().exp()
        exact[torch.arange(3), torch.tensor(string)] += weight
    exact /= exact.sum(-1, keepdim=True)
    assert torch.allclose(step.view.confidence[0], exact.amax(-1), atol=1e-6)
    entropy = -torch.special.xlogy(exact, exact).sum(-1)
    assert torch.allclose(step.view.entropy[0], entropy, atol=1e-5)
    assert torch.equal(step.view.raw_entropy, step.view.entropy)


def test_tokens_of_one_step_that_do_not_fit_together_become_the_best_that_do():
    """Each position alone prefers its own text; the two texts exclude each other."""
    from tests.helpers import Scripted

    logits = torch.zeros(4, VOCABULARY, dtype=torch.float64)
    logits[2, 1], logits[2, 2] = 3.0, 2.9
    logits[3, 1], logits[3, 2] = 2.9, 3.2
    language = literal([1, 1], [2, 2])
    model = Scripted([logits], SPEC)
    result = decode(model, [0, 0], "confidence | top(2)", length=2, language=language)
    assert result.answer.tolist() == [2, 2]
    loose = literal([1, 1], [2, 2], [1, 2])
    assert decode(
        model, [0, 0], "confidence | top(2)", length=2, language=loose
    ).answer.tolist() == [1, 2]


def test_drawn_strings_have_the_probabilities_of_the_language():
    """A full window that is committed at once is an exact sample of all strings that fit."""
    from tests.helpers import Scripted

    torch.manual_seed(0)
    logits = torch.randn(5, VOCABULARY, dtype=torch.float64)
    texts = [[1, 1, 2], [1, 2], [3, 1, 1], [2]]
    language, count = literal(*texts), 300
    strings = [text + [EOS] * (3 - len(text)) for text in texts]
    logp = (logits / 0.7).log_softmax(-1)
    weights = torch.stack([sum(logp[2 + i, t] for i, t in enumerate(s)) for s in strings])
    exact = weights.softmax(-1)
    results = decode_many(
        Scripted([logits], SPEC), [[0, 0]] * count, "confidence | top(3)", length=3,
        sampling=Sampling(0.7), language=language, batch_size=100,
    )  # fmt: skip
    drawn = [strings.index(result.answer.tolist()) for result in results]
    share = torch.bincount(torch.tensor(drawn), minlength=4) / count
    assert ((share - exact).abs() < 4 * (exact * (1 - exact) / count).sqrt() + 1e-3).all()


def test_an_unsatisfiable_canvas_is_one_error_before_the_first_forward():
    counting = Counting(random_lookup(1))
    language = literal([1, 2, 3, 4])
    with pytest.raises(RequestError, match="takes at least 4 tokens, and the answer has 3"):
        decode(counting, [0], length=3, language=language)
    with pytest.raises(RequestError, match="no answer of 5 tokens is in the texts"):
        decode(counting, [0], length=5, eos="suppress", language=language)
    with pytest.raises(RequestError, match="with the text between the masks is in the texts"):
        infill(counting, [0, MASK, 3, MASK, MASK], language=language)
    with pytest.raises(RequestError, match="needs a length"):
        decode(counting, [0], length="auto", longest=32, language=language)
    wrong = replace(language, classes=language.classes[:-1])
    with pytest.raises(RequestError, match="is made for 11 tokens"):
        decode(counting, [0], length=4, language=wrong)
    assert counting.forwards == 0


def test_a_model_that_forbids_all_that_the_language_allows_is_an_error():
    from tests.helpers import Scripted
    from unmask import ModelError

    logits = torch.zeros(3, VOCABULARY)
    logits[:, 4] = -torch.inf
    with pytest.raises(ModelError, match="only -inf logits to what the texts allows"):
        decode(Scripted([logits], SPEC), [0], length=2, language=literal([4, 4]))


def test_a_rule_that_forbids_all_that_the_language_allows_is_named():
    from unmask import RuleError

    with pytest.raises(RuleError, match=r"no_end\(1\) leaves no token that can be written"):
        decode(
            random_lookup(1), [0], "no_end(1) | entropy | top(1)", length=2, language=literal([])
        )
