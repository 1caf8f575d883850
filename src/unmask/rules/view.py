"""What a rule may look at in one step, and the types of its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from unmask.errors import RuleError

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

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            self.kl | other.kl,
            self.uniform_start or other.uniform_start,
            self.block_scope or other.block_scope,
            max(self.trail, other.trail),
            self.later_blocks or other.later_blocks,
            self.draws or other.draws,
            self.drift or other.drift,
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


EVERYTHING = Needs(kl=BOTH_KL, draws=True)


@dataclass(frozen=True)
class Progress:
    """Where each of the B rows stands: its window (block), and the answer around it."""

    step: Tensor  # [B]     forwards already spent in this window
    opened: Tensor  # [B]     masks in the window when it was opened
    num_windows: Tensor  # [B]     windows with masks that the row started with
    offset: Tensor  # [B]     the window's start, counted from the answer's start
    known: Tensor  # [B, A]  True where the answer is fixed; False on padding
    answer_length: Tensor  # [B]     the row's own A


@dataclass(frozen=True)
class View:
    """What a rule may look at in one step: B rows, W window positions, all float64.

    Made in one pass over the logits, so no rule touches [B, W, V]. Rows have windows of
    unequal width: beyond a row's own width every position has `masked` False.
    """

    masked: Tensor  # [B, W]  True where still [MASK], computed in this forward, and a candidate
    token: Tensor  # [B, W]  the token that would be written
    confidence: Tensor  # [B, W]  its probability, in [0, 1]
    margin: Tensor  # [B, W]  p(first) - p(second), in [0, 1]
    entropy: Tensor  # [B, W]  H(p) in nats, >= 0, of the distribution that scores
    raw_entropy: Tensor  # [B, W]  H of the model's own distribution: what budgets count
    seen: Tensor  # [B, W]  True where a distribution exactly one forward old exists
    revocable: Tensor  # [B, W]  True where a commitment may be taken back
    revoked_times: Tensor  # [B, W]  how often it was already
    progress: Progress
    # None unless a part declares it in its `needs`; parts read these with `declared`
    kl_prev_cur: Tensor | None = None  # [B, W]  KL(p_{t+1} || p_t), 0 where there is no p_{t+1}
    kl_cur_prev: Tensor | None = None  # [B, W]  KL(p_t || p_{t+1}), 0 where there is no p_{t+1}
    js: Tensor | None = None  # [B, W]  Jensen-Shannon divergence of p_{t+1} and p_t, 0 ... log 2
    tv: Tensor | None = None  # [B, W]  total variation between p_{t+1} and p_t, 0 ... 1
    trail: Tensor | None = None  # [B, W, n]  the last n values of kl_cur_prev, newest last
    draws: Tensor | None = None  # [B, W]  uniform in [0, 1), from the row's own generator
    drift: Tensor | None = None  # [B, W]  KL between the distributions at commit and now
    # None unless the EOS policy is `last`
    deferred: Tensor | None = None  # [B, W]  True where the token ends the answer: ranked last
    # None unless a part of the rule left candidates out
    waiting: Tensor | None = None  # [B, W]  every mask of the window, candidate or not
    alone: Tensor | None = None  # [B, W]  of these one goes if nothing else does

    def instability(self, kl: Divergence) -> Tensor:
        """D, the divergence between two consecutive steps: [B, W]."""
        return self.declared(FIELDS[kl])

    def declared(self, name: str) -> Tensor:
        """A field that is computed only for parts that declare it in `needs`; an error without."""
        value: Tensor | None = getattr(self, name)
        if value is None:
            raise RuleError(
                f"a part reads {name} of the view without declaring it; set the part's `needs`"
            )
        return value

    def tensors(self) -> dict[str, Tensor]:
        """The fields that are there, by name, without `progress`."""
        return {name: field for name, field in vars(self).items() if isinstance(field, Tensor)}

    def among(self, candidates: Tensor) -> View:
        """The same view with other candidates."""
        return replace(self, masked=candidates)

    def narrowed(self, candidates: Tensor) -> View:
        """The same view with fewer candidates; the other masks wait."""
        waiting = self.masked if self.waiting is None else self.waiting
        return replace(self, masked=candidates, waiting=waiting)

    @property
    def num_left(self) -> Tensor:
        """How many masks the window has, candidates or not: [B]."""
        return (self.masked if self.waiting is None else self.waiting).sum(-1)

    @property
    def fallback(self) -> Tensor:
        """The candidates of which one goes if nothing else does: [B, W]."""
        if self.alone is None:
            return self.masked
        near = self.masked & self.alone
        return torch.where(near.any(-1, keepdim=True), near, self.masked)

    def row(self, index: int) -> View:
        """One row of the view, as a view of one row."""
        keep = slice(index, index + 1)
        cut = {name: field[keep] for name, field in self.tensors().items()}
        progress = Progress(**{name: value[keep] for name, value in vars(self.progress).items()})
        return replace(self, progress=progress, **cut)


@dataclass(frozen=True)
class Scores:
    """A score twice: the key that ranks, and the value in the score's own unit for thresholds.

    The key is a log-utility (log max p, log margin, -H), so S * exp(-penalty) is a subtraction
    and nothing underflows. For a score in (0, 1] (`logarithmic`) the value is S itself; for the
    others key and value are the same number.
    """

    key: Tensor  # [B, W]
    value: Tensor  # [B, W]
    logarithmic: bool = False

    @classmethod
    def plain(cls, key: Tensor) -> Scores:
        """A score that is its own log-utility, such as -H."""
        return cls(key, key)

    @classmethod
    def log_of(cls, value: Tensor) -> Scores:
        """A score in [0, 1], ranked by its logarithm."""
        return cls(value.log(), value, logarithmic=True)

    def putting_last(self, deferred: Tensor) -> Scores:
        """The same with these positions after all others, the rightmost of them first.

        An end token far to the right cuts off least, so it is the first to go.
        """
        place = torch.arange(deferred.shape[-1], device=deferred.device, dtype=self.key.dtype)
        far = -1e308 + 1e300 * place
        key = torch.where(deferred, far, self.key.clamp_min(-1e299))
        if not self.logarithmic:
            return Scores(key, torch.where(deferred, far, self.value))
        return Scores(key, self.value.masked_fill(deferred, 0.0), logarithmic=True)

    def __sub__(self, penalty: Tensor) -> Scores:
        """log S - penalty; in the score's own unit S * exp(-penalty)."""
        key = self.key - penalty
        if not self.logarithmic:
            return Scores.plain(key)
        return Scores(key, self.value * (-penalty).exp(), logarithmic=True)


Score = Callable[[View], "Scores | Tensor"]
Modulate = Callable[[View, Scores], Scores]
Candidates = Callable[[View], Tensor]
Select = Callable[[View, Scores], Tensor]
Limit = Callable[[View, Scores, Tensor], Tensor]
Revoke = Callable[[View], Tensor]
