"""The toy denoiser: exact to the bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import EOS, MASK, REACH, SPEC, canvas_of, logits_of, random_lookup
from unmask.models.toys.lookup import LookupDenoiser

TOKENS = st.lists(st.integers(0, MASK), min_size=1, max_size=20)


def by_hand(model, tokens):
    """The formula, position by position in integers of 1/4096."""
    place, everywhere, near = (
        (table.double() * 4096).long() for table in (model.place, model.everywhere, model.near)
    )
    rows = []
    for i in range(len(tokens)):
        row = place[i].clone()
        for j, token in enumerate(tokens):
            if j != i:
                row += everywhere[token]
            if 1 <= abs(j - i) <= REACH:
                row += near[j - i + REACH, token]
        rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@given(tokens=TOKENS, seed=st.integers(0, 100))
def test_the_logits_are_the_formula_to_the_bit(dtype, tokens, seed):
    model = random_lookup(seed, dtype=dtype)
    actual = logits_of(model, canvas_of(tokens))[0]
    assert torch.equal((actual.double() * 4096), by_hand(model, tokens).double())


@given(tokens=TOKENS, other=TOKENS)
def test_padding_changes_nothing(tokens, other):
    model = random_lookup(0)
    both = logits_of(model, canvas_of(tokens, other))
    assert torch.equal(both[0, : len(tokens)], logits_of(model, canvas_of(tokens))[0])


@given(tokens=TOKENS, token=st.integers(0, EOS))
def test_a_position_never_depends_on_its_own_token(tokens, token):
    model = random_lookup(0)
    changed = [token, *tokens[1:]]
    first = logits_of(model, canvas_of(tokens))[0, 0]
    assert torch.equal(logits_of(model, canvas_of(changed))[0, 0], first)


def test_a_shift_reads_one_position_earlier():
    model = random_lookup(0)
    shifted = LookupDenoiser(model.place, model.everywhere, model.near, SPEC, shift=True)
    canvas = canvas_of([1, MASK, 2])
    assert torch.equal(logits_of(shifted, canvas)[0], logits_of(model, canvas)[0, [0, 0, 1]])


def test_tables_are_read_from_a_file(tmp_path):
    model = random_lookup(0, dtype=torch.float64)
    names = ("P_q", "G_q", "W_q")
    tables = (model.place, model.everywhere, model.near)
    integers = {
        name: (table * 4096).long().numpy() for name, table in zip(names, tables, strict=True)
    }
    file = tmp_path / "denoiser.npz"
    np.savez(file, denom=4096, **integers)
    loaded = LookupDenoiser.load(file, SPEC)
    canvas = canvas_of([1, MASK, 2, MASK])
    assert torch.equal(logits_of(loaded, canvas), logits_of(model, canvas))
