"""What the score sees once sampling, credit and EOS have had their say."""

from __future__ import annotations

import pytest
import torch

from tests.helpers import SPEC, canvas_of, logits_of, random_lookup
from unmask import Rule, Sampling, Settings, decode_steps, prompt_request
from unmask.kernels.reduce import reduce


def first_view(rule="confidence | top(1)", seed=0, **knobs):
    model = random_lookup(seed, dtype=torch.float64)
    request = prompt_request(SPEC, [1], 6, Settings(Rule.parse(rule), **knobs))
    return next(decode_steps(model, [request])).view


def plain_stats(suppress_eos=False):
    model = random_lookup(0, dtype=torch.float64)
    logits = logits_of(model, canvas_of([1, *[SPEC.mask_id] * 6]))[0, 1:]
    logits[:, SPEC.mask_id] = -torch.inf
    if suppress_eos:
        logits[:, SPEC.eos_id] = -torch.inf
    return reduce(logits)


@pytest.mark.parametrize("name", ["token", "confidence", "margin", "entropy"])
def test_a_plain_run_scores_the_models_own_distribution(name):
    assert torch.equal(getattr(first_view(), name)[0], getattr(plain_stats(), name))


@pytest.mark.parametrize("name", ["token", "confidence", "margin", "entropy"])
def test_suppressed_eos_is_left_out_of_every_statistic(name):
    column = getattr(first_view(eos="suppress"), name)[0]
    assert torch.equal(column, getattr(plain_stats(suppress_eos=True), name))


def test_eos_last_scores_without_eos_but_counts_raw_entropies():
    view = first_view(eos="last")
    without = plain_stats(suppress_eos=True)
    keeps = ~view.deferred[0]
    torch.testing.assert_close(view.entropy[0], without.entropy)
    torch.testing.assert_close(view.confidence[0][keeps], without.confidence[keeps])
    assert torch.equal(view.raw_entropy[0], plain_stats().entropy)
    assert torch.equal(view.token[0], plain_stats().token)


def test_temperature_and_credit_go_together():
    rule = "credit(2) | confidence | top(1)"
    plain, heated = (
        first_view(rule, sampling=Sampling(heat, tempered=True)) for heat in (0.0, 3.0)
    )
    assert (heated.entropy > plain.entropy).all()
    assert torch.equal(heated.raw_entropy, plain.raw_entropy)


def test_credit_is_seen_by_the_score_in_the_same_step():
    credited = first_view("credit(2) | confidence | top(1)")
    assert (credited.confidence > first_view().confidence).all()
