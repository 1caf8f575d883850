"""Norms, rotations and their table, each by hand."""

from __future__ import annotations

import torch

from unmask.models.architecture import Architecture
from unmask.models.layers import RMSNorm, Rotary, RotaryTable
from unmask.models.transformer import Transformer


def test_the_norm_casts_back_to_bfloat16_before_its_weight():
    generator = torch.Generator().manual_seed(0)
    x = (3 * torch.randn(50, 64, generator=generator)).bfloat16()
    weight = (1 + 0.3 * torch.randn(64, generator=generator)).bfloat16()
    module = RMSNorm(64, 1e-5)
    module.weight = torch.nn.Parameter(weight, requires_grad=False)
    wide = x.float()
    normal = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-5)
    assert torch.equal(module(x), normal.bfloat16() * weight)
    assert not torch.equal(module(x), (normal * weight.float()).bfloat16())  # the other order


def test_the_norm_squares_in_float32():
    module = RMSNorm(4, 1e-5)
    module.weight = torch.nn.Parameter(torch.ones(4, dtype=torch.float16), requires_grad=False)
    x = torch.full((1, 4), 1000.0, dtype=torch.float16)  # whose square is no float16
    assert torch.equal(module(x), torch.ones_like(x))


def _small(**changes):
    fields = {
        "vocab_size": 11,
        "hidden": 16,
        "layers": 1,
        "heads": 2,
        "kv_heads": 2,
        "head_dim": 8,
        "mlp": 8,
        "norm_eps": 1e-5,
        "rope_theta": 1e4,
        "rotary_dim": 8,
    }
    return Architecture(**(fields | changes))


def test_rotation_turns_the_pair_of_the_first_and_second_half():
    x = torch.zeros(1, 1, 1, 8)
    x[..., 1] = 1.0
    position = torch.tensor([[3]])
    angle = torch.tensor(3 * 1e4 ** (-2 / 8))
    wanted = torch.zeros(8)
    wanted[1], wanted[5] = angle.cos(), angle.sin()
    actual = Rotary.at(_small(), position, torch.float32).turn(x)[0, 0, 0]
    torch.testing.assert_close(actual, wanted)


def test_partial_rotation_leaves_the_other_features_alone():
    x = torch.randn(1, 5, 2, 8, generator=torch.Generator().manual_seed(0))
    actual = Rotary.at(_small(rotary_dim=4), torch.arange(5)[None], torch.float32).turn(x)
    assert torch.equal(actual[..., 4:], x[..., 4:])
    assert not torch.allclose(actual[:, 1:, :, :4], x[:, 1:, :, :4])


def test_rotation_in_float32_rounds_once():
    x = torch.randn(1, 40, 2, 8, generator=torch.Generator().manual_seed(0)).bfloat16()
    positions = torch.arange(40)[None]
    exact = Rotary.at(_small(), positions, torch.float32).turn(x.float()).bfloat16()
    kept = Rotary.at(_small(rope_in_float32=True), positions, torch.bfloat16).turn(x)
    rounded = Rotary.at(_small(), positions, torch.bfloat16).turn(x)
    assert kept.dtype == rounded.dtype == torch.bfloat16
    assert torch.equal(kept, exact)
    assert not torch.equal(rounded, exact)


def test_a_position_far_out_is_turned_as_exactly_as_a_near_one():
    x = torch.randn(1, 1, 1, 8, generator=torch.Generator().manual_seed(0)).bfloat16()
    far = torch.tensor([[4001]])  # bfloat16 would make it 4000
    arch = _small(rope_in_float32=True)
    exact = Rotary.at(arch, far, torch.float32).turn(x.float()).bfloat16()
    assert torch.equal(Rotary.at(arch, far, torch.bfloat16).turn(x), exact)


def test_the_table_of_rotations_has_the_bits_of_single_ones_and_is_made_once():
    arch, like = _small(), torch.zeros(1)
    table = RotaryTable(arch)
    few = table.first(5, like)
    many = table.first(700, like)
    places = torch.tensor([[699, 3], [0, 300]])
    single = Rotary.at(arch, places, torch.float32)
    for actual, wanted in zip(table.at(places, 700, like), single, strict=True):
        assert torch.equal(actual, wanted)
    assert torch.equal(many.cos[:, :5], few.cos)
    assert table.first(700, like).cos.data_ptr() == many.cos.data_ptr()
    assert table.first(9, like.double()).cos.dtype == torch.float64


def test_a_table_made_in_inference_mode_serves_training():
    module = Transformer(_small())
    tokens = torch.tensor([[1, 2, 3]])
    with torch.inference_mode():
        module(tokens)
    module(tokens).sum().backward()
    assert module.layers[0].attn.q.weight.grad is not None


def test_given_positions_are_used_instead_of_the_order():
    module = Transformer(_small())
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=generator)
    ids = torch.tensor([[1, 2, 3, 4]])
    order = torch.tensor([2, 0, 3, 1])
    with torch.no_grad():
        plain = module(ids)
        shuffled = module(ids[:, order], order[None])
    torch.testing.assert_close(shuffled, plain[:, order])
