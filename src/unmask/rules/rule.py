"""Rule: one step of Algorithm 1, made of parts, and its one-line notation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Any

import torch
from torch import Tensor

from unmask.errors import RuleError
from unmask.rules.notation import expand, parse
from unmask.rules.part import STAGE_NAMES, LogitStage
from unmask.rules.recipes import RECIPES
from unmask.rules.registry import abilities_of, describe, kind_of, notation, spelled
from unmask.rules.view import (
    Candidates,
    Limit,
    Modulate,
    Needs,
    Revoke,
    Score,
    Scores,
    Select,
    View,
)


@dataclass(frozen=True)
class Decision:
    """What a rule decides in one step: B rows, W window positions."""

    base: Scores  # before any modulator
    scores: Scores  # after all of them
    chosen: Tensor  # [B, W] bool: committed now
    revoked: Tensor  # [B, W] bool: masked again
    least: Tensor | None = None  # [B] how many a budget of steps demands, None without one


@dataclass(frozen=True)
class Rule:
    """Score, modulate, narrow, select, limit, revoke; a loop calls the rule once per step.

    It is frozen and keeps no state: everything that a part remembers is in the view.
    """

    score: Score
    select: Select
    modulators: tuple[Modulate, ...] = ()
    limits: tuple[Limit, ...] = ()
    revoke: Revoke | None = None
    logits: LogitStage | None = None
    candidates: tuple[Candidates, ...] = ()

    def __post_init__(self) -> None:
        for part in self.parts:
            abilities_of(part).check_rule(self)

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read one rule, such as `confidence | swd(5) | eb(0.1)`, or the name of a recipe."""
        return cls.of(parse(_spelled_out(text)))

    @classmethod
    def expand(cls, text: str) -> list[Rule]:
        """Read a rule with braces as all the rules that it stands for, in order."""
        return [cls.parse(line) for line in expand(_spelled_out(text))]

    @classmethod
    def of(cls, parts: Sequence[Any]) -> Rule:
        """A rule from its parts, in the order of the stages."""
        staged: dict[str, list[Any]] = {}
        for part in parts:
            staged.setdefault(kind_of(part).stage, []).append(part)
        for stage in ("logits", "score", "select", "revoke"):
            if len(staged.get(stage, [])) > 1:
                written = ", ".join(notation(part) for part in staged[stage])
                raise RuleError(f"a rule has one {STAGE_NAMES[stage]}, got {written}")
        for stage in ("score", "select"):
            if stage not in staged:
                raise RuleError(
                    f"the rule has no {STAGE_NAMES[stage]}; write for example "
                    "'confidence | swd(5) | eb(0.1)'"
                )
        return cls(
            staged["score"][0],
            staged["select"][0],
            tuple(staged.get("modulate", ())),
            tuple(staged.get("limit", ())),
            next(iter(staged.get("revoke", ())), None),
            next(iter(staged.get("logits", ())), None),
            tuple(staged.get("candidates", ())),
        )

    @property
    def parts(self) -> tuple[Any, ...]:
        """All parts in the order of the notation."""
        before = (self.logits, self.score, *self.modulators, *self.candidates)
        every = (*before, self.select, *self.limits, self.revoke)
        return tuple(part for part in every if part is not None)

    def __str__(self) -> str:
        return " | ".join(notation(part) for part in self.parts)

    @cached_property
    def needs(self) -> Needs:
        """Everything that the parts read; nothing else is computed."""
        return reduce(or_, (abilities_of(part).needs for part in self.parts))

    def explain(self) -> Iterator[str]:
        """What the rule does in each step, a sentence for each part."""
        return map(describe, self.parts)

    def __call__(self, view: View) -> Decision:
        base = scores = _checked(self.score(view), self.score, view)  # 1. score
        for modulate in self.modulators:  # 2. modulate
            scores = _checked(modulate(view, scores), modulate, view)
        base, scores = _ends_last(view, base, scores)
        offered = self.offered(view)  # 3. narrow
        chosen = self.select(self._ready(offered, base), scores)  # 4. select
        self._check(chosen, offered)
        for limit in self.limits:  # 5. limit
            chosen = limit(offered, scores, chosen)
        revoked = self.revoke(view) if self.revoke else torch.zeros_like(chosen)  # 6. revoke
        return Decision(base, scores, chosen, revoked)

    def offered(self, view: View) -> View:
        """The view with the candidates that the candidates stages leave."""
        for part in self.candidates:
            view = view.narrowed(_checked_candidates(part(view), part, view))
        for limit in self.limits:
            if alone := abilities_of(limit).alone:
                view = replace(view, alone=alone(view))
        return view

    def selectable(self, view: View, base: Scores) -> View:
        """The view as the selection sees it; fewer candidates, too, where a modulator waits."""
        return self._ready(self.offered(view), base)

    def _ready(self, view: View, base: Scores) -> View:
        return view.among(self._gate(view, base)) if self._gate else view

    @cached_property
    def _gate(self) -> Callable[[View, Scores], Tensor] | None:
        """The `ready` of the first modulator that has one, if the selection is adaptive."""
        gates = (abilities_of(part).ready for part in self.modulators)
        adaptive = abilities_of(self.select).adaptive
        return next((gate for gate in gates if gate), None) if adaptive else None

    def _check(self, chosen: Any, view: View) -> None:
        if not isinstance(chosen, Tensor) or chosen.dtype != torch.bool:
            kind = chosen.dtype if isinstance(chosen, Tensor) else type(chosen).__name__
            raise RuleError(
                f"{spelled(self.select)} must return a bool tensor, True where it commits, "
                f"got {kind}; compare, as in scores.key > 0.5"
            )
        if chosen.shape != view.masked.shape:
            raise RuleError(
                f"{spelled(self.select)} must choose among {tuple(view.masked.shape)} positions, "
                f"got a tensor of shape {tuple(chosen.shape)}"
            )
        if bool((chosen & ~view.masked).any()):
            raise RuleError(
                f"{spelled(self.select)} chose a position that is not masked or no candidate"
            )


