"""`unmask rules`: lists every part of the notation, or explains one rule."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from unmask.cli.options import add_import, examples

if TYPE_CHECKING:
    from unmask.rules.recipes import Recipe
    from unmask.rules.registry import Kind

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
        "named recipes. With RULE, explains in words what the rule does in each step, and who "
        "published its parts. A RULE with braces stands for several rules; it explains each of "
        "them. The name of a part alone prints that part.",
        epilog=examples(
            "unmask rules",
            "unmask rules daedal",
            "unmask rules 'confidence | swd(5) | eb(0.1)'",
        ),
    )
    option = command.add_argument
    option("rule", nargs="?", metavar="RULE", help="rule, rule with braces, recipe, or part")
    add_import(command)
    option("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """List every part, or explain the given rule."""
    if arguments.rule is None:
        print(_table_json() if arguments.json else "\n".join(_table()))
        return 0
    if part := _part_alone(arguments.rule):
        text = [*_entry(part), textwrap.indent(part.details, " " * 6)]
        print(json.dumps(_record(part), indent=2) if arguments.json else "\n".join(text).rstrip())
        return 0
    rules = list(_explained(arguments.rule))
    print(json.dumps(rules, indent=2) if arguments.json else "\n\n".join(map(_as_text, rules)))
    return 0


def _part_alone(text: str) -> Kind | None:
    """The part of that name, unless it is the name of a recipe."""
    from unmask.rules.recipes import RECIPES
    from unmask.rules.registry import kinds

    name, known = text.strip(), {kind.name: kind for kind in kinds()}
    return None if name in RECIPES else known.get(name)


def _explained(text: str) -> Iterator[dict[str, Any]]:
    from unmask.rules.recipes import RECIPES
    from unmask.rules.registry import kind_of
    from unmask.rules.rule import Rule

    recipe = RECIPES.get(text.strip())
    for rule in Rule.expand(text):
        made = map(kind_of, rule.parts)
        sources = {kind.name: f"{kind.source}. {kind.note}".strip() for kind in made if kind.source}
        about = {"recipe": recipe.name, "about": _about(recipe)} if recipe else {}
        yield {"rule": str(rule), **about, "steps": list(rule.explain()), "sources": sources}


def _as_text(rule: dict[str, Any]) -> str:
    lines = [rule["rule"]]
    if "recipe" in rule:
        lines.append(f"The recipe {rule['recipe']}: {rule['about']}.")
    lines.append("After each forward pass:")
    lines += [_filled(text, f"{number:3}. ") for number, text in enumerate(rule["steps"], 1)]
    lines += ["Sources:"] if rule["sources"] else []
    lines += [_filled(f"{name}: {source}", " " * 5) for name, source in rule["sources"].items()]
    return "\n".join(lines)


def _filled(text: str, first: str) -> str:
    """A text in lines, all as deep as the first one begins."""
    return textwrap.fill(text, 96, initial_indent=first, subsequent_indent=" " * len(first))


def _about(recipe: Recipe) -> str:
    """What belongs to a recipe beside its rule."""
    block = f"block {recipe.block}; " if recipe.block else ""
    number = f"{recipe.length} tokens; " if isinstance(recipe.length, int) else "length auto; "
    return f"{block}{number if recipe.length else ''}{recipe.note}"


def _entry(kind: Kind) -> Iterator[str]:
    """A part as the table shows it."""
    yield f"  {kind.usage}"
    yield _filled(kind.summary, " " * 6)
    if kind.formula:
        yield f"      {kind.formula}   [{kind.source}]"
    if kind.note:
        yield _filled(kind.note, " " * 6)


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
            yield from _entry(kind)
    yield "\nRecipes (a name that stands for a rule, with the block and length that belong to it)"
    for recipe in RECIPES.values():
        yield f"  {recipe.name:<13} {recipe.rule}   ({_about(recipe)})"


def _record(kind: Kind) -> dict[str, Any]:
    from unmask.rules.registry import show

    return {
        "name": kind.name,
        "stage": kind.stage,
        "usage": kind.usage,
        "arguments": {a.name: show(a.default) for a in kind.arguments},
        "summary": kind.summary,
        "formula": kind.formula,
        "source": kind.source,
        "note": kind.note,
    }


def _table_json() -> str:
    from unmask.rules.recipes import RECIPES
    from unmask.rules.registry import kinds

    recipes = [vars(recipe) for recipe in RECIPES.values()]
    return json.dumps({"parts": list(map(_record, kinds())), "recipes": recipes}, indent=2)
