"""Records the positions that a cache computes in each forward."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

PROMPTS = [[5, 17, 200], [9], [33, 34, 35, 36, 37, 38, 39, 40, 41], [1, 2], [7, 8, 9, 10, 11, 12]]


@contextmanager
def positions_fed(model: Any) -> Iterator[list[list[list[int]]]]:
    """The positions of every forward's rows, in order: [forward][row][n]."""
    fed: list[list[list[int]]] = []

    def note(_: Any, inputs: tuple[Tensor, ...], knobs: dict[str, Any]) -> None:
        tokens = inputs[0]
        positions = inputs[1] if len(inputs) > 1 else knobs.get("positions")
        rows = [list(range(tokens.shape[-1]))] * len(tokens)
        fed.append(rows if positions is None else positions.tolist())

    hook = model.module.register_forward_pre_hook(note, with_kwargs=True)
    yield fed
    hook.remove()


def alone(fed: list[list[list[int]]]) -> list[list[int]]:
    """The sorted positions of the only row, for each forward."""
    assert all(len(rows) == 1 for rows in fed)
    return [sorted(rows[0]) for rows in fed]
