"""Rules from strangers: read like all others, but they open no file and stay small."""

from __future__ import annotations

from typing import Any

from unmask.errors import RuleError
from unmask.rules.notation import read
from unmask.rules.recipes import RECIPES
from unmask.rules.registry import Kind
from unmask.rules.rule import Rule

MOST_PARTS = 8
MOST_WHOLE = 4096  # of a knob that counts: steps, positions
MOST_TRAIL = 64  # forwards that a rule may look back, each kept for every position


def rule_of_request(text: str) -> Rule:
    """One rule, or a recipe's; its knobs are seen before any part is made of them."""
    named = RECIPES.get(text.strip())
    if named is None and ("{" in text or "}" in text):  # a sweep may stand for any number of rules
        raise RuleError("a request takes one rule; braces stand for several")
    parts = read(text if named is None else named.rule)
    if len(parts) > MOST_PARTS:
        raise RuleError(f"the rule has {len(parts)} parts; a request may give {MOST_PARTS}")
    for kind, knobs in parts:
        _check_knobs(kind, knobs)
    rule = Rule.of([kind.make(**knobs) for kind, knobs in parts])
    if rule.needs.trail > MOST_TRAIL:
        raise RuleError(
            f"the rule looks back {rule.needs.trail} forwards; a request may look back {MOST_TRAIL}"
        )
    return rule


def _check_knobs(kind: Kind, knobs: dict[str, Any]) -> None:
    for argument in kind.arguments:
        value = knobs.get(argument.name, argument.default)
        if argument.kind is str and value != argument.default:
            raise RuleError(
                f"{kind.name}: {argument.name} names a file of the server's, so a request cannot "
                "give it; the rule that the server is started with can"
            )
        if argument.kind is int and isinstance(value, int) and value > MOST_WHOLE:
            raise RuleError(
                f"{kind.name}: {argument.name} must be <= {MOST_WHOLE} in a request, got {value}"
            )