def _spelled_out(text: str) -> str:
    """The rule of a recipe if the text is its name, else the text."""
    recipe = RECIPES.get(text.strip())
    return recipe.rule if recipe else text


def _checked(result: Any, part: Any, view: View) -> Scores:
    """The result of a score or modulator; raises unless it is a number for every position."""
    scores = Scores.plain(result) if isinstance(result, Tensor) else result
    if not isinstance(scores, Scores) or scores.key.shape != view.masked.shape:
        shape = tuple(scores.key.shape) if isinstance(scores, Scores) else type(result).__name__
        raise RuleError(
            f"{spelled(part)} must give a score for each of {tuple(view.masked.shape)} positions, "
            f"got {shape}"
        )
    ranked = view.masked if view.deferred is None else view.masked & ~view.deferred
    if bool((scores.key.isnan() & ranked).any()):
        raise RuleError(f"{spelled(part)} gave NaN for a masked position")
    return scores


def _checked_candidates(left: Any, part: Any, view: View) -> Tensor:
    """What a candidates stage leaves; raises unless it leaves some of the candidates."""
    if not isinstance(left, Tensor) or left.dtype != torch.bool or left.shape != view.masked.shape:
        raise RuleError(
            f"{spelled(part)} must return a bool tensor of shape {tuple(view.masked.shape)}, True "
            "where a position may be chosen"
        )
    kept = left & view.masked
    if bool((view.masked.any(-1) & ~kept.any(-1)).any()):
        raise RuleError(f"{spelled(part)} left no candidate; it must leave at least one")
    return kept


def _ends_last(view: View, base: Scores, scores: Scores) -> tuple[Scores, Scores]:
    """Both scores with the tokens that end the answer behind all others."""
    if view.deferred is None:
        return base, scores
    last = base.putting_last(view.deferred)
    return last, last if scores is base else scores.putting_last(view.deferred)
