"""The estimator against likelihoods that are known exactly."""

import itertools
import math

import pytest
import torch

from tests.models.configs import FAMILIES
from tests.models.makers import make
from unmask import decode, decode_steps, load
from unmask.decoding.request import Settings, prompt_request
from unmask.errors import RequestError
from unmask.models.denoiser import ModelSpec
from unmask.models.toys.oracle import MarkovOracle, TableOracle
from unmask.models.wrappers.guided import Guided
from unmask.rules.rule import Rule
from unmask.studies.likelihood import Continuation, hidings, log_likelihoods, would_write

MASK = 4
SPEC = ModelSpec(mask_id=MASK, vocab_size=5)


def chain():
    source = torch.Generator().manual_seed(3)
    initial = torch.rand(4, generator=source, dtype=torch.float64) + 0.1
    transition = torch.rand(4, 4, generator=source, dtype=torch.float64) + 0.1
    return MarkovOracle(
        initial / initial.sum(), transition / transition.sum(-1, keepdim=True), SPEC
    )


def estimates(model, pair, samples, seeds):
    actual = [next(log_likelihoods(model, [pair], samples, seed)) for seed in range(seeds)]
    return torch.tensor(actual, dtype=torch.float64)


def embedded_pair():
    model, tokenizer = load()
    prefix = tokenizer.encode_chat([{"role": "user", "content": "Ann has 12 pens. She buys 3."}])
    return model, Continuation(prefix, tokenizer.encode("12 + 3 = 15. #### 15"))


@pytest.mark.long
@pytest.mark.parametrize("samples", [5, 33])
def test_the_mean_of_the_estimates_is_the_log_likelihood_of_a_markov_chain(samples):
    oracle, prefix, target = chain(), [2, 0], [1, 3, 3, 0, 2, 1, 0]
    exact = oracle.log_likelihood([*prefix, *target]) - oracle.log_likelihood(prefix)
    actual = estimates(oracle, Continuation(prefix, target), samples, seeds=250)
    error = float(actual.std()) / math.sqrt(len(actual))
    assert 0 < error < 0.1
    assert abs(float(actual.mean()) - exact) < 3 * error


def test_more_samples_come_closer():
    oracle, target = chain(), [1, 3, 3, 0, 2, 1, 0, 2]
    spread = [
        float(estimates(oracle, Continuation([2], target), n, seeds=40).std()) for n in (4, 64)
    ]
    assert spread[1] < spread[0] / 3


def test_where_all_ways_to_hide_are_taken_the_value_is_exact():
    oracle, prefix, target = chain(), [3], [0, 0, 2, 1, 3]
    exact = oracle.log_likelihood([*prefix, *target]) - oracle.log_likelihood(prefix)
    (actual,) = log_likelihoods(oracle, [Continuation(prefix, target)], samples=31)
    assert actual == pytest.approx(exact, abs=1e-9)


def test_an_empty_prefix_gives_the_likelihood_of_the_whole_text():
    oracle, text = chain(), [0, 0, 2, 1, 3]
    (actual,) = log_likelihoods(oracle, [Continuation([], text)], samples=31)
    assert actual == pytest.approx(oracle.log_likelihood(text), abs=1e-9)


def test_an_impossible_text_is_infinitely_unlikely():
    oracle = TableOracle([[0, 1, 2], [1, 1, 0]], [0.25, 0.75], SPEC)
    pairs = [
        Continuation([0], [1, 2]),
        Continuation([], [1, 1, 0]),
        Continuation([], [2, 2, 2]),
        Continuation([1], []),
    ]
    actual = list(log_likelihoods(oracle, pairs, samples=16))
    assert actual == pytest.approx([0.0, math.log(0.75), -math.inf, 0.0])


def test_the_mean_on_the_embedded_model_is_the_expectation_over_all_ways_to_hide():
    model, pair = embedded_pair()
    pair = Continuation(pair.prefix, pair.target[:6])
    exact = 0.0
    for size in range(1, 7):  # the definition, one subset after another
        for hidden in itertools.combinations(range(6), size):
            given = torch.tensor([*pair.prefix, *pair.target])
            places = torch.tensor(hidden) + len(pair.prefix)
            logits = whole_logits(model, given.index_fill(0, places, model.spec.mask_id))
            logp = logits.log_softmax(-1)[places, given[places]].sum()
            exact += float(logp) / size / math.comb(6, size)
    (every,) = log_likelihoods(model, [pair], samples=63)
    assert every == pytest.approx(exact, rel=1e-5)
    actual = estimates(model, pair, samples=12, seeds=60)
    error = float(actual.std()) / math.sqrt(len(actual))
    assert abs(float(actual.mean()) - exact) < 3 * error


