"""What a part reads of a step beyond the plain statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KL = Literal["prev_cur", "cur_prev"]
Divergence = Literal["prev_cur", "cur_prev", "js", "tv"]  # KL both ways, Jensen-Shannon, total var.
BOTH_KL: frozenset[Divergence] = frozenset({"prev_cur", "cur_prev"})
FIELDS: dict[Divergence, str] = {  # of the statistics and the view
    "prev_cur": "kl_prev_cur",
    "cur_prev": "kl_cur_prev",
    "js": "js",
    "tv": "tv",
}


@dataclass(frozen=True)
class Needs:
    """What a part reads beyond the plain statistics, so that nothing else is computed."""

    kl: frozenset[Divergence] = frozenset()  # divergences that measure the instability
    uniform_start: bool = False  # without history, compare with the uniform distribution
    block_scope: bool = False  # forget the history at a block boundary
    trail: int = 0  # how many past values of KL(current || previous) to keep
    later_blocks: bool = False  # follow the positions of later blocks as well
    draws: bool = False  # one uniform random number per candidate
    drift: KL | None = None  # KL of committed positions against their distribution at commit
    top: int = 0  # how many of the likeliest tokens to give, with their probabilities
    ends: bool = False  # which tokens end the answer
    fixed: bool = False  # compute the committed positions of the window as well
    earlier: bool = False  # the window reaches back to the answer's start
    gaps: tuple[int, int] | None = None  # logit gaps of the answer: the first position, how many
    shadow: bool = False  # probability of committed tokens by queries that do not see them
    support: bool = False  # probability of committed tokens

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            self.kl | other.kl,
            self.uniform_start or other.uniform_start,
            self.block_scope or other.block_scope,
            max(self.trail, other.trail),
            self.later_blocks or other.later_blocks,
            self.draws or other.draws,
            self.drift or other.drift,
            max(self.top, other.top),
            self.ends or other.ends,
            self.fixed or other.fixed,
            self.earlier or other.earlier,
            self.gaps or other.gaps,
            self.shadow or other.shadow,
            self.support or other.support,
        )

    @property
    def directions(self) -> frozenset[Divergence]:
        """The divergences to compute; a trail is of KL(current || previous)."""
        trail: frozenset[Divergence] = frozenset({"cur_prev"} if self.trail else ())
        return self.kl | trail

    @property
    def history(self) -> bool:
        """Whether the distributions of the last forward must be kept."""
        return bool(self.directions)

    @property
    def beyond(self) -> bool:
        """Whether anything is declared that is computed apart from the candidates."""
        return self.ends or self.gaps is not None or self.rechecks

    @property
    def rechecks(self) -> bool:
        """Whether committed positions are computed anew in every forward."""
        return self.fixed or self.shadow or self.support

    @property
    def committed(self) -> bool:
        """Whether committed positions of the window are in the view."""
        return self.rechecks or self.drift is not None


EVERYTHING = Needs(kl=BOTH_KL, draws=True, ends=True)
