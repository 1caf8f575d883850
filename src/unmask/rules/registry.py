"""The table of parts: how a name in the notation becomes a callable, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from math import inf, isnan
from operator import attrgetter
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints, overload

from unmask.errors import RuleError, UnknownName, shown
from unmask.rules.part import ABILITIES, STAGE_NAMES, Abilities, check_abilities, check_part
from unmask.rules.view import EVERYTHING, Needs

ENTRY_POINTS = "unmask.parts"
BUILT_IN = (
    "credit",
    "scores",
    "stability",
    "modulators",
    "around",
    "frontier",
    "select",
    "prefixes",
    "factor",
    "budget",
    "localleap",
    "schedules",
    "even",
    "limits",
    "upstream",
    "revoke",
    "less",
    "no_end",
    "penalty",
    "prophet",
    "saber",
    "edit",
    "adablock",
    "slowfast",
    "wino",
    "p2",
    "vote",
)
STAGES = tuple(STAGE_NAMES)

MOST = 1e18  # of a knob: whole numbers and float32 reach it
MISSING = inspect.Parameter.empty  # the default of a knob that must be given
T = TypeVar("T", bound=Callable[..., Any])
_STEP_INPUTS = {"view", "scores", "chosen"}  # arguments of a step; the others are knobs


@dataclass(frozen=True)
class Argument:
    """One knob of a part."""

    name: str
    kind: Any  # float, int, bool, str, or a Literal of allowed words
    default: Any = MISSING

    def __str__(self) -> str:
        words = get_args(self.kind) if get_origin(self.kind) is Literal else ()
        allowed = "yes|no" if self.kind is bool else "|".join(map(str, words))
        if self.default is MISSING:
            return f"{self.name}: {allowed}" if allowed else self.name
        return f"{self.name}={show(self.default)}" + (f" ({allowed})" if allowed else "")


@dataclass(frozen=True)
class Kind:
    """A row of the table: a named part that the notation can make."""

    name: str
    stage: str
    target: Callable[..., Any]  # a frozen dataclass, or a function whose knobs have defaults
    formula: str = ""
    source: str = ""
    needs: Needs = EVERYTHING  # of a part that does not define them
    note: str = ""  # what its authors publish, and what this project knows of it

    @property
    def summary(self) -> str:
        """The first line of the part's docstring."""
        return (inspect.getdoc(self.target) or "").partition("\n")[0]

    @property
    def details(self) -> str:
        """The docstring after its first line."""
        return (inspect.getdoc(self.target) or "").partition("\n")[2].strip()

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The knobs, in the order of the notation."""
        hints = get_type_hints(self.target)
        return tuple(
            Argument(name, hints.get(name, float), parameter.default)
            for name, parameter in inspect.signature(self.target).parameters.items()
            if name not in _STEP_INPUTS
        )

    @property
    def usage(self) -> str:
        """How it is written, such as `swd(lam=5, kl=prev_cur, ...)`."""
        knobs = ", ".join(str(argument) for argument in self.arguments)
        return f"{self.name}({knobs})" if knobs else self.name

    @property
    def grid(self) -> str:
        """The values of its knobs to try, in braces; empty if the part declares none."""
        declared = isinstance(self.target, type) and "grid" in _defined(self.target)
        return str(attrgetter("grid")(self.target) if declared else ABILITIES["grid"])

    def make(self, **knobs: Any) -> Any:
        """An instance with these knobs; a function without knobs is its own instance."""
        for argument in self.arguments:
            if argument.default is MISSING and argument.name not in knobs:
                raise RuleError(f"{self.name}: {argument.name} must be given: {self.usage}")
            if isinstance(value := knobs.get(argument.name), float) and isnan(value):
                raise RuleError(f"{self.name}: {argument.name} must be a number, got nan")
        made = self._made(knobs)  # the part's own checks come first
        for name, value in knobs.items():
            if isinstance(value, int | float) and MOST < abs(value) < inf:
                raise RuleError(f"{self.name}: {name} must be at most {MOST:g}, got {value:g}")
        return made

    def _made(self, knobs: dict[str, Any]) -> Any:
        if is_dataclass(self.target):
            return self.target(**knobs)
        if not self.arguments:
            return self.target
        filled = {a.name: knobs.get(a.name, a.default) for a in self.arguments}
        return Bound(self, tuple(filled.items()))


@dataclass(frozen=True)
class Bound:
    """A function part with the values of its knobs."""

    kind: Kind
    knobs: tuple[tuple[str, Any], ...]

    def __call__(self, *inputs: Any) -> Any:
        return self.kind.target(*inputs, **dict(self.knobs))


TABLE: dict[str, Kind] = {}  # by name, in the order of registration


def kinds(stage: str | None = None) -> list[Kind]:
    """Every known part, of one stage or of all, in the order of the stages."""
    _load()
    chosen = STAGES if stage is None else (stage,)
    return [kind for s in chosen for kind in TABLE.values() if kind.stage == s]


def kind_named(name: str) -> Kind:
    """The part of that name, or an error that suggests the nearest one."""
    _load()
    if name not in TABLE:
        raise UnknownName("rule part", name, [kind.name for kind in kinds()])
    return TABLE[name]


def kind_of(part: Any) -> Kind:
    """The table row that a part was made from."""
    _load()
    if kind := _row(part):
        return kind
    raise RuleError(
        f"{part!r} is not a registered part; decorate it with @unmask.score, "
        "@unmask.modulator or @unmask.selection to give it a name"
    )


def _row(part: Any) -> Kind | None:
    if isinstance(part, Bound):
        return part.kind
    rows = TABLE.values()
    return next((row for row in rows if row.target is part or row.target is type(part)), None)


def is_current(part: Any) -> bool:
    """Whether the table still makes this part; a notebook may register its name again."""
    row = _row(part)
    return row is not None and TABLE.get(row.name) is row


def check_made(part: Any, stage: str) -> None:
    """Raise if a function, or an object whose class is not registered, has a wrong ability."""
    if inspect.isfunction(part):
        check_abilities(part, stage, spelled(part))
    elif isinstance(part, Bound):
        check_abilities(part.kind.target, stage, spelled(part))
    elif _row(part) is None:
        check_abilities(type(part), stage, spelled(part))


def abilities_of(part: Any) -> Abilities:
    """What a part says about itself; it need not be registered."""
    kind, own = _row(part), getattr(part, "__dict__", {})
    values: dict[str, Any] = {"needs": kind.needs} if kind else {}
    for name in _defined(part.__class__) | (ABILITIES.keys() & own.keys()):
        values[name] = attrgetter(name)(part)
    return Abilities(**values)


@cache
def _defined(kind: type) -> frozenset[str]:
    """The abilities that a class defines; `dir` is slow, and every rule asks for them."""
    return frozenset(ABILITIES.keys() & dir(kind))


def describe(part: Any) -> str:
    """What a part does, in a sentence: its own words, or the first line of its docstring."""
    if words := abilities_of(part).describe:
        return words()
    kind = kind_of(part)
    summary = kind.summary or f"{kind.name} (it has no description)"
    return summary if summary.endswith(".") else f"{summary}."


def notation(part: Any) -> str:
    """The part as the rule notation writes it: `swd(5, kl=cur_prev)`."""
    kind = kind_of(part)
    if not kind.arguments:
        return kind.name
    knobs = knobs_of(part)
    first, *others = kind.arguments
    written = [show(knobs[first.name])]
    written += [f"{a.name}={show(knobs[a.name])}" for a in others if knobs[a.name] != a.default]
    return f"{kind.name}({', '.join(written)})"


def knobs_of(part: Any) -> dict[str, Any]:
    """The knobs of a part and their values."""
    return dict(part.knobs) if isinstance(part, Bound) else dict(vars(part))


def spelled(part: Any) -> str:
    """The part in the notation, or its name in Python where it is not registered."""
    if _row(part):
        return notation(part)
    return str(part.__name__) if inspect.isroutine(part) else type(part).__name__


def show(value: Any) -> str:
    """A knob's value as the notation writes it: 5, 0.1, yes, prev_cur."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


