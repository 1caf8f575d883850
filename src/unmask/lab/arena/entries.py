"""The rules that enter the arena: the recipes of the field, and rules that a user adds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from unmask.errors import LabError, UnknownName
from unmask.lab.sweep.grid import along_knob, spelled_out
from unmask.rules.recipes import RECIPES, Recipe
from unmask.rules.registry import knobs_of, notation
from unmask.rules.rule import Rule


@dataclass(frozen=True)
class Entry:
    """A rule with its published knobs, and the same rule along the knob of its selection."""

    name: str
    rule: str  # the published setting, in the notation
    curve: str  # with braces
    note: str = ""

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """The published setting and those along the knob, each once."""
        return tuple(dict.fromkeys([*spelled_out(self.rule), *spelled_out(self.curve)]))

    @cached_property
    def remembers(self) -> bool:
        """Whether a decision depends on earlier forwards, not on the current one alone."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # swd(form=literal) warns each time
            rule = Rule.parse(self.settings[0])
        return rule.remembers


def entries(length: int, added: Sequence[str] = (), only: Sequence[str] = ()) -> list[Entry]:
    """The recipes, or only some of them, and the rules that a user adds, for so many tokens.

    A recipe that is a sweep is left out; of recipes with the same settings, the first stays.
    """
    for name in only:
        if name not in RECIPES:
            raise UnknownName("recipe", name, RECIPES)
    known = [
        _known(recipe, length)
        for recipe in RECIPES.values()
        if "{" not in recipe.rule and (not only or recipe.name in only)
    ]
    own = [_added(text) for text in added]
    unique = {entry.settings: entry for entry in reversed([*known, *own])}
    chosen = [entry for entry in (*known, *own) if unique[entry.settings] is entry]
    if len(chosen) < 2:
        raise LabError(f"an arena needs at least two different rules, got {len(chosen)}")
    return chosen


def _known(recipe: Recipe, length: int) -> Entry:
    """A recipe. A timetable keeps its share of steps per token: 256 steps for 256 tokens are 32
    for 32, and its knob goes down from there.
    """
    rule = Rule.parse(recipe.rule)
    steps = knobs_of(rule.select).get("steps")
    if steps is None or recipe.length is None:
        return Entry(recipe.name, str(rule), along_knob(recipe.rule), recipe.note)
    wanted = max(1, steps * length // recipe.length)
    grid = sorted({max(1, wanted // share) for share in (1, 2, 4, 8)}, reverse=True)
    text = notation(rule.select)
    published = text.replace(f"({steps}", f"({wanted}", 1)
    swept = text.replace(f"({steps}", f"({{{','.join(map(str, grid))}}}", 1)
    before = str(rule)
    curve = before.replace(text, swept, 1)
    return Entry(recipe.name, before.replace(text, published, 1), curve, recipe.note)


def _added(text: str) -> Entry:
    """A user's rule; braces are its knob, else the grid that its selection declares."""
    if "{" in text:
        return Entry(text, spelled_out(text)[0], text, "added")
    return Entry(text, str(Rule.parse(text)), along_knob(text), "added")
