"""Mixture of experts: a router that sends each token to a few small MLPs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from unmask.models.architecture import Experts


class MixtureOfExperts(nn.Module):
    """sum over the chosen experts of weight * down(silu(gate(x)) * up(x))."""

    def __init__(self, hidden: int, experts: Experts) -> None:
        super().__init__()
        self.experts = experts
        self.router = nn.Parameter(torch.empty(experts.count, hidden))
        if experts.bias:
            self.bias = nn.Parameter(torch.empty(experts.count, dtype=torch.float32))
        self.gate = nn.Parameter(torch.empty(experts.count, experts.width, hidden))
        self.up = nn.Parameter(torch.empty(experts.count, experts.width, hidden))
        self.down = nn.Parameter(torch.empty(experts.count, hidden, experts.width))

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, -2)  # [N, D]
        chosen, weight = self.route(flat)  # [N, k] each
        out = torch.zeros_like(flat)
        for expert in chosen.unique().tolist():  # type: ignore[no-untyped-call]
            rows, slot = (chosen == expert).nonzero(as_tuple=True)
            h = flat[rows]
            h = F.silu(F.linear(h, self.gate[expert])) * F.linear(h, self.up[expert])
            h = F.linear(h, self.down[expert]) * weight[rows, slot, None].to(h.dtype)
            out.index_add_(0, rows, h)
        return out.view_as(x)

    def route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The experts of each token and their weights, in float32: [N, D] -> [N, k] x 2."""
        e = self.experts
        logits = F.linear(x.float(), self.router.float())  # [N, E]
        score = logits.softmax(-1) if e.scoring == "softmax" else logits.sigmoid()
        choice = score + self.bias if e.bias else score
        weight_from = choice if e.bias_in_weight else score
        if e.groups > 1:
            choice = self._best_groups(choice)
        chosen = choice.topk(e.top_k, dim=-1, sorted=False).indices
        weight = weight_from.gather(-1, chosen)
        if e.normalise and e.top_k > 1:
            weight = weight / (weight.sum(-1, keepdim=True) + 1e-20)
        return chosen, weight * e.scale

    def _best_groups(self, choice: Tensor) -> Tensor:
        """-inf outside the groups with the largest sum of two best scores: [N, E] -> [N, E]."""
        e = self.experts
        grouped = choice.view(len(choice), e.groups, -1)  # [N, G, E/G]
        best_two = grouped.topk(2, dim=-1).values.sum(-1)  # [N, G]
        best = best_two.topk(e.top_groups, dim=-1).indices
        kept = torch.zeros_like(best_two, dtype=torch.bool).scatter(-1, best, True)
        return grouped.masked_fill(~kept[..., None], -torch.inf).flatten(-2)
