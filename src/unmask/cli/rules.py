"""`unmask rules`: lists every part of the notation, or explains one rule."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator

from unmask.cli.options import add_import, examples

STAGE_TITLES = {
    "window": "Window policy (first)",
    "logits": "Logit stage (before the score)",
    "score": "Scores (one per rule)",
    "modulate": "Modulators (any number)",
    "candidates": "Candidates (before the selection)",
    "select": "Selections (one per rule)",
    "limit": "Limits (after the selection)",
    "revoke": "Revocation (last)",
}


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "rules",
        help="list every part of the rule notation, or explain one rule in words",
        description="Without RULE, lists every part with its formula, source and defaults, and the "
        "named recipes. With RULE, explains in words what the rule does in each step. A RULE with "
        "braces stands for several rules; it explains each of them.",
        epilog=examples(
            "unmask rules",
            "unmask rules 'confidence | swd(5) | eb(0.1)'",
        ),
    )
    option = command.add_argument
    option("rule", nargs="?", metavar="RULE", help="rule, rule with braces, or name of a recipe")
    add_import(command)
    option("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """List every part, or explain the given rule."""
    if arguments.rule is None:
        print(_table_json() if arguments.json else "\n".join(_table()))
    elif arguments.json:
        print(json.dumps(list(_explained(arguments.rule)), indent=2))
    else:
        print("\n\n".join(_as_text(rule) for rule in _explained(arguments.rule)))
    return 0


def _explained(text: str) -> Iterator[dict[str, object]]:
    from unmask.rules.rule import Rule

    for rule in Rule.expand(text):
        yield {"rule": str(rule), "steps": list(rule.explain())}


def _as_text(rule: dict[str, object]) -> str:
    steps = rule["steps"]
    assert isinstance(steps, list)
    lines = [str(rule["rule"]), "After each forward pass:"]
    for number, sentence in enumerate(steps, 1):
        lines.append(
            textwrap.fill(sentence, 96, initial_indent=f"{number:3}. ", subsequent_indent=" " * 5)
        )
    return "\n".join(lines)


def _table() -> Iterator[str]:
    from unmask.rules.recipes import RECIPES
    from unmask.rules.registry import STAGES, kinds

    yield "A rule is parts separated by '|':"
    yield "  [window |] [credit |] score [| modulators] [| candidates] | selection"
    yield "  [| limits] [| revoke]"
    yield "Braces make a sweep: margin | swd({0,1,5}) | eb({0.05,0.1}) stands for six rules."
    yield "Brackets name who published a part; the results in a paper are its authors'."
    for stage in STAGES:
        yield f"\n{STAGE_TITLES[stage]}"
        for kind in kinds(stage):
            yield f"  {kind.usage}"
            yield textwrap.fill(kind.summary, 96, initial_indent=" " * 6, subsequent_indent=" " * 6)
            if kind.formula:
                yield f"      {kind.formula}   [{kind.source}]"
            if kind.note:
                yield textwrap.fill(
                    kind.note, 96, initial_indent=" " * 6, subsequent_indent=" " * 6
                )
    yield "\nRecipes (a name that stands for a rule, with the block and length that belong to it)"
    for recipe in RECIPES.values():
        block = f"block {recipe.block}; " if recipe.block else ""
        length = f"{recipe.length} tokens; " if recipe.length else ""
        yield f"  {recipe.name:<13} {recipe.rule}   ({block}{length}{recipe.note})"


def _table_json() -> str:
    from unmask.rules.recipes import RECIPES
    from unmask.rules.registry import kinds, show

    parts = [
        {
            "name": kind.name,
            "stage": kind.stage,
            "usage": kind.usage,
            "arguments": {a.name: show(a.default) for a in kind.arguments},
            "summary": kind.summary,
            "formula": kind.formula,
            "source": kind.source,
            "note": kind.note,
        }
        for kind in kinds()
    ]
    recipes = [vars(recipe) for recipe in RECIPES.values()]
    return json.dumps({"parts": parts, "recipes": recipes}, indent=2)
