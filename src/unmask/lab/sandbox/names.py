"""Which names of a program its tests use."""

from __future__ import annotations

import ast


def used_names(tests: str, reference: str) -> tuple[str, ...]:
    """What `reference` defines at its top level and `tests` mention, in the tests' order.

    Take a benchmark's own solution as the reference, never a model's: it may call its function
    `sum`, and only then do the tests mean that one.
    """
    defined = set[str]()
    for statement in ast.parse(reference).body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(statement.name)
    mentioned = (node.id for node in ast.walk(ast.parse(tests)) if isinstance(node, ast.Name))
    return tuple(dict.fromkeys(name for name in mentioned if name in defined))
