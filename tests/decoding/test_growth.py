"""A canvas that grows until the model is sure of its end."""

from dataclasses import replace

import pytest
import torch

from tests.helpers import EOS, MASK, SPEC, outcome, random_lookup
from unmask import Rule, Sampling, Settings, decode, decode_many, infill, prompt_request
from unmask.decoding.growth import end_confidence
from unmask.decoding.lengths import Growth
from unmask.decoding.loop import decode_steps
from unmask.decoding.request import infill_request
from unmask.errors import RequestError
from unmask.kernels.common import Stats
from unmask.models.denoiser import ModelSpec

RULE = Rule.parse("confidence | threshold(0.6)")
GREEDY = Sampling()
GROWTH = Growth(start=4, most=24, factor=3, sure=0.4, surer=0.9, low=0.3, ends=4)


def requests(growth, rules=(RULE,), block=4, count=4, sampling=GREEDY):
    return [
        prompt_request(
            SPEC,
            [1 + i] * (1 + i % 3),
            growth.most,
            Settings(rules[i % len(rules)], block, sampling=sampling, growth=growth),
            seed=i,
        )
        for i in range(count)
    ]


def results(model, given, batch_size):
    steps = decode_steps(model, given, batch_size)
    finished = {result.key: result for step in steps for result in step.finished}
    return [outcome(finished[number]) for number in range(len(given))]


RULES = [
    "confidence | threshold(0.6)",
    "entropy | swd(2) | eb(0.5)",
    "confidence | less(0.3, drift=0.5, persist=1)",
    "confidence | saber(2) | backtrack(2)",
    "confidence | threshold(0.5) | edit(0.5, steps=3)",
    "confidence | slowfast(0.5, rounds=2)",
    "adablock(1-2-3, tau=0.1) | confidence | threshold(0.5)",
]


@pytest.mark.parametrize(("seed", "rule"), [*enumerate(RULES)])
def test_rows_grow_as_if_alone(rule, seed):
    model, block = random_lookup(seed, length=40, eos=3.0), (None, 4)[seed % 2]
    given = requests(GROWTH, [Rule.parse(rule)], block)
    alone = [results(model, [each], 1)[0] for each in given]
    assert results(model, given, 3) == alone


def test_rows_that_are_drawn_grow_as_if_alone():
    model = random_lookup(0, length=40, eos=3.0)
    for sampling in (Sampling(0.8), Sampling(1.5, top_p=0.8, tempered=True)):
        given = requests(GROWTH, [Rule.parse(rule) for rule in RULES], sampling=sampling)
        assert results(model, given, 3) == [results(model, [each], 1)[0] for each in given]


@pytest.mark.parametrize(
    "rule",
    [
        *RULES,
        "confidence | static(8) | prophet(0, steps=8, early=0, mid=0, late=0, length=2)",
        "confidence | less_dream(0.3, drift=0.5, persist=1, steps=8)",
        "confidence | threshold(0.5) | vote(even)",
    ],
)
def test_a_canvas_that_has_its_size_at_once_is_decoded_as_if_the_length_were_given(rule):
    growth = Growth(start=8, most=8, sure=0.0, low=0.0, ends=1)
    for seed in range(2):
        model = random_lookup(seed, length=40, eos=1.0)
        (grown,) = results(model, requests(growth, [Rule.parse(rule)], count=1), 1)
        given = outcome(decode(model, [1], rule, length=8, block=4))
        assert grown["canvas"] == given["canvas"]
        assert grown["nfe"] == given["nfe"] + 1  # the forward that measures its end


def test_a_candidate_that_would_become_one_mask_stays_as_it_is_in_a_batch_too():
    growth = Growth(start=6, most=9, factor=1, sure=0.6, surer=1.0, low=0.9, ends=2)
    rules = [Rule.parse("entropy | swd(2) | eb(0.5)"), Rule.parse("confidence | less(0.3)")]
    model = random_lookup(0, length=40, eos=3.0)
    given = requests(growth, rules)
    assert results(model, given, 4) == [results(model, [each], 1)[0] for each in given]


