"""Exact oracles: denoisers that return the true posterior marginals of a known distribution."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from unmask.errors import ModelError
from unmask.models.denoiser import Canvas, Hidden, ModelSpec, cells


class TableOracle:
    """The posterior marginals of an explicit table of sequences with weights.

    Given the visible tokens it returns p(x_i | visible) for every position. If no sequence agrees
    with all visible tokens, the sequences with the fewest mismatches count: this is the limit of
    a channel that errs rarely, and every canvas has a posterior.
    """

    def __init__(
        self, sequences: Sequence[Sequence[int]], weights: Sequence[float], spec: ModelSpec
    ) -> None:
        if len({len(sequence) for sequence in sequences}) != 1 or len(sequences) != len(weights):
            raise ModelError("the table needs sequences of one length, and one weight for each")
        self.sequences = torch.tensor(sequences)  # [S, L]
        self.weights = torch.tensor(weights, dtype=torch.float64)  # [S]
        self.spec = spec
        self.device = torch.device("cpu")
        if not bool(((self.sequences >= 0) & (self.sequences < spec.vocab_size)).all()):
            raise ModelError(
                f"the table's tokens must lie in the vocabulary 0..{spec.vocab_size - 1}"
            )
        if not bool((self.weights > 0).all() and self.weights.isfinite().all()):
            raise ModelError("every weight of the table must be > 0 and finite")
        self.weights = self.weights / self.weights.sum()

    def trunk(self, canvas: Canvas) -> Hidden:
        tokens = canvas.tokens[:, : self.sequences.shape[-1]]
        if bool((canvas.lengths != self.sequences.shape[-1]).any()):
            raise ModelError(
                f"{self.spec.name}: the canvas must have {self.sequences.shape[-1]} positions, "
                f"got {sorted(set(canvas.lengths.tolist()))}"
            )
        visible = tokens != self.spec.mask_id  # [B, L]
        wrong = (tokens[:, None] != self.sequences) & visible[:, None]  # [B, S, L]
        # A position's own token is no evidence about it; only the other positions count.
        others = wrong.sum(-1, keepdim=True) - wrong.long()
        fits = others == others.amin(1, keepdim=True)
        posterior = torch.where(fits, self.weights[:, None], 0.0)
        posterior = (posterior / posterior.sum(1, keepdim=True)).transpose(1, 2)  # [B, L, S]
        marginals = posterior.new_zeros(*tokens.shape, self.spec.vocab_size)
        marginals.scatter_add_(-1, self.sequences.T.expand(posterior.shape), posterior)
        return Hidden(marginals.log())

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        return cells(hidden.states, rows, positions)

    def log_likelihood(self, tokens: Sequence[int]) -> float:
        """log p(tokens) under the table; -inf for a sequence that is not in it."""
        same = (self.sequences == torch.tensor(list(tokens))).all(-1)
        return float(self.weights[same].sum().log())


class MarkovOracle:
    """The posterior marginals of a Markov chain, by forward-backward: any length, no table."""

    def __init__(self, initial: Tensor, transition: Tensor, spec: ModelSpec) -> None:
        self.initial = initial.double()  # [K]   p(x_0); ids >= K have probability 0
        self.transition = transition.double()  # [K, K] p(x_{i+1} | x_i), rows sum to 1
        self.spec = spec
        self.device = torch.device("cpu")
        sums = torch.cat([self.initial.sum()[None], self.transition.sum(-1)])
        if not torch.allclose(sums, torch.ones_like(sums)):
            raise ModelError("the initial and every row of the transition must sum to 1")
        if not bool((self.transition > 0).all() and (self.initial > 0).all()):
            raise ModelError(
                "every probability of the chain must be > 0, so that every canvas is possible"
            )

    def trunk(self, canvas: Canvas) -> Hidden:
        tokens, states = canvas.tokens, len(self.initial)
        length = tokens.shape[-1]
        padding = torch.arange(length, device=tokens.device) >= canvas.lengths[:, None]
        free = (tokens == self.spec.mask_id) | (tokens >= states) | padding  # no evidence
        one_hot = torch.nn.functional.one_hot(tokens.clamp_max(states - 1), states).bool()
        allowed = (one_hot | free[..., None]).double()  # [B, L, K]
        predicted = [self.initial.expand(allowed[:, 0].shape)]  # from the left, without itself
        for i in range(1, length):
            here = predicted[-1] * allowed[:, i - 1]
            predicted.append(here / here.sum(-1, keepdim=True) @ self.transition)
        backward = [torch.ones_like(allowed[:, 0])]  # from the right, without itself
        for i in range(length - 1, 0, -1):
            step = (backward[-1] * allowed[:, i]) @ self.transition.T
            backward.append(step / step.sum(-1, keepdim=True))
        joint = torch.stack(predicted, 1) * torch.stack(backward[::-1], 1)
        marginals = joint / joint.sum(-1, keepdim=True)
        logits = marginals.new_full((*tokens.shape, self.spec.vocab_size), -torch.inf)
        logits[..., :states] = marginals.log()
        return Hidden(logits)

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        return cells(hidden.states, rows, positions)

    def log_likelihood(self, tokens: Sequence[int]) -> float:
        """log p(tokens) under the chain."""
        total = self.initial[tokens[0]].log()
        for here, there in itertools.pairwise(tokens):
            total = total + self.transition[here, there].log()
        return float(total)
