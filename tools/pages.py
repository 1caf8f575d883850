"""Writes the generated docs: cli.md, rules.md, embedded-tables.md and benchmarks-tables.md.

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
    yield "Results go to stdout, messages to stderr. Wrong calls print one line, with exit code 2."
    yield "`python tools/pages.py` makes this page from the output of `--help`.\n"
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
    order = "score [| modulators] [| candidates] | selection [| limits] [| revoke]"
    yield f"```\n[window |] [credit |] {order}\n```\n"
    yield "A part is a name, or `name(value, key=value)`. `Rule.parse` and `str` are inverse."
    yield "Braces make a sweep: `margin | swd({0,1,5}) | eb({0.05,0.1})` stands for six rules, and"
    yield "`Rule.expand` gives them in order. `unmask rules RULE` explains one in words."
    yield "A source names who published a part. The results in a paper are its authors'; what this"
    yield "project measured of a part stands in [embedded.md](embedded.md), for the embedded model."
    yield "`python tools/pages.py` makes this page from the table of parts.\n"
    for stage in STAGES:
        yield f"## {STAGE_TITLES[stage]}\n"
        for kind in kinds(stage):
            yield f"### {kind.name}\n"
            yield f"`{kind.usage}`\n"
            yield f"{kind.summary}\n"
            yield f"`{kind.formula}` — {kind.source}\n"
            if kind.details:
                yield f"```\n{kind.details}\n```\n"
            if kind.note:
                yield f"{kind.note}\n"
    yield "## Recipes\n"
    yield "A recipe names a rule, and the block and length that belong to it. Where it has none,"
    yield "the task's preset has one; without a task, it is 256 tokens in the full window.\n"
    yield "| name | rule | block | length | note |\n|---|---|---|---|---|"
    for recipe in RECIPES.values():
        rule = recipe.rule.replace("|", "\\|")
        block, length = recipe.block or "", recipe.length or ""
        yield f"| {recipe.name} | `{rule}` | {block} | {length} | {recipe.note} |"


if __name__ == "__main__":
    (DOCS / "cli.md").write_text("\n".join(cli_page()) + "\n")
    (DOCS / "rules.md").write_text("\n".join(rules_page()) + "\n")
    for name, made in (("embedded", measured), ("benchmarks", benchmarks)):
        page, results = DOCS / f"{name}-tables.md", DOCS / f"{name}.json"
        if results.is_file():
            page.write_text(made(page.read_text(), results))
