"""Runs of a model that says what it is told, so that the right sentences about them are known."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from tests.helpers import Scripted
from tests.trace.runs import traced
from unmask import ModelSpec, Rule, Settings, infill_request
from unmask.trace import Trace

WORDS = ["a", "pens", "cups", "the", "<end>", "[M]"]
END, HOLE = 4, 5


class Words:
    """Stands in for a tokenizer where only words are asked for."""

    def word(self, number: int) -> str:
        return WORDS[number]


def said(*cells: tuple[str, float]) -> Tensor:
    """One forward: for each position a word and its probability, the rest evenly spread."""
    rows = []
    for word, share in cells:
        row = [(1 - share) / (len(WORDS) - 2)] * len(WORDS)
        row[HOLE] = 0.0
        row[WORDS.index(word)] = share
        rows.append([math.log(p) if p else -math.inf for p in row])
    return torch.tensor(rows, dtype=torch.float64)


def trace_of(
    rule: str, *forwards: Tensor, canvas: list[int] | None = None, seed: int = 0, **settings: Any
) -> Trace:
    """A run on what these forwards say, the first position given if no canvas is."""
    spec = ModelSpec(HOLE, len(WORDS), END, name="scripted")
    canvas = canvas or [3, *[HOLE] * (len(forwards[0]) - 1)]
    request = infill_request(spec, canvas, Settings(Rule.parse(rule), **settings), seed)
    return Trace.of(traced(Scripted(list(forwards), spec), request, tokenizer=Words())[0])


RASH = said(("the", 0.9), ("a", 0.6), ("cups", 0.95))
SWINGS = said(("the", 0.9), ("pens", 0.93), ("cups", 0.96))
SETTLED = said(("the", 0.9), ("pens", 0.97), ("cups", 0.99))
