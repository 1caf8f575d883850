"""torch.compile: the same statistics; few cases, since each kind takes seconds to compile."""

from __future__ import annotations

import pytest
import torch

from tests.kernels.oddities import PATTERNS, STATS, assert_right, example, plain
from unmask.kernels import compiled, reduce_rows
from unmask.kernels.common import ReduceInput, Unavailable
from unmask.rules.view import BOTH_KL

pytestmark = [
    pytest.mark.usefixtures("kernel"),
    pytest.mark.parametrize("kernel", ["compile"], indirect=True),
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
def test_the_statistics_are_those_of_float64(pattern):
    rows = example(pattern, 1023, torch.float32)
    assert_right(reduce_rows(rows), rows, 5e-6)


def test_one_row_alone_has_the_same_bits_as_among_others():
    rows = example(plain, 1023, torch.float32)
    whole = reduce_rows(rows)
    alone = reduce_rows(
        ReduceInput(rows.now[1:2], rows.past, rows.slot[1:2], kl=BOTH_KL, uniform=True)
    )
    for name in ("token", *STATS):
        assert torch.equal(getattr(alone, name), getattr(whole, name)[1:2])


def test_no_rows_are_left_to_plain_pytorch():
    assert len(reduce_rows(ReduceInput(torch.zeros(0, 5))).token) == 0


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setattr(compiled, "compiler", lambda: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Unavailable, match="needs a C\\+\\+ compiler"):
        compiled.prepare()
