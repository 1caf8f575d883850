"""Routers and experts by hand-made numbers and against plain loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.models.configs import config_of
from tests.models.reference import gated, route_sigmoid, route_softmax
from unmask.models.architecture import Experts
from unmask.models.layers import MixtureOfExperts


def module_of(hidden=4, router=None, bias=None, **fields):
    """Experts with random weights; the router may be given."""
    settings = {"count": 4, "top_k": 2, "width": 3} | fields
    module = MixtureOfExperts(hidden, Experts(bias=bias is not None, **settings))
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.requires_grad_(False)
        parameter.copy_(torch.randn(parameter.shape, generator=generator))
    if router is not None:
        module.router.copy_(torch.tensor(router))
    if bias is not None:
        module.bias.copy_(torch.tensor(bias))
    return module


def routed(module, *logits):
    """Expert -> weight for one token, whose router logits these are."""
    module.router.copy_(torch.eye(len(logits)))
    chosen, weight = module.route(torch.tensor([logits]))
    return dict(zip(chosen[0].tolist(), weight[0].tolist(), strict=True))


def sigmoid(x):
    return float(torch.tensor(x, dtype=torch.float64).sigmoid())


def test_softmax_weights_are_probabilities_over_all_experts():
    actual = routed(module_of(), 1.0, 3.0, 2.0, 0.0)
    wanted = torch.tensor([1.0, 3.0, 2.0, 0.0]).softmax(0)
    assert actual == pytest.approx({1: float(wanted[1]), 2: float(wanted[2])}, abs=1e-6)


def test_sigmoid_weights_sum_to_the_scale():
    actual = routed(module_of(scoring="sigmoid", normalise=True, scale=2.5), 1.0, 3.0, 2.0, 0.0)
    total = sigmoid(3.0) + sigmoid(2.0)
    wanted = {1: 2.5 * sigmoid(3.0) / total, 2: 2.5 * sigmoid(2.0) / total}
    assert actual == pytest.approx(wanted, abs=1e-6)


def test_a_bias_decides_but_does_not_weigh():
    module = module_of(scoring="sigmoid", bias=[5.0, 0.0, 0.0, 0.0])
    actual = routed(module, 1.0, 3.0, 2.0, 0.0)
    assert actual == pytest.approx({0: sigmoid(1.0), 1: sigmoid(3.0)}, abs=1e-6)


def test_a_bias_in_the_weight_counts_there_too():
    module = module_of(bias=[5.0, 0.0, 0.0, 0.0], bias_in_weight=True)
    wanted = torch.tensor([1.0, 3.0, 2.0, 0.0]).softmax(0)
    actual = routed(module, 1.0, 3.0, 2.0, 0.0)
    assert actual == pytest.approx({0: float(wanted[0]) + 5, 1: float(wanted[1])}, abs=1e-6)


def test_a_group_stands_for_its_two_best_experts():
    # The best expert is alone in its group; a group with two good experts wins.
    module = module_of(
        hidden=6, count=6, groups=2, top_groups=1, top_k=2, scoring="sigmoid", normalise=False
    )
    actual = routed(module, 4.0, -4.0, -4.0, 1.0, 1.5, -4.0)
    assert actual == pytest.approx({3: sigmoid(1.0), 4: sigmoid(1.5)}, abs=1e-6)


def test_the_bias_chooses_the_groups_as_well():
    module = module_of(
        hidden=6,
        count=6,
        groups=2,
        top_groups=1,
        scoring="sigmoid",
        bias=[0.0, 3.0, 3.0, 0.0, 0.0, 0.0],
    )
    assert set(routed(module, 0.0, -1.0, -1.0, 2.0, 2.0, 2.0)) == {1, 2}


def test_negative_scores_do_not_open_a_closed_group():
    # With a large negative bias everywhere, a 0 in an excluded group would look best.
    module = module_of(
        hidden=6, count=6, groups=2, top_groups=1, top_k=3, scoring="sigmoid", bias=[-9.0] * 6
    )
    assert set(routed(module, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0)) == {0, 1, 2}


def test_a_single_sigmoid_expert_keeps_its_own_weight():
    """The original normalises only where several experts are chosen."""
    module = module_of(scoring="sigmoid", normalise=True, top_k=1, scale=2.5)
    assert routed(module, 1.0, 3.0, 2.0, 0.0) == pytest.approx({1: 2.5 * sigmoid(3.0)}, abs=1e-6)


def test_the_router_works_in_float32_whatever_the_model_does():
    module = module_of(scoring="sigmoid").bfloat16()
    chosen, weight = module.route(torch.randn(5, 4).bfloat16())
    assert weight.dtype == torch.float32
    assert chosen.shape == (5, 2)


def test_the_output_keeps_the_dtype_and_the_shape():
    x = torch.randn(2, 5, 4).bfloat16()
    y = module_of().bfloat16()(x)
    assert (y.dtype, y.shape) == (x.dtype, x.shape)


@given(seed=st.integers(0, 2**16), kind=st.sampled_from(["softmax", "sigmoid"]))
def test_experts_add_up_as_in_plain_loops(seed, kind):
    grouped = {"scoring": "sigmoid", "normalise": True, "scale": 2.5, "groups": 2, "top_groups": 1}
    module = module_of(
        hidden=6,
        count=8,
        top_k=3,
        width=5,
        bias=[0.3, -0.2, 0.0, 0.1, 0.4, -0.5, 0.2, 0.0],
        **(grouped if kind == "sigmoid" else {"bias_in_weight": True}),
    )
    x = torch.randn(7, 6, generator=torch.Generator().manual_seed(seed))
    config = config_of("llada2", n_group=2, topk_group=1, num_experts_per_tok=3)
    route = route_sigmoid if kind == "sigmoid" else route_softmax
    weights = [module.gate, module.up, module.down, module.router, module.bias]
    gate, up, down, router, bias = (weight.double() for weight in weights)
    rows = []
    for token in x.double():
        chosen = route(router @ token, bias, config)
        rows.append(sum(w * gated(token, gate[e], up[e], down[e]) for e, w in chosen.items()))
    torch.testing.assert_close(module(x).double(), torch.stack(rows), atol=1e-4, rtol=1e-4)


def test_tokens_do_not_influence_one_another():
    module = module_of()
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    together = module(x)
    for i in range(6):
        torch.testing.assert_close(module(x[i : i + 1])[0], together[i], atol=1e-6, rtol=1e-6)
