"""CreditDecoding: what was predicted before counts."""

from __future__ import annotations

import math

import pytest
import torch

from tests.helpers import Scripted, outcome, random_lookup
from unmask import ModelSpec, Rule, RuleError, Settings, decode, decode_steps, prompt_request
from unmask.rules.credit import Credit

SPEC = ModelSpec(mask_id=3, vocab_size=4, eos_id=2)
ALPHA, BETA, GAMMA = 0.65, 0.7, 0.5


def logits(*rows):
    """Probabilities of tokens 0..2 at each position, the mask impossible."""
    table = torch.tensor([[*row, 0.0] for row in rows], dtype=torch.float64)
    return table.log()


def fused(p, credit):
    """softmax(log p + alpha log(1 + C)) by hand."""
    weights = [q * (1 + c) ** ALPHA for q, c in zip(p, credit, strict=True)]
    return [w / sum(weights) for w in weights]


def steps_of(script, select="top(1)", length=3):
    settings = Settings(Rule.parse(f"credit({ALPHA}, {BETA}, {GAMMA}) | confidence | {select}"))
    request = prompt_request(SPEC, [0], length, settings)
    return list(decode_steps(Scripted(script, SPEC), [request]))


FIRST, SECOND = [0.5, 0.3, 0.2], [0.4, 0.5, 0.1]
SURE = [0.9, 0.05, 0.05]


def test_two_steps_by_hand():
    prompt = [1.0, 1.0, 1.0]
    script = [logits(prompt, SURE, FIRST), logits(prompt, SURE, SECOND)]
    one, two = steps_of(script, length=2)
    # step 1: C[0] = 0.5 ** gamma at the second position
    credit = [0.5**GAMMA, 0.0, 0.0]
    assert one.view.confidence[0, 1] == pytest.approx(fused(FIRST, credit)[0])
    # step 2: C decays, then token 1 gets its own
    credit = [BETA * 0.5**GAMMA, 0.5**GAMMA, 0.0]
    wanted = fused(SECOND, credit)
    assert two.view.confidence[0, 1] == pytest.approx(max(wanted))
    assert int(two.view.token[0, 1]) == 1
    ranked = sorted(wanted)
    assert two.view.margin[0, 1] == pytest.approx(ranked[-1] - ranked[-2])
    assert two.view.entropy[0, 1] == pytest.approx(-sum(p * math.log(p) for p in wanted))


def test_credit_can_turn_the_token():
    near = [0.49, 0.5, 0.01]  # token 1 leads by a hair, token 0 was seen twice before
    prompt = [1.0, 1.0, 1.0]
    calm = logits(prompt, SURE, SURE, SURE, [0.6, 0.2, 0.2])
    script = [calm, calm, calm, logits(prompt, SURE, SURE, SURE, near)]
    last = steps_of(script, length=4)[-1]
    assert int(last.view.token[0, 3]) == 0


def test_budgets_and_instability_read_the_raw_distribution():
    prompt = [1.0, 1.0, 1.0]
    script = [logits(prompt, SURE, FIRST), logits(prompt, SURE, SECOND)]
    _, two = steps_of(script, "budget(0)", length=2)
    raw = -sum(p * math.log(p) for p in SECOND)
    assert two.view.raw_entropy[0, 1] == pytest.approx(raw)
    moved = sum(q * math.log(q / p) for q, p in zip(FIRST, SECOND, strict=True))
    assert two.view.kl_prev_cur[0, 1] == pytest.approx(moved)


@pytest.mark.parametrize("select", ["top(1)", "klass(2, gate=no)"])
def test_credit_starts_anew_in_every_block(select):
    prompt = [1.0, 1.0, 1.0]
    script = [logits(prompt, SURE, SURE, FIRST, FIRST)] * 4
    text = f"credit({ALPHA}, {BETA}, {GAMMA}) | confidence | {select}"
    request = prompt_request(SPEC, [0], 4, Settings(Rule.parse(text), block=2))
    steps = list(decode_steps(Scripted(script, SPEC), [request]))
    wanted = fused(FIRST, [0.5**GAMMA, 0.0, 0.0])[0]
    assert steps[2].view.confidence[0].tolist() == pytest.approx([wanted, wanted])


def test_no_alpha_is_no_credit():
    for seed in range(3):
        model = random_lookup(seed)
        plain = decode(model, [1], "confidence | eb(0.5)", length=10)
        credited = decode(model, [1], "credit(0) | confidence | eb(0.5)", length=10)
        assert outcome(credited) == outcome(plain)


def test_a_suppressed_token_gets_no_chance_by_credit():
    model = random_lookup(2, eos=6.0)
    text = "credit(5) | confidence | top(1)"
    result = decode(model, [1], text, length=12, eos="suppress")
    assert model.spec.eos_id not in result.answer.tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Credit(-1), "credit: alpha must be >= 0 and finite, got -1"),
        (lambda: Credit(beta=1.5), r"credit: beta must be in \[0, 1\], got 1.5"),
        (lambda: Credit(gamma=-1), "credit: gamma must be >= 0 and finite, got -1"),
        (lambda: Credit(math.inf), "credit: alpha must be"),
    ],
)
def test_credit_checks_its_knobs(make, message):
    with pytest.raises(RuleError, match=message):
        make()
