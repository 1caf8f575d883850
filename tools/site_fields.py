"""The Python reference of `make docs` lists the fields of a class and the comments beside them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import griffe


class FieldComments(griffe.Extension):
    """Adds a table of fields to the docstring of a class that does not have one."""

    def on_class_members(self, *, node: Any, cls: griffe.Class, **_: Any) -> None:
        """Called by griffe when it has read a class."""
        if isinstance(node, ast.ClassDef) and cls.docstring and "Args:" not in cls.docstring.value:
            source = cls.module.filepath.read_text(encoding="utf-8").splitlines()
            rows = [f"    {name}: {words}" for name, words in fields(node, source)]
            if rows:
                cls.docstring.value += "\n\nAttributes:\n" + "\n".join(rows)


def fields(node: ast.ClassDef, source: list[str]) -> Iterator[tuple[str, str]]:
    """The public fields that are explained, each with its words."""
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            words = option_help(field.value) or comment(field, source)
            if words and not field.target.id.startswith("_"):
                yield field.target.id, words


def option_help(value: ast.expr | None) -> str:
    """The help of a decoding option: `_option(kind, help, default, ...)`."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "_option" and value.args[2:]:
        _, words, default, *_ = (getattr(each, "value", "") for each in value.args)
        return f"{words} (default: {default})"
    return ""


def comment(field: ast.AnnAssign, source: list[str]) -> str:
    """The comment behind a field, else the lines of comment above it."""
    lines = source[field.lineno - 1 : field.end_lineno]
    behind = [line.partition("  # ")[2] for line in lines if "  # " in line]
    above: list[str] = []
    for line in reversed(source[: field.lineno - 1]):
        if not line.lstrip().startswith("# "):
            break
        above.insert(0, line.lstrip()[2:])
    return " ".join(behind or above)