def register(
    stage: str,
    name: str,
    formula: str = "",
    source: str = "",
    needs: Needs = EVERYTHING,
    note: str = "",
) -> Callable[[T], T]:
    """Put a class or function into the table under this name."""
    if stage not in STAGES:
        raise UnknownName("stage", stage, STAGES)

    def put(target: T) -> T:
        check_part(target, stage, name)
        if name in TABLE and TABLE[name].target is not target:
            taken = TABLE[name].target
            if (taken.__module__, taken.__qualname__) != (target.__module__, target.__qualname__):
                raise RuleError(
                    f"the part name {name!r} is taken by {taken.__module__}.{taken.__qualname__}; "
                    "choose another name"
                )
        TABLE[name] = Kind(name, stage, target, formula, source, needs, note)
        return target

    return put


@overload
def score(target: T) -> T: ...
@overload
def score(*, needs: Needs) -> Callable[[T], T]: ...
def score(target: T | None = None, *, needs: Needs = EVERYTHING) -> T | Callable[[T], T]:
    """Decorator: make a function `(view) -> Scores` a score of the notation."""
    return _named("score", target, needs)


@overload
def modulator(target: T) -> T: ...
@overload
def modulator(*, needs: Needs) -> Callable[[T], T]: ...
def modulator(target: T | None = None, *, needs: Needs = EVERYTHING) -> T | Callable[[T], T]:
    """Decorator: make a function `(view, scores) -> Scores` a modulator of the notation."""
    return _named("modulate", target, needs)


@overload
def selection(target: T) -> T: ...
@overload
def selection(*, needs: Needs) -> Callable[[T], T]: ...
def selection(target: T | None = None, *, needs: Needs = EVERYTHING) -> T | Callable[[T], T]:
    """Decorator: make a function `(view, scores) -> bool Tensor` a selection of the notation."""
    return _named("select", target, needs)


def _named(stage: str, target: T | None, needs: Needs) -> T | Callable[[T], T]:
    """Register a function under its own name; without one, return the decorator that does it."""

    def put(function: T) -> T:
        if not hasattr(function, "__name__"):
            raise RuleError(f"a part is a function or a class, got {shown(function)}")
        return register(stage, function.__name__, needs=needs)(function)

    return put if target is None else put(target)


@cache
def _load() -> None:
    """Fill the table with our own parts and the entry points of the group `unmask.parts`."""
    for module in BUILT_IN:
        import_module(f"unmask.rules.{module}")
    for point in entry_points(group=ENTRY_POINTS):
        try:
            target = point.load()
        except Exception as error:
            raise RuleError(
                f"the plug-in {point.name!r} ({point.value}) cannot be imported: {error}; "
                "repair or uninstall the package that holds it"
            ) from error
        if callable(target) and not any(kind.target is target for kind in TABLE.values()):
            register("select", point.name)(target)
