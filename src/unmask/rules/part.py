"""The protocol of a part: what a part may define beside `__call__`, declared once."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor

from unmask.errors import RuleError
from unmask.rules.memory import PartMemory
from unmask.rules.view import EVERYTHING, Divergence, Needs, Scores, View
from unmask.rules.words import ordinal

if TYPE_CHECKING:
    from unmask.models.denoiser import ModelSpec
    from unmask.rules.rule import Decision, Rule

STAGE_NAMES = {
    "window": "window policy",
    "logits": "logit stage",
    "score": "score",
    "modulate": "modulator",
    "candidates": "candidates stage",
    "select": "selection",
    "limit": "limit",
    "revoke": "revocation",
}


@dataclass(frozen=True)
class LogitCells:
    """What a logit stage may look at: N positions whose logits were computed."""

    token: Tensor  # [N]     the likeliest token
    probability: Tensor  # [N]
    amounts: tuple[
        Tensor, Tensor
    ]  # [N, K] each: tokens, -1 for none, and the amounts kept for them
    before: Tensor  # [N]     the token one position earlier, -1 at the start of the window
    place: Tensor  # [N]     the position, counted from the answer's start
    step: Tensor  # [N]     forwards already spent in its window
    ends: tuple[int, ...]  # tokens that end an answer


@dataclass(frozen=True)
class Bias:
    """What a logit stage adds to the logits of some tokens: [N, K] each, -1 where no token is."""

    tokens: Tensor
    bonus: Tensor
    amounts: tuple[Tensor, Tensor] | None = None  # to keep for the next step; None: nothing


class LogitStage(Protocol):
    """A part that adds to the logits before the score; decoding keeps its amounts for a row."""

    def biased(self, cells: LogitCells) -> Bias: ...


@dataclass(frozen=True)
class Standing:
    """Where one candidate stood in one step of a trace: what the `why` of a part reads."""

    position: int
    score: float  # after all modulators, in the score's own unit
    ranks: Mapping[int, int]  # the rank, from 1, of every position that could be selected
    selected: frozenset[int]  # the positions that the selection took
    complete: bool  # False where positions without a history could not be selected
    gauge: Mapping[str, float]  # the numbers of the selection's `gauge`
    step: int  # how many steps of the same block came before this one
    instability: float = math.nan  # the newest D, NaN where there is no history
    kl: Divergence = "prev_cur"  # what that D is

    @property
    def taken(self) -> bool:
        """Whether the selection took this position."""
        return self.position in self.selected

    @property
    def rank(self) -> int:
        """The rank of this position among those that could be selected, from 1."""
        return self.ranks[self.position]

    @property
    def place(self) -> str:
        """The rank in words."""
        return ordinal(self.rank) + ("" if self.complete else " of those with a history")

    def moved(self, kl: Divergence) -> float:
        """The newest D by this divergence, NaN where the trace has none."""
        return self.instability if kl == self.kl else math.nan

    def level(self, name: str) -> float:
        """A number of the selection's `gauge`, NaN where the trace has none."""
        return self.gauge.get(name, math.nan)


@dataclass(frozen=True)
class Modulation:
    """A modulator as the rule applies it; the `around` of a part behind it makes another of it."""

    apply: Callable[[View, Scores], Scores]
    ready: Callable[[View, Scores], Tensor] | None = None


def _accept(subject: object) -> None:
    """A part without a check accepts every rule and model."""


@dataclass(frozen=True)
class Abilities:
    """What a part says about itself, with the defaults of everything that it does not define.

    A class defines an ability as an attribute, a property or a method of the same name.
    """

    needs: Needs = EVERYTHING  # what it reads beyond the plain statistics
    describe: Callable[[], str] | None = None  # what it does, in words (default: the docstring)
    check_rule: Callable[[Rule], None] = _accept  # raises if it does not fit the other parts
    check_model: Callable[[ModelSpec], None] = _accept  # raises if it does not fit the model
    for_model: Callable[[ModelSpec], Any] | None = None  # itself, with what it takes from the model
    # What it remembers from step to step, and the new values after a step, by name.
    memory: tuple[PartMemory, ...] = ()
    remember: Callable[[View, Decision], dict[str, Tensor]] = lambda *step: {}
    # Modulators: the positions that an adaptive selection may choose, [B, W].
    ready: Callable[[View, Scores], Tensor] | None = None
    # Modulators: what it makes of the modulator before it, instead of a score.
    around: Callable[[Modulation], Modulation] | None = None
    # Selections: the memory with the positions of its window that the next forward sees; 0: all.
    sight: str = ""
    # Limits: rows whose masks all get their likeliest token in this step, [B].
    finish: Callable[[View], Tensor] | None = None
    # Limits: of these positions one goes if nothing else does, [B, W] (default: of all candidates).
    alone: Callable[[View], Tensor] | None = None
    # Selections: whether the scores decide how many are chosen; whether a step may choose none.
    adaptive: bool = True
    waits: bool = False
    # Selections: the knobs that `unmask tune` tries, in braces, such as "{0.8,0.9}, kl={0.1,1}".
    grid: str = ""
    # Selections: numbers of one step for the trace, [B] each.
    gauge: Callable[[View, Scores, Tensor], dict[str, Tensor]] = lambda *step: {}
    # Selections: why(standing) says why a position was taken or not. Revocations: why().
    # Candidates stages: why() says which positions may be chosen. Limits: why() says what one adds.
    why: Callable[..., str] | None = None