def whole_logits(model, tokens):
    with torch.no_grad():
        return model.module.logits(model.module(tokens[None]))[0].float()


def test_a_value_depends_on_neither_the_batch_nor_its_neighbours():
    model, pair = embedded_pair()
    other = Continuation(pair.prefix[:-3], pair.target[:-2])
    alone = [next(log_likelihoods(model, [p], 20, seed=7, batch_size=1)) for p in (pair, other)]
    together = list(log_likelihoods(model, [pair, other], 20, seed=7, batch_size=16))
    assert together == pytest.approx(alone, abs=1e-4)
    assert list(log_likelihoods(model, [other, pair], 20, seed=7)) == pytest.approx(alone[::-1])
    assert next(log_likelihoods(model, [pair], 20, seed=8)) != pytest.approx(alone[0])


def test_every_sample_hides_each_number_of_tokens_equally_often():
    counts = torch.stack(
        [hidings(6, 4, torch.Generator().manual_seed(seed))[0].sum(-1) for seed in range(1200)]
    )
    for sample in counts.T:  # LLaDA's rounding would prefer even numbers here
        assert (sample.bincount(minlength=7)[1:] - 200).abs().max() < 60


def test_a_block_causal_model_is_asked_block_by_block():
    lengths = set()

    class Blocks(MarkovOracle):
        def trunk(self, canvas):
            lengths.update(canvas.lengths.tolist())
            return super().trunk(canvas)

    plain = chain()
    model = Blocks(plain.initial, plain.transition, ModelSpec(MASK, 5, block=4))
    prefix, target = [3, 0, 1], [2, 1, 3, 0, 0, 2]
    (actual,) = log_likelihoods(model, [Continuation(prefix, target)], samples=16)
    exact = plain.log_likelihood([*prefix, *target]) - plain.log_likelihood(prefix)
    assert actual == pytest.approx(exact, abs=1e-9)
    assert lengths == {4, 8, 9}  # nothing after the block is visible


@pytest.mark.parametrize("family", FAMILIES)
def test_one_token_is_as_likely_as_decoding_sees_it(tmp_path, family):
    model, _ = load(make(tmp_path, family))
    prefix = [(7 * i) % 250 for i in range(31)]  # so that a block ends after the token
    settings = Settings(Rule.parse("confidence | top(1)"))
    request = prompt_request(model.spec, prefix, 1, settings)
    (step,) = decode_steps(model, [request], keep_logits=True)
    expected = step.logits.values[0].float().log_softmax(-1)
    allowed = [token for token in (3, 77, 200) if token != model.spec.mask_id]
    actual = list(log_likelihoods(model, [Continuation(prefix, [token]) for token in allowed]))
    whole = expected.exp().sum()  # of all tokens but the mask, which only a likelihood allows
    assert float(whole) == pytest.approx(1.0)
    odds = [value - actual[0] for value in actual]
    assert odds == pytest.approx([float(expected[t] - expected[3]) for t in allowed], abs=1e-4)


def test_guidance_is_part_of_the_model():
    model, pair = embedded_pair()
    plain, same, guided = (
        next(log_likelihoods(m, [pair], 16)) for m in (model, Guided(model, 0), Guided(model, 1))
    )
    assert same == pytest.approx(plain, abs=1e-4)
    assert guided != pytest.approx(plain, abs=1e-2)


def test_a_target_that_the_rule_would_write_is_told_from_one_that_it_would_not():
    model, pair = embedded_pair()
    rule = Rule.parse("confidence | top(1)")
    written = decode(model, pair.prefix, rule, length=6).answer.tolist()
    pairs = [Continuation(pair.prefix, target) for target in (written, [*written[:-1], 7], [])]
    for block in (None, 16):  # a block is never wider than the target
        assert would_write(model, pairs, Settings(rule, block)) == [True, False, True]


def test_a_mask_in_the_text_and_senseless_numbers_are_refused():
    with pytest.raises(RequestError, match="holds the mask token of model, id 4"):
        next(log_likelihoods(chain(), [Continuation([0], [1, MASK])]))
    with pytest.raises(RequestError, match="samples must be a whole number >= 1, got 0"):
        next(log_likelihoods(chain(), [Continuation([0], [1])], samples=0))
