"""What a rule may look at in one step, and the types of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from unmask.errors import RuleError
from unmask.rules.needs import BOTH_KL as BOTH_KL
from unmask.rules.needs import EVERYTHING as EVERYTHING
from unmask.rules.needs import FIELDS as FIELDS
from unmask.rules.needs import KL as KL
from unmask.rules.needs import Divergence as Divergence
from unmask.rules.needs import Needs as Needs


@dataclass(frozen=True)
class Progress:
    """Where each of the B rows stands: its window (block), and the answer around it."""

    step: Tensor  # [B]     forwards already spent in this window
    opened: Tensor  # [B]     masks in the window when it was opened
    num_windows: Tensor  # [B]     windows with masks that the row started with
    offset: Tensor  # [B]     the window's start, counted from the answer's start
    known: Tensor  # [B, A]  True where the answer is fixed; False on padding
    answer_length: Tensor  # [B]     the row's own A
    window: Tensor  # [B]     windows that the row has opened before this one
    # None unless a part declares it in its `needs`
    ended: Tensor | None = None  # [B]     True once all before the first end token is fixed
    gaps: Tensor | None = None  # [B, n]  largest logit - the next; NaN where not computed

    def row(self, index: int) -> Progress:
        """One row."""
        keep = slice(index, index + 1)
        there = {name: value[keep] for name, value in vars(self).items() if value is not None}
        return replace(self, **there)


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
    top_tokens: Tensor | None = None  # [B, W, k]  the likeliest tokens, the likeliest first
    top_probabilities: Tensor | None = None  # [B, W, k]
    ends: Tensor | None = None  # [B, W]  True where the token ends the answer
    standing: Tensor | None = None  # [B, W]  the token that the canvas holds now
    support: Tensor | None = None  # [B, W]  probability of that token where it is committed
    shadow: Tensor | None = (
        None  # [B, W]  probability of that token by a mask that does not attend to it
    )
    chosen: Tensor | None = None  # [B, W]  for a revocation: what is committed in this step
    memory: Mapping[str, Tensor] = field(default_factory=dict)  # see `memory.PartMemory`
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
        return self if candidates is self.masked else replace(self, masked=candidates)

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
        memory = {name: values[keep] for name, values in self.memory.items()}
        return replace(self, progress=self.progress.row(index), memory=memory, **cut)


@dataclass(frozen=True)
class Scores:
    """A score twice: the key that ranks, and the value in the score's own unit for thresholds.

    The key is a log-utility (log max p, log margin, -H), so S * exp(-penalty) is a subtraction
    and nothing underflows. For a score in [0, 1] (`logarithmic`) the value is S itself; for the
    others key and value are the same number. A score makes one with `Scores.probability` or
    `Scores.log_utility`, and so says its unit.
    """

    key: Tensor  # [B, W]
    value: Tensor  # [B, W]
    logarithmic: bool = False

    @classmethod
    def log_utility(cls, key: Tensor) -> Scores:
        """A score that is its own log-utility, such as -H: threshold(-0.7) compares it as it is."""
        key = key.double()
        return cls(key, key)

    @classmethod
    def probability(cls, value: Tensor) -> Scores:
        """A score in [0, 1]: ranked by its logarithm; threshold(0.9) compares it as it is."""
        value = value.double()
        return cls(value.log(), value, logarithmic=True)

    def putting_last(self, deferred: Tensor) -> Scores:
        """The same with these positions after all others, the rightmost of them first.

        An end token far to the right cuts off least, so it is the first to go. Their value is the
        lowest that the score's unit has.
        """
        place = torch.arange(deferred.shape[-1], device=deferred.device, dtype=self.key.dtype)
        far = -1e308 + 1e300 * place
        key = torch.where(deferred, far, self.key.clamp_min(-1e299))
        lowest = 0.0 if self.logarithmic else -torch.inf
        return Scores(key, self.value.masked_fill(deferred, lowest), self.logarithmic)

    def __sub__(self, penalty: Tensor) -> Scores:
        """log S - penalty; in the score's own unit S * exp(-penalty)."""
        key = self.key - penalty
        if not self.logarithmic:
            return Scores.log_utility(key)
        return Scores(key, self.value * (-penalty).exp(), logarithmic=True)


Score = Callable[[View], Scores]
Modulate = Callable[[View, Scores], Scores]
Candidates = Callable[[View], Tensor]
Select = Callable[[View, Scores], Tensor]
Limit = Callable[[View, Scores, Tensor], Tensor]