ABILITIES = {ability.name: ability.default for ability in fields(Abilities)}
_ONLY_FOR = {  # the stages of an ability that not every part may have
    "ready": ("modulate",),
    "around": ("modulate",),
    "sight": ("select",),
    "finish": ("limit",),
    "alone": ("limit",),
    "adaptive": ("select",),
    "waits": ("select",),
    "grid": ("select",),
    "gauge": ("select",),
    "why": ("candidates", "select", "limit", "revoke"),
}


_INPUTS = {  # what a step hands to the parts of a stage, in this order
    "score": ("view",),
    "modulate": ("view", "scores"),
    "candidates": ("view",),
    "select": ("view", "scores"),
    "limit": ("view", "scores", "chosen"),
    "revoke": ("view",),
}


def check_part(target: Any, stage: str, name: str) -> None:
    """Raise unless a class or function can be a part of this stage."""
    if isinstance(target, type) and not is_dataclass(target):
        raise RuleError(
            f"{name}: the class {target.__name__} must be a dataclass; write "
            "@dataclass(frozen=True) below the decorator that registers it"
        )
    check_abilities(target, stage, name)
    _check_inputs(target, stage, name)


def check_abilities(target: Any, stage: str, name: str) -> None:
    """Raise unless a class or function defines abilities of its stage, by their names and types.

    The attributes of a function are its abilities.
    """
    words = dir(target) if isinstance(target, type) else vars(target)
    knobs = {knob.name for knob in fields(target)} if is_dataclass(target) else set()
    for word in words:
        if word in ABILITIES:
            _check_ability(word, attrgetter(word)(target), stage, name)
        elif not word.startswith("_") and word not in knobs:
            _check_spelling(word, name)


def check_values(abilities: Abilities, name: str) -> None:
    """Raise unless what a part says about itself has the declared types: also its properties."""
    for ability, value in vars(abilities).items():
        if value is not ABILITIES[ability]:
            _check_value(ability, value, name)
    for memory in abilities.memory:
        if not isinstance(memory, PartMemory):
            raise RuleError(f"{name}: memory must be a tuple of PartMemory, got {memory!r} in it")


def _check_inputs(target: Any, stage: str, name: str) -> None:
    """Raise unless a function begins with the inputs of its stage, or `__call__` takes as many."""
    inputs = _INPUTS.get(stage, ())
    wanted = ", ".join(inputs)
    if inspect.isfunction(target):
        names = tuple(inspect.signature(target).parameters)
        if names[: len(inputs)] != inputs:
            raise RuleError(
                f"{name}: a {STAGE_NAMES[stage]} takes ({wanted}), by these names, then its knobs; "
                f"got ({', '.join(names)})"
            )
    elif isinstance(target, type) and inputs and "around" not in dir(target):
        calls = [vars(base)["__call__"] for base in target.__mro__ if "__call__" in vars(base)]
        try:
            inspect.signature(calls[0]).bind(None, *inputs)
        except (IndexError, TypeError):
            raise RuleError(
                f"{name}: the class of a {STAGE_NAMES[stage]} has a method __call__(self, {wanted})"
            ) from None


def _check_ability(ability: str, value: Any, stage: str, name: str) -> None:
    stages = _ONLY_FOR.get(ability, (stage,))
    if stage not in stages:
        allowed = " or a ".join(STAGE_NAMES[stage] for stage in stages)
        raise RuleError(
            f"{name}: {ability} is for a {allowed}, not for a {STAGE_NAMES[stage]}; remove it"
        )
    if inspect.isdatadescriptor(value) or inspect.ismethoddescriptor(value):
        return  # a property: its value is known when the part is made
    _check_value(ability, value, name)


def _check_value(ability: str, value: Any, name: str) -> None:
    default = ABILITIES[ability]
    if isinstance(default, bool | Needs | tuple | str):
        good, wanted = isinstance(value, type(default)), type(default).__name__
    else:
        good, wanted = callable(value), "a method"
    if not good:
        raise RuleError(f"{name}: {ability} must be {wanted}, got {value!r}")


def _check_spelling(word: str, name: str) -> None:
    near = get_close_matches(word, ABILITIES, n=1, cutoff=0.8)
    if near:
        raise RuleError(
            f"{name}: {word!r} is not an ability of a part; did you mean {near[0]!r}? "
            f"a name of your own may start with an underscore: {'_' + word!r}"
        )
