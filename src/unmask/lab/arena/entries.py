"""The rules that enter the arena: the recipes of the field, and rules that a user adds."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from unmask.errors import LabError, UnknownName
from unmask.lab.sweep.grid import along_knob, spelled_out
from unmask.rules.recipes import RECIPES, Recipe
from unmask.rules.registry import kind_of, knobs_of, notation
from unmask.rules.rule import Rule

VALUES = 4  # of a knob at most: the whole arena takes minutes, not hours
# Rules that have no recipe of their own.
OTHERS = (
    Recipe("swd-js", "confidence | swd(5, kl=js) | eb(0.1)", note="SWD, Jensen-Shannon divergence"),
)
KNOWN = {each.name: each for each in (*RECIPES.values(), *OTHERS)}


@dataclass(frozen=True)
class Entry:
    """A rule with its published knobs, and the same rule along the knob of its selection."""

    name: str
    settings: tuple[str, ...]  # in the notation, each once; the published one is the first
    curve: str  # how the settings are made: with braces, or with n for a number of steps
    note: str = ""

    @property
    def rule(self) -> str:
        """The published setting."""
        return self.settings[0]

    @cached_property
    def remembers(self) -> bool:
        """Whether a decision depends on earlier forwards, not on the current one alone."""
        return self._parsed.remembers

    @cached_property
    def gated(self) -> bool:
        """Whether a gate narrows what may be committed to places near the left."""
        return any(kind_of(part).name in ("upstream", "frontier") for part in self._parsed.parts)

    @cached_property
    def stable(self) -> bool:
        """Whether SWD modulates its score."""
        return any(kind_of(part).name == "swd" for part in self._parsed.parts)

    @cached_property
    def _parsed(self) -> Rule:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # swd(form=literal) warns each time
            return Rule.parse(self.rule)


@dataclass(frozen=True)
class Roster:
    """The rules that enter, and why recipes were left out, by name."""

    entries: tuple[Entry, ...]
    left_out: dict[str, str]


def roster(
    length: int, added: Sequence[str] = (), only: Sequence[str] = (), newline: bool = False
) -> Roster:
    """The recipes, or only some of them, and the rules that a user adds, for so many tokens.

    Of rules with the same settings, the first stays. `newline`: whether the model has a token for
    line breaks.
    """
    for name in only:
        if name not in KNOWN:
            raise UnknownName("recipe", name, KNOWN)
    wanted = [each for each in KNOWN.values() if not only or each.name in only]
    left_out = {each.name: why for each in wanted if (why := _unfit(each, newline))}
    known = [_known(each, length) for each in wanted if each.name not in left_out]
    own = [_added(text) for text in added]
    unique = {entry.settings: entry for entry in reversed([*known, *own])}
    chosen = tuple(entry for entry in (*known, *own) if unique[entry.settings] is entry)
    if len(chosen) < 2:
        raise LabError(f"an arena needs at least two different rules, got {len(chosen)}")
    return Roster(chosen, left_out)


def _unfit(recipe: Recipe, newline: bool) -> str:
    """Why a recipe cannot enter, or nothing."""
    if "{" in recipe.rule:
        return "it is a sweep of other rules"
    if recipe.length == "auto":
        return "its canvas grows, and here all rules write on the same canvas"
    if "adablock" in recipe.rule and not newline:
        return "its blocks end at a newline, and the tokenizer has no token for it"
    return ""


def _known(recipe: Recipe, length: int) -> Entry:
    """A recipe along its knob."""
    rule = Rule.parse(recipe.rule)
    if isinstance(recipe.length, int):
        return _timetable(recipe, rule, length)
    return _entry(recipe.name, str(rule), _thinned(along_knob(recipe.rule)), recipe.note)


def _timetable(recipe: Recipe, rule: Rule, length: int) -> Entry:
    """A recipe with a number of steps. It keeps its share of steps per token: 256 steps for 256
    tokens are 32 for 32, and its knob goes down from there.
    """
    assert isinstance(recipe.length, int)
    whole = max(1, knobs_of(rule.select)["steps"] * length // recipe.length)
    grid = sorted({max(1, whole // share) for share in (1, 2, 4, 8)}, reverse=True)
    settings = tuple(_in_steps(rule, steps) for steps in grid)
    curve = re.sub(rf"(?<=[(=]){whole}(?=[,)])", "n", settings[0]) + ", n = "
    return Entry(recipe.name, settings, curve + ", ".join(map(str, grid)), recipe.note)


def _in_steps(rule: Rule, steps: int) -> str:
    parts = [replace(p, steps=steps) if "steps" in knobs_of(p) else p for p in rule.parts]
    return str(Rule.parse(" | ".join(map(notation, parts))))


def _added(text: str) -> Entry:
    """A user's rule; braces are its knob, else the grid that its selection declares."""
    if "{" in text:
        return _entry(text, spelled_out(text)[0], text, "added")
    return _entry(text, str(Rule.parse(text)), _thinned(along_knob(text)), "added")


def _thinned(curve: str) -> str:
    """The same with at most `VALUES` values in its braces, from the first to the last."""

    def thin(braces: re.Match[str]) -> str:
        values = braces[1].split(",")
        places = [round(i * (len(values) - 1) / (VALUES - 1)) for i in range(VALUES)]
        return "{" + ",".join(values[i] for i in dict.fromkeys(places)) + "}"

    return re.sub(r"\{([^}]*)\}", thin, curve)


def _entry(name: str, rule: str, curve: str, note: str) -> Entry:
    settings = dict.fromkeys([*spelled_out(rule), *spelled_out(curve)])
    return Entry(name, tuple(settings), curve, note)
