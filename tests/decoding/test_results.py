"""What a run hands out."""

from __future__ import annotations

import torch

from unmask import Result


def result(answer, stop_ids=(9,)):
    ids = torch.tensor(answer)
    return Result(0, ids, ids, torch.zeros_like(ids), 1, 1, stop_ids)


def test_the_ids_end_before_the_first_end_token():
    assert result([1, 2, 9, 3, 9]).ids == [1, 2]


def test_any_end_token_counts():
    assert result([1, 8, 2, 9], (9, 8)).ids == [1]


def test_without_an_end_token_the_ids_are_the_answer():
    assert result([1, 2, 3]).ids == [1, 2, 3]
    assert result([1, 9, 3], ()).ids == [1, 9, 3]
