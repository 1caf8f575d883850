"""Revocation: masks a committed position again when its distribution has moved."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.registry import register, show
from unmask.rules.view import KL, Needs, View
from unmask.rules.words import number, times


@register(
    "revoke",
    "revoke",
    "{ i : KL(p at commit, p now) > limit }",
    "the paper's future work, re-masking",
)
@dataclass(frozen=True)
class Drift:
    """Masks committed tokens of the block again once their distribution has moved by `limit` nats.

    A position is taken back at most `times` times and every step commits something, so a window
    of m masks takes at most m * (1 + times) steps. A model that sees the token at its position
    tends to confirm it; use a small limit for such a model.
    """

    limit: float = 1.0
    times: int = 1
    kl: KL = "prev_cur"

    def __post_init__(self) -> None:
        require(self.limit > 0, f"revoke: limit must be > 0, got {self.limit}")
        require_whole("revoke: times", self.times, 1)

    @property
    def needs(self) -> Needs:
        return Needs(drift=self.kl)

    def describe(self) -> str:
        kl = "KL(at commit || now)" if self.kl == "prev_cur" else "KL(now || at commit)"
        return (
            f"Mask a committed position of the block again if its distribution has moved by more "
            f"than {show(self.limit)} nats since then, by {kl}; at most {times(self.times)} each."
        )

    def why(self) -> str:
        return f"its distribution had moved by more than {number(self.limit)} nats"

    def __call__(self, view: View) -> Tensor:
        return (
            view.revocable
            & (view.revoked_times < self.times)
            & (view.declared("drift") > self.limit)
        )
