"""The ways to decode that are compared: scores x lam x selections, windows and EOS policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from unmask.decoding.options import Eos

TOP, EB, THRESHOLD = "top(1)", "eb(0.1)", "threshold"
THRESHOLDS = {"confidence": "0.9", "margin": "0.9", "entropy": "-0.4"}  # in the score's own unit
SCORES = tuple(THRESHOLDS)
GAMMAS = ("0.0005", "0.005", "0.05", "0.1", "0.5", "1", "2")  # the paper's sweep
FAST_GAMMAS = GAMMAS[2:]  # those that commit several tokens a forward here
BLOCK = 16


@dataclass(frozen=True)
class Cell:
    """One way to decode; cells that differ in lam alone are compared pairwise."""

    score: str
    lam: float
    selection: str
    block: int | None = None
    eos: Eos = "keep"

    @property
    def rule(self) -> str:
        """In the notation."""
        selection = self.selection
        if selection == THRESHOLD:
            selection = f"{THRESHOLD}({THRESHOLDS[self.score]})"
        modulator = f"swd({self.lam:g}) | " if self.lam else ""
        return f"{self.score} | {modulator}{selection}"

    @property
    def baseline(self) -> Cell:
        """The same at lam 0."""
        return replace(self, lam=0.0)

    @property
    def window(self) -> str:
        return "full window" if self.block is None else f"blocks of {self.block}"


@dataclass(frozen=True)
class Grid:
    """All combinations."""

    scores: Sequence[str] = SCORES
    lams: Sequence[float] = (0.0, 1.0, 5.0)
    selections: Sequence[str] = (EB, THRESHOLD, TOP)
    blocks: Sequence[int | None] = (None, BLOCK)
    policies: Sequence[Eos] = ("keep", "suppress")

    def cells(self) -> list[Cell]:
        """Panel by panel: window, EOS policy, selection, score, lam."""
        return [
            Cell(score, lam, selection, block, eos)
            for block, eos, selection, score, lam in product(
                self.blocks, self.policies, self.selections, self.scores, self.lams
            )
        ]


def gamma_sweep(
    lams: Sequence[float] = (0.0, 1.0, 5.0), gammas: Sequence[str] = GAMMAS
) -> list[Cell]:
    """EB-Sampler on confidence at the paper's gammas: a curve per lam, and two baselines."""
    one = Cell("confidence", 0.0, EB)
    curves = [replace(one, lam=lam) for lam in lams]
    curves += [replace(one, eos="suppress"), replace(one, block=BLOCK)]
    return [replace(curve, selection=f"eb({gamma})") for curve in curves for gamma in gammas]


SAFE = Cell("confidence", 0.0, TOP, BLOCK)  # one token per forward, in blocks
