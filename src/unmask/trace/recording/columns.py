"""The columns of a trace: the numbers of every candidate, without repeated columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unmask.rules.rule import Rule
from unmask.rules.select import best_first
from unmask.rules.stability import Stability
from unmask.rules.view import BOTH_KL, Divergence
from unmask.trace.recording.alternatives import Cells, outlook
from unmask.trace.recording.codec import Array, raw_columns
from unmask.trace.recording.stack import Stack

# A column is left out if it equals one of these columns, tried in this order.
_SAME = {
    "alternative_0": ("token",),
    "log_p_0": ("log_confidence",),
    "raw_entropy": ("entropy",),
    "base": ("log_confidence", "log_margin", "minus_entropy"),
    "score": ("base",),
    "base_rank": ("rank",),
}


def direction(rule: Rule) -> Divergence:
    """The divergence in a trace of this rule."""
    for part in rule.modulators:
        if isinstance(part, Stability) and (part.lam or part.kl in BOTH_KL):
            return part.kl
    return "cur_prev" if rule.needs.directions == {"cur_prev"} else "prev_cur"


@dataclass(frozen=True)
class Columns:
    """All N candidates of K steps, sorted by step."""

    exact: Array  # [N, 8] float64, unrounded, for the digests
    ids: Array  # every token id that occurs
    same: dict[str, str]  # columns that are left out -> the columns they equal
    names: list[str]  # the names of the written columns, with their types
    blocks: list[Array]  # uint8 [columns, N, width], one block for each type

    def cells(self, begin: int, end: int) -> bytes:
        """The columns of the candidates from begin to end, one after another."""
        return b"".join(block[:, begin:end].tobytes() for block in self.blocks)

    @classmethod
    def of(cls, rule: Rule, stack: Stack, cells: Cells, before: Cells | None) -> Columns:
        """Compute the columns; `before` holds the cells of the step before the first."""
        kl = direction(rule)
        kept = cells.candidates(stack)
        likeliest, log_p, moved = outlook(
            cells, before, None if kl in rule.needs.directions else kl
        )
        exact = _exact(stack, kl, None if moved is None else moved[kept])
        floats, ranks = _floats(exact.T, stack), _ranks(stack)
        if rule.needs.uniform_start and moved is None:
            floats["instability"] = _from_uniform(stack, kl)
        tokens = {"token": stack.view.token[stack.view.masked].cpu().numpy()}
        for place in range(likeliest.shape[-1]):
            tokens[f"alternative_{place}"] = likeliest[kept, place].numpy()
            floats[f"log_p_{place}"] = log_p[kept, place].numpy().astype(np.float16)
        floats["log_p_0"] = _settled(floats["log_p_0"], floats["log_confidence"])
        same = _repeated({**tokens, **floats, **ranks})
        wide = "u32" if stack.view.masked.shape[-1] > 2**16 else "u16"
        names, blocks = [], []
        for kind, columns in (("u24", tokens), ("f16", floats), (wide, ranks)):
            kept_columns = {name: column for name, column in columns.items() if name not in same}
            names += [f"{name}:{kind}" for name in kept_columns]
            if kept_columns:
                blocks.append(raw_columns(kind, np.stack(list(kept_columns.values()))))
        return cls(exact, np.concatenate([c.ravel() for c in tokens.values()]), same, names, blocks)


def _exact(stack: Stack, kl: Divergence, moved: Tensor | None) -> Array:
    """The unrounded numbers of every candidate: float64 [N, 8]."""
    view, scores, masked = stack.view, stack.decision.scores, stack.view.masked
    if moved is None:
        moved = torch.where(view.seen, view.instability(kl), torch.nan)[masked]
    known = [view.confidence, view.margin, view.entropy, view.raw_entropy]
    ranked = [stack.decision.base.key, scores.key, scores.value]
    table = torch.stack([*known, *ranked], -1)[masked]  # [N, 7]
    return torch.cat([table, moved[:, None]], -1).cpu().numpy()


def _from_uniform(stack: Stack, kl: Divergence) -> Array:
    """D of every candidate; without an earlier step it is measured against uniform: float16 [N].

    The digests leave out the values against uniform, because older traces did not hold them.
    """
    with np.errstate(over="ignore"):
        return stack.view.instability(kl)[stack.view.masked].cpu().numpy().astype(np.float16)


_EXACT = ("confidence", "margin", "entropy", "raw_entropy", "base", "score", "value", "instability")


def _floats(exact: Array, stack: Stack) -> dict[str, Array]:
    """The numbers in 16 bits, probabilities as logarithms."""
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.log(exact[:2]).astype(np.float16)
        rounded = dict(zip(_EXACT, exact.astype(np.float16), strict=True))
    logarithms = {"log_confidence": logs[0], "log_margin": logs[1]}
    scores = stack.decision.scores
    own_unit = scores.logarithmic or scores.value is scores.key
    left_out = {"confidence", "margin", "value"} if own_unit else {"confidence", "margin"}
    return {**logarithms, **{name: rounded[name] for name in _EXACT if name not in left_out}}


def _ranks(stack: Stack) -> dict[str, Array]:
    """The rank of every candidate, 0 for the best, by its score and by the score before SWD."""
    masked, decision = stack.view.masked, stack.decision
    ranks = {"rank": _rank(decision.scores.key, masked)}
    if decision.base is not decision.scores:
        ranks["base_rank"] = _rank(decision.base.key, masked)
    return ranks


def _rank(key: Tensor, masked: Tensor) -> Array:
    order = best_first(key, masked)
    places = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, places)[masked].cpu().numpy()


def _repeated(columns: Mapping[str, Array]) -> dict[str, str]:
    """The columns that equal another column and are not written."""
    known = {**columns, "minus_entropy": -columns["entropy"]}
    known.setdefault("base_rank", columns["rank"])
    same: dict[str, str] = {}
    for name, others in _SAME.items():
        if name in known:
            other = next((o for o in others if _identical(known[name], known[o])), None)
            if other is not None:
                same[name] = other
    return same


def _identical(first: Array, second: Array) -> bool:
    return first.tobytes() == second.tobytes()


def _settled(log_p: Array, log_confidence: Array) -> Array:
    """The likeliest token's log p, as the rule saw it where the two differ by rounding alone: [N].

    Each cell is settled by itself, so a trace does not depend on how many steps were buffered.
    """
    with np.errstate(invalid="ignore"):
        gap = np.abs(log_p - log_confidence)  # NaN where both are infinite
    alike = gap <= 1e-6 + 1e-3 * np.abs(log_p)
    return np.where(alike, log_confidence, log_p)
