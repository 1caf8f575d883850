"""Writes what is made from the program: docs/cli.md, docs/rules.md, and the figures of
docs/embedded.md and docs/benchmarks.md.

python tools/pages.py
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks import benchmarks
from figures import measured

DOCS = Path(__file__).parents[1] / "docs"


def cli_page() -> Iterator[str]:
    os.environ["COLUMNS"] = "96"
    from unmask.cli import COMMANDS, parser

    yield "# The command line\n"
    yield "Results go to stdout, all else to stderr. A wrong call is one line and exit code 2."
    yield "This page is made by `python tools/pages.py` from what `--help` says.\n"
    top = parser()
    yield f"```\n{top.format_help().strip()}\n```"
    commands = next(action for action in top._actions if action.dest == "command").choices
    for name in COMMANDS:
        yield f"\n## unmask {name}\n"
        yield f"```\n{commands[name].format_help().strip()}\n```"
        for action in commands[name]._actions:
            if isinstance(action, argparse._SubParsersAction):
                for target, command in action.choices.items():
                    yield f"\n### unmask {name} {target}\n"
                    yield f"```\n{command.format_help().strip()}\n```"


def rules_page() -> Iterator[str]:
    from unmask.cli.rules import STAGE_TITLES
    from unmask.rules.recipes import RECIPES
    from unmask.rules.registry import STAGES, kinds

    yield "# Rules\n"
    yield "A rule is parts separated by bars, in this order:\n"
    yield "```\n[credit |] score [| modulators] | selection [| limits] [| revoke]\n```\n"
    yield "A part is a name, or `name(value, key=value)`. `Rule.parse` and `str` are inverse."
    yield "Braces make a sweep: `margin | swd({0,1,5}) | eb({0.05,0.1})` stands for six rules, and"
    yield "`Rule.expand` gives them in order. `unmask rules RULE` explains one in words."
    yield "This page is made by `python tools/pages.py` from the table of parts.\n"
    for stage in STAGES:
        yield f"## {STAGE_TITLES[stage]}\n"
        for kind in kinds(stage):
            yield f"### {kind.name}\n"
            yield f"`{kind.usage}`\n"
            yield f"{kind.summary}\n"
            yield f"`{kind.formula}` — {kind.source}\n"
            yield from _details(kind.target.__doc__ or "")
    yield "## Recipes\n"
    yield "A name that stands for a rule and the settings it is usually run with.\n"
    yield "| name | rule | window | note |\n|---|---|---|---|"
    for recipe in RECIPES.values():
        window = f"block {recipe.block}" if recipe.block else "full"
        rule = recipe.rule.replace("|", "\\|")
        yield f"| {recipe.name} | `{rule}` | {window} | {recipe.note} |"


def _details(docstring: str) -> Iterator[str]:
    """What stands behind the first line, with its line breaks."""
    import inspect

    _, _, rest = inspect.cleandoc(docstring).partition("\n")
    if rest.strip():
        yield f"```\n{rest.strip()}\n```\n"


if __name__ == "__main__":
    (DOCS / "cli.md").write_text("\n".join(cli_page()) + "\n")
    (DOCS / "rules.md").write_text("\n".join(rules_page()) + "\n")
    for name, made in (("embedded", measured), ("benchmarks", benchmarks)):
        page, results = DOCS / f"{name}.md", DOCS / f"{name}.json"
        if results.is_file():
            page.write_text(made(page.read_text(), results))
