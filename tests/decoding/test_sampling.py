"""How tokens are drawn."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import Scripted, outcome, random_lookup
from unmask import (
    ModelSpec,
    RequestError,
    Rule,
    Sampling,
    Settings,
    decode,
    decode_steps,
    prompt_request,
)
from unmask.decoding.sampling import gumbel_max

INF = math.inf
SPEC = ModelSpec(mask_id=4, vocab_size=5, eos_id=3)
P = [0.5, 0.25, 0.15, 0.1]


def script(length):
    """A model that says the same distribution P everywhere."""
    logits = torch.tensor([[*P, 0.0]], dtype=torch.float64).log()
    return Scripted([logits.expand(length + 1, -1)], SPEC)


def first_step(sampling, length=4000, seed=0, rule="confidence | top(1)"):
    request = prompt_request(SPEC, [0], length, Settings(Rule.parse(rule), sampling=sampling), seed)
    return next(decode_steps(script(length), [request]))


def shares(sampling):
    tokens = first_step(sampling).view.token[0]
    return (torch.bincount(tokens, minlength=5) / len(tokens)).tolist()


def test_greedy_takes_the_likeliest_and_draws_nothing():
    assert not Sampling().draws
    assert shares(Sampling()) == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_temperature_one_draws_from_the_distribution():
    assert shares(Sampling(1.0)) == pytest.approx([*P, 0.0], abs=0.03)


def test_a_lower_temperature_sharpens():
    weights = [p**2 for p in P]
    wanted = [w / sum(weights) for w in weights]
    assert shares(Sampling(0.5)) == pytest.approx([*wanted, 0.0], abs=0.03)


def test_top_k_draws_among_the_k_likeliest():
    assert shares(Sampling(1.0, top_k=2)) == pytest.approx([2 / 3, 1 / 3, 0, 0, 0], abs=0.03)


def test_top_p_draws_among_the_smallest_set_that_reaches_p():
    assert shares(Sampling(1.0, top_p=0.7)) == pytest.approx([2 / 3, 1 / 3, 0, 0, 0], abs=0.03)


def test_a_tiny_top_p_keeps_the_likeliest():
    assert shares(Sampling(1.0, top_p=1e-9)) == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_a_top_k_beyond_the_vocabulary_keeps_all():
    z = torch.randn(3, 5)
    assert torch.equal(Sampling(1.0, top_k=99).temper(z), z)


def test_suppressed_tokens_stay_suppressed_when_tempered():
    z = torch.tensor([[1.0, -INF, 0.0, -INF]])
    for sampling in (Sampling(0.5), Sampling(0.5, top_k=3), Sampling(0.5, top_p=0.99)):
        assert (sampling.temper(z) == -INF).tolist()[0][1::2] == [True, True]


def test_the_tempered_logits_are_divided_and_filtered():
    z = torch.tensor([[3.0, 2.0, 1.0]])
    assert Sampling(0.5, top_k=2).temper(z).tolist() == [[6.0, 4.0, -INF]]


def test_tempering_leaves_the_logits_alone():
    z = torch.tensor([[3.0, 2.0, 1.0]])
    Sampling(0.5, top_p=0.5, top_k=1).temper(z)
    assert z.tolist() == [[3.0, 2.0, 1.0]]


@given(seed=st.integers(0, 2**16), top_p=st.floats(0.05, 0.99))
def test_top_p_keeps_a_set_of_the_likeliest_that_reaches_p(seed, top_p):
    z = torch.randn(4, 9, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    kept = Sampling(1.0, top_p=top_p).temper(z) > -INF
    p = z.softmax(-1)
    assert (torch.where(kept, p, 0.0).sum(-1) >= top_p).all()
    assert (torch.where(kept, p, 2.0).amin(-1) >= torch.where(kept, 0.0, p).amax(-1)).all()
    without_least = torch.where(kept, p, 0.0).sum(-1) - torch.where(kept, p, 2.0).amin(-1)
    assert (without_least <= top_p).all()


def test_the_confidence_is_the_plain_probability_of_the_drawn_token():
    view = first_step(Sampling(2.0), length=50).view
    wanted = torch.tensor(P, dtype=torch.float64)[view.token]
    torch.testing.assert_close(view.confidence, wanted)
    assert len(set(view.token[0].tolist())) > 1


def test_tempered_confidence_is_that_of_the_tempered_distribution():
    view = first_step(Sampling(0.5, top_k=2, tempered=True), length=50).view
    weights = torch.tensor([p**2 for p in P[:2]], dtype=torch.float64)
    torch.testing.assert_close(view.confidence, (weights / weights.sum())[view.token])


def test_entropy_and_margin_are_untempered_unless_asked():
    plain, tempered = (
        first_step(Sampling(0.5, tempered=tempered), length=3).view for tempered in (False, True)
    )
    entropy = -sum(p * math.log(p) for p in P)
    assert plain.entropy[0].tolist() == pytest.approx([entropy] * 3)
    assert plain.margin[0].tolist() == pytest.approx([0.25] * 3)
    assert (tempered.entropy < plain.entropy).all()
    assert tempered.raw_entropy[0].tolist() == pytest.approx([entropy] * 3)


def test_the_same_seed_gives_the_same_text():
    model = random_lookup(0)
    knobs = {"length": 12, "sampling": Sampling(1.0)}
    first, again = (decode(model, [1], "confidence | eb(1)", seed=7, **knobs) for _ in range(2))
    assert outcome(first) == outcome(again)


def test_another_seed_gives_another_text():
    model = random_lookup(0)
    knobs = {"length": 12, "sampling": Sampling(1.0)}
    texts = {
        tuple(decode(model, [1], "confidence | top(1)", seed=seed, **knobs).answer.tolist())
        for seed in range(5)
    }
    assert len(texts) > 1


def test_a_seed_changes_nothing_about_a_greedy_run():
    model = random_lookup(0)
    runs = [decode(model, [1], "confidence | top(1)", length=12, seed=seed) for seed in (1, 2)]
    assert outcome(runs[0]) == outcome(runs[1])


def test_decoding_leaves_the_global_random_state_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    decode(random_lookup(0), [1], "random | top(1)", length=6, sampling=Sampling(1.0))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_first_draws_are_fresh_at_every_position():
    view = first_step(Sampling(1.0), length=40).view
    assert len(set(view.token[0].tolist())) == 4


def test_gumbel_max_is_the_argmax_of_the_ratio_in_lladas_code():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(200, 9, generator=generator, dtype=torch.float64)
    noise = torch.rand(200, 9, generator=generator, dtype=torch.float64)
    for heat in (0.3, 1.0, 2.5):
        ratio = z.exp() / (-noise.log()) ** heat
        assert torch.equal(gumbel_max(z / heat, noise), ratio.argmax(-1))


def test_gumbel_max_never_draws_what_is_suppressed():
    z = torch.tensor([[-INF, 0.0, -INF]])
    noise = torch.tensor([[0.999999, 0.0001, 0.5]])
    assert gumbel_max(z, noise).tolist() == [1]


def test_the_mask_is_never_drawn():
    tokens = first_step(Sampling(50.0)).view.token
    assert not (tokens == SPEC.mask_id).any()


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"temperature": -0.1}, "or >= 0.0001 and finite, got -0.1"),
        ({"temperature": INF}, "or >= 0.0001 and finite, got inf"),
        ({"temperature": math.nan}, "or >= 0.0001 and finite, got nan"),
        ({"top_p": 0.0}, r"top_p must be in \(0, 1\], got 0.0"),
        ({"top_p": 1.1}, r"top_p must be in \(0, 1\], got 1.1"),
        ({"top_k": -1}, "top_k must be >= 0"),
    ],
)
def test_sampling_checks_its_knobs(knobs, message):
    with pytest.raises(RequestError, match=message):
        Sampling(**knobs)
