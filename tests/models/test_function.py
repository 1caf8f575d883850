"""Any function as a denoiser."""

from __future__ import annotations

import pytest
import torch

from tests.helpers import EOS, MASK, VOCABULARY, canvas_of, logits_of, outcome, random_lookup
from unmask import ModelError, decode, decode_many, from_function


def whole_canvas(ids):
    """Logits that depend on the length of the row and on every token in it."""
    token = torch.arange(VOCABULARY).float()
    place = torch.arange(ids.shape[-1]).float()
    seen = torch.where(ids == MASK, 0, ids + 1).sum(-1)
    return torch.sin(
        token[None, None] * (1 + place)[None, :, None] + seen[:, None, None] + 0.5 * ids.shape[-1]
    )


def denoiser(function=whole_canvas, **knobs):
    return from_function(function, mask_id=MASK, vocab_size=VOCABULARY, eos_id=EOS, **knobs)


def test_rows_of_one_length_go_in_one_call():
    shapes = []

    def function(ids):
        shapes.append(tuple(ids.shape))
        return whole_canvas(ids)

    logits_of(denoiser(function), canvas_of([1, MASK, MASK], [2, 3, MASK]))
    assert shapes == [(2, 3)]


def test_rows_of_unequal_length_go_unpadded_in_calls_of_their_own():
    shapes = []

    def function(ids):
        shapes.append(tuple(ids.shape))
        return whole_canvas(ids)

    logits = logits_of(denoiser(function), canvas_of([1, MASK, MASK, 2], [2, MASK], [3, MASK]))
    assert shapes == [(2, 2), (1, 4)]
    assert torch.equal(logits[0], whole_canvas(torch.tensor([[1, MASK, MASK, 2]]))[0])
    assert torch.equal(logits[2, :2], whole_canvas(torch.tensor([[3, MASK]]))[0])


def test_the_padding_of_a_batch_is_never_shown():
    model = denoiser()
    prompts = [[1], [2, 3, 4], [5, 6]]
    rule = "confidence | swd(1) | eb(0.5)"
    together = decode_many(model, prompts, rule, length=5, batch_size=3)
    for result, prompt in zip(together, prompts, strict=True):
        assert outcome(result) == outcome(decode(model, prompt, rule, length=5))


def test_a_shift_reads_the_logits_one_position_earlier():
    canvas = canvas_of([1, MASK, MASK])
    plain, shifted = logits_of(denoiser(), canvas), logits_of(denoiser(shift=True), canvas)
    assert torch.equal(shifted[0], plain[0, [0, 0, 1]])


def test_the_head_gives_a_tensor_of_its_own():
    model = denoiser()
    hidden = model.trunk(canvas_of([1, MASK]))
    index = torch.tensor([0])
    model.head(hidden, index, index).fill_(0.0)
    assert not torch.equal(model.head(hidden, index, index), torch.zeros(1, VOCABULARY))


def test_a_wrong_shape_is_named():
    def narrow(ids):
        return torch.zeros(*ids.shape, 3)

    with pytest.raises(ModelError, match=r"narrow: .* shape \(1, 4, 3\) for ids of shape \(1, 4\)"):
        decode(denoiser(narrow), [1], "confidence | top(1)", length=3)


def test_the_model_is_named_after_its_function():
    assert denoiser().spec.name == "whole_canvas"


def test_a_function_decodes_as_the_model_that_it_wraps():
    lookup = random_lookup(0)

    def function(ids):
        return lookup.trunk(canvas_of(*ids.tolist())).states

    wrapped = denoiser(function)
    rule = "confidence | swd(5) | eb(0.5)"
    assert outcome(decode(wrapped, [1], rule, length=8)) == outcome(
        decode(lookup, [1], rule, length=8)
    )
