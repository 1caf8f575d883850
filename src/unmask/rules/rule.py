"""Rule: one step of Algorithm 1, made of parts, and its one-line notation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import or_
from typing import Any

import torch
from torch import Tensor

from unmask.errors import RuleError
from unmask.rules.notation import expand, parse
from unmask.rules.part import STAGE_NAMES, LogitStage, Modulation
from unmask.rules.recipes import RECIPES
from unmask.rules.registry import abilities_of, describe, kind_of, notation, spelled
from unmask.rules.view import Limit, Modulate, Needs, Revoke, Score, Scores, Select, View

ROUNDING = 1e-6  # by which a probability may exceed 1


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
    """Score, modulate, select, limit, revoke; a loop calls the rule once per step.

    It is frozen and keeps no state: everything that a part remembers is in the view.
    """

    score: Score
    select: Select
    modulators: tuple[Modulate, ...] = ()
    limits: tuple[Limit, ...] = ()
    revoke: Revoke | None = None
    logits: LogitStage | None = None

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
        )

    @property
    def parts(self) -> tuple[Any, ...]:
        """All parts in the order of the notation."""
        every = (self.logits, self.score, *self.modulators, self.select, *self.limits, self.revoke)
        return tuple(part for part in every if part is not None)

    def __str__(self) -> str:
        return " | ".join(notation(part) for part in self.parts)

    @cached_property
    def needs(self) -> Needs:
        """Everything that the parts read; nothing else is computed."""
        return reduce(or_, (abilities_of(part).needs for part in self.parts))

    @property
    def remembers(self) -> bool:
        """Whether a decision depends on what earlier forwards predicted."""
        return bool(self.logits or self.needs.history or self.needs.drift)

    def explain(self) -> Iterator[str]:
        """What the rule does in each step, a sentence for each part."""
        return map(describe, self.parts)

    def __call__(self, view: View) -> Decision:
        base = scores = _scored(self.score(view), self.score, view)  # 1. score
        for modulation in self.modulations:  # 2. modulate
            scores = modulation.apply(view, scores)
        base, scores = _ends_last(view, base, scores)
        chosen = self.select(view.among(self.ready(view, base)), scores)  # 3. select
        self._check(chosen, view)
        for limit in self.limits:  # 4. limit
            chosen = limit(view, scores, chosen)
        revoked = self.revoke(view) if self.revoke else torch.zeros_like(chosen)  # 5. revoke
        return Decision(base, scores, chosen, revoked)

    def ready(self, view: View, base: Scores) -> Tensor:
        """The positions that the selection may choose: [B, W]; fewer where a modulator waits."""
        return self._gate(view, base) if self._gate else view.masked

    def without(self, modulator: Modulate) -> Rule:
        """The rule without one of its modulators, and without the parts around it."""
        kept: list[Modulate] = []
        dropped = False
        for part in self.modulators:
            dropped = part is modulator or (dropped and abilities_of(part).around is not None)
            kept += [] if dropped else [part]
        return replace(self, modulators=tuple(kept))

    @cached_property
    def modulations(self) -> tuple[Modulation, ...]:
        """The modulators, each as the parts around it have made it."""
        made: list[Modulation] = []
        for part in self.modulators:
            abilities = abilities_of(part)
            if abilities.around:
                made[-1] = abilities.around(made[-1])
            else:
                made.append(Modulation(partial(_modulated, part), abilities.ready))
        return tuple(made)

    @cached_property
    def _gate(self) -> Callable[[View, Scores], Tensor] | None:
        """The `ready` of the first modulator that has one, if the selection is adaptive."""
        gates = (modulation.ready for modulation in self.modulations)
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
            raise RuleError(f"{spelled(self.select)} chose a position that is not masked")


def _spelled_out(text: str) -> str:
    """The rule of a recipe if the text is its name, else the text."""
    recipe = RECIPES.get(text.strip())
    return recipe.rule if recipe else text


def _scored(result: Any, part: Any, view: View) -> Scores:
    """The result of a score; raises if its unit is not known, or not what it says."""
    if isinstance(result, Tensor):
        raise RuleError(_without_unit(result, part, view))
    scores = _checked(result, part, view)
    if scores.logarithmic and bool(((scores.value > 1 + ROUNDING) & view.masked).any()):
        most = float(scores.value[view.masked].max())
        raise RuleError(
            f"{spelled(part)} gave {most:g} as a probability, which is at most 1; a number that "
            "only ranks is a log-utility: write `return unmask.Scores.log_utility(...)` around it"
        )
    return scores


def _without_unit(scores: Tensor, part: Any, view: View) -> str:
    """What to write instead of a plain tensor: first what its numbers look like."""
    inside = scores[view.masked] if scores.shape == view.masked.shape else scores
    units = ("probability", "log_utility")
    likely, other = units if bool(((inside >= 0) & (inside <= 1)).all()) else units[::-1]
    return (
        f"{spelled(part)} returned a plain tensor, whose unit is not known; write "
        f"`return unmask.Scores.{likely}(...)` around it, or unmask.Scores.{other}(...): a "
        "probability is a number in [0, 1]; a log-utility is a logarithm, or a number that ranks"
    )


def _checked(scores: Any, part: Any, view: View) -> Scores:
    """The result of a score or modulator; raises unless it is a number for every position."""
    if not isinstance(scores, Scores):
        raise RuleError(
            f"{spelled(part)} must return Scores, as in `return scores - penalty`, got "
            f"{type(scores).__name__}"
        )
    if scores.key.shape != view.masked.shape:
        raise RuleError(
            f"{spelled(part)} must give a score for each of {tuple(view.masked.shape)} positions, "
            f"got {tuple(scores.key.shape)}"
        )
    ranked = view.masked if view.deferred is None else view.masked & ~view.deferred
    if bool((scores.key.isnan() & ranked).any()):
        raise RuleError(f"{spelled(part)} gave NaN for a masked position")
    return scores


def _modulated(modulate: Modulate, view: View, scores: Scores) -> Scores:
    """The scores after one modulator, checked."""
    return _checked(modulate(view, scores), modulate, view)


def _ends_last(view: View, base: Scores, scores: Scores) -> tuple[Scores, Scores]:
    """Both scores with the tokens that end the answer behind all others."""
    if view.deferred is None:
        return base, scores
    last = base.putting_last(view.deferred)
    return last, last if scores is base else scores.putting_last(view.deferred)
