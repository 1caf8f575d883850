"""Rule: one step of Algorithm 1, made of parts, and its one-line notation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unmask.errors import RuleError
from unmask.rules.checks import (
    check_chosen,
    checked_candidates,
    checked_memory,
    checked_modulation,
    checked_scores,
)
from unmask.rules.memory import Edit, PartMemory, Revoke, Window
from unmask.rules.notation import expand, parse
from unmask.rules.part import STAGE_NAMES, Abilities, LogitStage, Modulation, check_values
from unmask.rules.plugins import naming_parts
from unmask.rules.recipes import rule_text
from unmask.rules.registry import abilities_of, check_made, describe, kind_of, notation, spelled
from unmask.rules.view import Candidates, Limit, Modulate, Needs, Score, Scores, Select, View

if TYPE_CHECKING:
    from unmask.models.denoiser import ModelSpec


@dataclass(frozen=True)
class Decision:
    """What a rule decides in one step: B rows, W window positions."""

    base: Scores  # before any modulator
    scores: Scores  # after all of them
    chosen: Tensor  # [B, W] bool: committed now
    revoked: Tensor  # [B, W] bool: masked again
    least: Tensor | None = None  # [B] how many a budget of steps demands, None without one
    written: Tensor | None = None  # [B, W] bool: committed tokens that are replaced
    tokens: Tensor | None = None  # [B, W] what replaces them; None: the tokens of the view
    held: Tensor | None = None  # [B] bool: the window stays open though it has no mask
    finished: Tensor | None = None  # [B] bool: every mask of the row is filled now


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
    window: Window | None = None
    candidates: tuple[Candidates, ...] = ()

    def __post_init__(self) -> None:
        for (stage, part), abilities in zip(self._staged, self._abilities, strict=True):
            check_made(part, stage)
            check_values(abilities, spelled(part))
            abilities.check_rule(self)
        names = [memory.name for memory in self.memory]
        if twice := {name for name in names if names.count(name) > 1}:
            raise RuleError(
                f"two parts remember {sorted(twice)[0]!r}; a rule has each such part once"
            )

    @classmethod
    @naming_parts
    def parse(cls, text: str) -> Rule:
        """Read one rule, such as `confidence | swd(5) | eb(0.1)`, or the name of a recipe."""
        return cls.of(parse(rule_text(text)))

    @classmethod
    def expand(cls, text: str) -> list[Rule]:
        """Read a rule with braces as all the rules that it stands for, in order."""
        return [cls.parse(line) for line in expand(rule_text(text))]

    @classmethod
    def of(cls, parts: Sequence[Any]) -> Rule:
        """A rule from its parts, in the order of the stages."""
        staged: dict[str, list[Any]] = {}
        for part in parts:
            staged.setdefault(kind_of(part).stage, []).append(part)
        for stage in ("window", "logits", "score", "select", "revoke"):
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
            next(iter(staged.get("window", ())), None),
            tuple(staged.get("candidates", ())),
        )

    @property
    def _staged(self) -> Iterator[tuple[str, Any]]:
        """All parts in the order of the notation, each with its stage."""
        first = ((self.window,), (self.logits,), (self.score,), self.modulators, self.candidates)
        every = zip(STAGE_NAMES, (*first, (self.select,), self.limits, (self.revoke,)), strict=True)
        return ((stage, part) for stage, parts in every for part in parts if part is not None)

    @property
    def parts(self) -> tuple[Any, ...]:
        """All parts in the order of the notation."""
        return tuple(part for _, part in self._staged)

    @cached_property
    def _abilities(self) -> tuple[Abilities, ...]:
        """What each part says about itself; every request asks for it."""
        return tuple(map(abilities_of, self.parts))

    def __str__(self) -> str:
        return " | ".join(notation(part) for part in self.parts)

    @cached_property
    def needs(self) -> Needs:
        """Everything that the parts read; nothing else is computed."""
        return reduce(or_, (abilities.needs for abilities in self._abilities))

    @property
    def remembers(self) -> bool:
        """Whether a decision depends on what earlier forwards predicted."""
        return bool(self.logits or self.needs.history or self.needs.drift or self.memory)

    @cached_property
    def memory(self) -> tuple[PartMemory, ...]:
        """What the parts remember from step to step."""
        return tuple(memory for abilities in self._abilities for memory in abilities.memory)

    @cached_property
    def _remembering(self) -> tuple[tuple[Any, Abilities], ...]:
        pairs = zip(self.parts, self._abilities, strict=True)
        return tuple((part, abilities) for part, abilities in pairs if abilities.memory)

    @naming_parts
    def remembered(self, view: View, decision: Decision) -> dict[str, Tensor]:
        """The new values of the memory after a step, by name."""
        new: dict[str, Tensor] = {}
        for part, own in self._remembering:
            new |= checked_memory(own.remember(view, decision), part, own.memory, view)
        return new

    def explain(self) -> Iterator[str]:
        """What the rule does in each step, a sentence for each part."""
        return map(describe, self.parts)

    @naming_parts
    def __call__(self, view: View) -> Decision:
        base = scores = checked_scores(self.score(view), self.score, view)  # 1. score
        for modulation in self.modulations:  # 2. modulate
            scores = modulation.apply(view, scores)
        base, scores = _ends_last(view, base, scores)
        offered = self.offered(view)  # 3. narrow
        chosen = self.select(self._ready(offered, base), scores)  # 4. select
        check_chosen(chosen, self.select, offered)
        for limit in self.limits:  # 5. limit
            chosen = limit(offered, scores, chosen)
            check_chosen(chosen, limit, offered)
        finished = self._finish(view) if self._finish else None
        if self.revoke is None:
            return Decision(base, scores, chosen, torch.zeros_like(chosen), finished=finished)
        edit = self.revoke(replace(view, chosen=chosen))  # 6. revoke
        edit = Edit(edit) if isinstance(edit, Tensor) else edit
        return Decision(
            base, scores, chosen, edit.masked, None, edit.written, edit.tokens, edit.held, finished
        )

    def offered(self, view: View) -> View:
        """The view with the candidates that the candidates stages leave."""
        for part in self.candidates:
            view = view.narrowed(checked_candidates(part(view), part, view))
        for limit in self.limits:
            if alone := abilities_of(limit).alone:
                view = replace(view, alone=alone(view))
        return view

    def selectable(self, view: View, base: Scores) -> View:
        """The view as the selection sees it; fewer candidates, too, where a modulator waits."""
        return self._ready(self.offered(view), base)

    def _ready(self, view: View, base: Scores) -> View:
        return view.among(self._gate(view, base)) if self._gate else view

    def without(self, modulator: Modulate) -> Rule:
        """The rule without one of its modulators, and without the parts around it."""
        kept, dropped = list[Modulate](), False
        for part in self.modulators:
            dropped = part is modulator or (dropped and abilities_of(part).around is not None)
            kept += [] if dropped else [part]
        return replace(self, modulators=tuple(kept))

    @naming_parts
    def for_model(self, spec: ModelSpec) -> Rule:
        """The rule with what its parts take from the model; raises if a part does not fit it."""
        rule, fits = self, [abilities.for_model for abilities in self._abilities]
        if any(fits):
            pairs = zip(self.parts, fits, strict=True)
            rule = Rule.of([fit(spec) if fit else part for part, fit in pairs])
        for abilities in rule._abilities:
            abilities.check_model(spec)
        return rule

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
    def sight(self) -> str:
        """The memory that says how much of its window the next forward sees; "" without one."""
        return abilities_of(self.select).sight

    @cached_property
    def _finish(self) -> Callable[[View], Tensor] | None:
        """The `finish` of the first limit that has one."""
        return next(filter(None, (abilities_of(part).finish for part in self.limits)), None)

    @property
    def rewrites(self) -> bool:
        """Whether it may write tokens outside its selection, or over others."""
        return self.needs.rechecks or self._finish is not None or self.window is not None

    @cached_property
    def _gate(self) -> Callable[[View, Scores], Tensor] | None:
        """The `ready` of the first modulator that has one, if the selection is adaptive."""
        gates = (modulation.ready for modulation in self.modulations)
        adaptive = abilities_of(self.select).adaptive
        return next((gate for gate in gates if gate), None) if adaptive else None


def _modulated(modulate: Modulate, view: View, scores: Scores) -> Scores:
    """The scores after one modulator, checked."""
    return checked_modulation(modulate(view, scores), modulate, view)


def _ends_last(view: View, base: Scores, scores: Scores) -> tuple[Scores, Scores]:
    """Both scores with the tokens that end the answer behind all others."""
    if view.deferred is None:
        return base, scores
    last = base.putting_last(view.deferred)
    return last, last if scores is base else scores.putting_last(view.deferred)
