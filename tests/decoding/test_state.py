"""The tensors of rows that enter and leave."""

from __future__ import annotations

from dataclasses import fields

import torch

from tests.helpers import MASK
from unmask.decoding.state import State


def state_of(canvas, trail=2):
    return State.of([torch.tensor(canvas)], MASK, None, trail)


def test_a_row_knows_its_answer():
    state = state_of([1, MASK, 2, MASK, 3])
    assert (int(state.origin), int(state.end), int(state.length)) == (1, 4, 5)
    assert state.masked.tolist() == [[False, True, False, True, False]]
    assert state.given.tolist() == [[True, False, True, False, True]]
    assert torch.equal(state.answer, state.masked)


def test_joining_pads_to_the_longer_canvas():
    state = State.joined([state_of([1, MASK]), state_of([1, 2, 3, MASK])])
    assert len(state) == 2
    assert state.tokens.tolist() == [[1, MASK, 0, 0], [1, 2, 3, MASK]]
    assert state.masked.tolist() == [[False, True, False, False], [False, False, False, True]]
    assert state.given[0].tolist() == [True, False, True, True]
    assert state.answer[0].tolist() == [False, True, False, False]
    assert state.slot[0].tolist() == [-1] * 4
    assert state.length.tolist() == [2, 4]


def test_joining_a_shorter_canvas_pads_that_one():
    state = State.joined([state_of([1, 2, 3, MASK]), state_of([1, MASK])])
    assert state.tokens.tolist() == [[1, 2, 3, MASK], [1, MASK, 0, 0]]


def test_joining_widens_the_credit_slots():
    state = state_of([1, MASK])
    state.credit_token = torch.tensor([[[5, 6], [7, -1]]])
    state.credit = torch.tensor([[[0.5, 0.6], [0.7, 0.0]]], dtype=torch.float64)
    state = State.joined([state, state_of([1, MASK, MASK])])
    assert state.credit_token.shape == (2, 3, 2)
    assert state.credit_token[0].tolist() == [[5, 6], [7, -1], [-1, -1]]
    assert state.credit_token[1].eq(-1).all()


def test_keeping_rows_keeps_every_tensor():
    state = State.joined([state_of([first, MASK]) for first in (1, 2, 3)])
    state = state.taken(torch.tensor([2, 0]))
    assert state.tokens[:, 0].tolist() == [3, 1]
    tensors = (getattr(state, field.name) for field in fields(state) if field.name != "memory")
    assert all(len(tensor) == 2 for tensor in tensors)


def test_the_canvas_is_copied():
    canvas = torch.tensor([1, MASK])
    state = State.of([canvas], MASK, None, 0)
    state.tokens[0, 0] = 5
    assert canvas.tolist() == [1, MASK]