def test_an_answer_grows_to_its_limit_if_the_model_never_predicts_its_end():
    model = random_lookup(1, length=40, eos=-9.0)
    (result,) = results(model, requests(GROWTH, count=1), 1)
    assert len(result["canvas"]) == 1 + GROWTH.most
    assert MASK not in result["canvas"]


def test_an_answer_whose_end_is_sure_at_once_does_not_grow():
    model = random_lookup(1, length=40, eos=30.0)
    growth = replace(GROWTH, sure=0.0, low=0.0)
    (result,) = results(model, requests(growth, count=1), 1)
    assert len(result["canvas"]) == 1 + growth.start + growth.ends // 2
    assert result["canvas"][-1] == EOS


def test_a_doubtful_candidate_becomes_several_masks():
    model = random_lookup(2, length=40, eos=3.0)
    never = replace(GROWTH, sure=0.0, low=0.0)
    split = replace(never, low=0.9)
    (short,), (long,) = (results(model, requests(g, count=1), 1) for g in (never, split))
    assert len(long["canvas"]) > len(short["canvas"])
    assert (len(long["canvas"]) - len(short["canvas"])) % (split.factor - 1) in (0, 1)


def test_the_forwards_of_both_stages_count():
    model = random_lookup(1, length=40, eos=30.0)
    steps = list(decode_steps(model, requests(GROWTH, count=1)))
    assert steps[0].view.masked.sum() == 0  # the first forward only measures
    assert steps[-1].finished[0].nfe == len(steps)


def test_the_end_is_as_sure_as_its_last_positions():
    where = (torch.tensor([0, 0, 0, 1]), torch.tensor([3, 4, 5, 3]))
    p = torch.tensor([0.9, 0.5, 0.7, 0.8], dtype=torch.float64)
    zero = torch.zeros_like(p)
    stats = Stats(torch.tensor([EOS, EOS, EOS, 2]), p, zero, zero)
    assert end_confidence(2, where, stats, EOS, 2).tolist() == pytest.approx([0.6, 0.0])
    assert end_confidence(2, where, stats, EOS, 4).tolist() == pytest.approx([2.1 / 4, 0.0])


def test_length_auto_scales_with_the_most_that_is_allowed():
    model = random_lookup(1, length=80, eos=3.0)
    result = decode(model, [1], RULE, length="auto", longest=64)
    assert 2 <= len(result.answer) <= 64
    many = decode_many(model, [[1], [2, 2]], RULE, length="auto", longest=64, batch_size=2)
    assert outcome(many[0]) == outcome(result)
    assert Growth.upto(2048) == Growth()
    assert Growth.upto(8).start == 8


def test_what_does_not_go_with_length_auto_is_an_error():
    model = random_lookup(1)
    with pytest.raises(RequestError, match="steps needs a length"):
        decode(model, [1], RULE, length="auto", steps=4)
    with pytest.raises(RequestError, match="longest is for length auto"):
        decode(model, [1], RULE, length=4, longest=8)
    with pytest.raises(RequestError, match="already has a length"):
        infill_request(SPEC, [1, MASK], Settings(RULE, growth=GROWTH))
    with pytest.raises(RequestError, match="needs an EOS token"):
        prompt_request(ModelSpec(3, 4), [1], 8, Settings(RULE, growth=GROWTH))
    with pytest.raises(RequestError, match="attends in blocks"):
        prompt_request(replace(SPEC, block=4), [1], 8, Settings(RULE, growth=GROWTH))
    assert infill(model, [1, MASK], RULE).nfe == 1


@pytest.mark.parametrize("knobs", [{"start": 0}, {"factor": 0}, {"start": 9, "most": 8}])
def test_growth_out_of_range_is_refused(knobs):
    with pytest.raises(RequestError, match="growth: "):
        Growth(**knobs)
