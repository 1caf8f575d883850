"""What a trace tells of every candidate, as columns that repeat nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unmask.rules.rule import Rule
from unmask.rules.select import best_first
from unmask.rules.stability import Stability
from unmask.rules.view import KL
from unmask.trace.recording.alternatives import Cells, outlook
from unmask.trace.recording.codec import Array, raw_columns
from unmask.trace.recording.stack import Stack

# What a column that is left out is the same as, tried in this order.
_SAME = {
    "alternative_0": ("token",),
    "log_p_0": ("log_confidence",),
    "raw_entropy": ("entropy",),
    "base": ("log_confidence", "log_margin", "minus_entropy"),
    "score": ("base",),
    "base_rank": ("rank",),
}


def direction(rule: Rule) -> KL:
    """The direction of the KL that a trace of this rule tells."""
    for part in rule.modulators:
        if isinstance(part, Stability):
            return part.kl
    return "cur_prev" if rule.needs.directions == {"cur_prev"} else "prev_cur"


@dataclass(frozen=True)
class Columns:
    """All candidates of K steps, step by step: N of them."""

    exact: Array  # [N, 8] float64, unrounded: what digests are of
    ids: Array  # every token id that occurs
    same: dict[str, str]  # columns that are left out, and which ones they repeat
    names: list[str]  # of the columns that are written, with their types
    blocks: list[Array]  # uint8 [columns, N, width], one block for each type

    def cells(self, begin: int, end: int) -> bytes:
        """The columns of some candidates, one after another."""
        return b"".join(block[:, begin:end].tobytes() for block in self.blocks)

    @classmethod
    def of(cls, rule: Rule, stack: Stack, cells: Cells, before: Cells | None) -> Columns:
        """Everything about the candidates; `before` are the cells one step before the first."""
        kl = direction(rule)
        kept = cells.candidates(stack)
        seen = outlook(cells, before, None if kl in rule.needs.directions else kl)
        exact = _exact(stack, kl, None if seen.moved is None else seen.moved[kept])
        tokens, floats, ranks = _tokens(stack), _floats(exact.T, stack), _ranks(stack)
        first, log_p = (found[kept].cpu().numpy() for found in (seen.token, seen.log_p))
        for place in range(first.shape[-1]):
            tokens[f"alternative_{place}"] = first[:, place]
            floats[f"log_p_{place}"] = log_p[:, place].astype(np.float16)
        same = _repeated({**tokens, **floats, **ranks})
        wide = "u32" if stack.view.masked.shape[-1] > 2**16 else "u16"
        names, blocks = [], []
        for kind, columns in (("u24", tokens), ("f16", floats), (wide, ranks)):
            kept_columns = {name: column for name, column in columns.items() if name not in same}
            names += [f"{name}:{kind}" for name in kept_columns]
            if kept_columns:
                blocks.append(raw_columns(kind, np.stack(list(kept_columns.values()))))
        return cls(exact, np.concatenate([c.ravel() for c in tokens.values()]), same, names, blocks)


def _exact(stack: Stack, kl: KL, moved: Tensor | None) -> Array:
    """The numbers of every candidate as the rule saw them: float64 [N, 8]."""
    view, scores, masked = stack.view, stack.decision.scores, stack.view.masked
    if moved is None:
        moved = torch.where(view.seen, view.instability(kl), torch.nan)[masked]
    known = [view.confidence, view.margin, view.entropy, view.raw_entropy]
    ranked = [stack.decision.base.key, scores.key, scores.value]
    table = torch.stack([*known, *ranked], -1)[masked]  # [N, 7]
    return torch.cat([table, moved[:, None]], -1).cpu().numpy()


_EXACT = ("confidence", "margin", "entropy", "raw_entropy", "base", "score", "value", "instability")


def _tokens(stack: Stack) -> dict[str, Array]:
    return {"token": stack.view.token[stack.view.masked].cpu().numpy()}


def _floats(exact: Array, stack: Stack) -> dict[str, Array]:
    """The numbers as they are written: probabilities as logarithms, in 16 bits."""
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.log(exact[:2]).astype(np.float16)
        rounded = dict(zip(_EXACT, exact.astype(np.float16), strict=True))
    found = {"log_confidence": logs[0], "log_margin": logs[1]}
    scores = stack.decision.scores
    own_unit = scores.logarithmic or scores.value is scores.key
    left_out = {"confidence", "margin", "value"} if own_unit else {"confidence", "margin"}
    return {**found, **{name: rounded[name] for name in _EXACT if name not in left_out}}


def _ranks(stack: Stack) -> dict[str, Array]:
    """Where every candidate stood, 0 for the best, by its score and by the one before SWD."""
    masked, decision = stack.view.masked, stack.decision
    found = {"rank": _rank(decision.scores.key, masked)}
    if decision.base is not decision.scores:
        found["base_rank"] = _rank(decision.base.key, masked)
    return found


def _rank(key: Tensor, masked: Tensor) -> Array:
    order = best_first(key, masked)
    places = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, places)[masked].cpu().numpy()


def _repeated(columns: Mapping[str, Array]) -> dict[str, str]:
    """Which columns are the same as others; those need not be written."""
    known = {**columns, "minus_entropy": -columns["entropy"]}
    known.setdefault("base_rank", columns["rank"])
    same: dict[str, str] = {}
    for name, others in _SAME.items():
        if name in known:
            same_as = _alike if name == "log_p_0" else _identical
            found = next((o for o in others if same_as(known[name], known[o])), None)
            if found is not None:
                same[name] = found
    return same


def _identical(first: Array, second: Array) -> bool:
    return first.tobytes() == second.tobytes()


def _alike(first: Array, second: Array) -> bool:
    """The same but for the rounding of two ways to the same number."""
    return bool((np.abs(first - second) <= 1e-6 + 1e-3 * np.abs(second)).all())
