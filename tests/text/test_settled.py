"""What of an answer is final: up to the first mask or end token, or the open window."""

import pytest
import torch

from unmask.decoding.request import Settings, infill_request, prompt_request
from unmask.models.denoiser import ModelSpec
from unmask.rules.rule import Rule
from unmask.text.settled import Span

MASK, END = 9, 8
SPEC = ModelSpec(MASK, 10, END)


def span_of(rule, length=4):
    settings = Settings(Rule.parse(rule))
    return Span.of(SPEC, prompt_request(SPEC, [1, 2], length, settings))


@pytest.mark.parametrize(
    ("canvas", "final", "ended"),
    [
        ([1, 2, MASK, 4, 5, 6], [], False),
        ([1, 2, 3, 4, MASK, 6], [3, 4], False),
        ([1, 2, 3, END, MASK, 6], [3], True),
        ([1, 2, 3, MASK, END, 6], [3], False),
        ([1, 2, 3, 4, 5, 6], [3, 4, 5, 6], True),
    ],
)
def test_an_answer_is_final_up_to_its_first_mask_or_end(canvas, final, ended):
    assert span_of("confidence | top(1)").final(canvas, 2) == (final, ended)


def test_under_a_rule_that_revokes_only_closed_windows_are_final():
    span = span_of("confidence | top(1) | revoke(1)")
    assert span.final([1, 2, 3, 4, 5, MASK], 2) == ([], False)
    assert span.final([1, 2, 3, 4, 5, MASK], 4) == ([3, 4], False)


def test_what_fills_up_the_last_block_is_no_part_of_the_answer():
    spec = ModelSpec(MASK, 10, END, block=4)
    request = prompt_request(spec, [1, 2], 4, Settings(Rule.parse("confidence | top(1)")))
    assert len(request.canvas) == 8
    assert Span.of(spec, request).final([1, 2, 3, 4, 5, 6, MASK, MASK], 4) == ([3, 4, 5, 6], True)


def test_in_a_canvas_that_is_filled_no_token_is_an_end():
    settings = Settings(Rule.parse("confidence | top(1)"))
    span = Span.of(SPEC, infill_request(SPEC, torch.tensor([1, MASK, END, 3]), settings))
    assert span.final([1, 2, END, 3], 1) == ([1, 2, END, 3], True)
    assert span.final([1, MASK, END, 3], 1) == ([1], False)
