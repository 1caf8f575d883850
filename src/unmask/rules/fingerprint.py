"""The fingerprint of a user's part: its code and what it uses of its own file, nothing else."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from unmask.rules.registry import kind_of
from unmask.rules.rule import Rule

_DOCUMENTED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


def sources_of(rule: Rule) -> str:
    """A fingerprint of the code of a rule's own parts; empty if unmask defines them all.

    It ignores comments, docstrings and formatting, and covers each part with the functions,
    classes and constants of its file that it uses. It does not cover the modules that the file
    imports, nor the rest of the file.
    """
    sources = {_source(kind_of(part).target) for part in rule.parts} - {""}
    return _sha(sorted(sources)) if sources else ""


def origins_of(rule: Rule) -> dict[str, str]:
    """The file, or the module of a package, that defines each of a rule's own parts, by its name.

    A file is named without its folder.
    """
    kinds = [kind_of(part) for part in rule.parts]
    return {kind.name: _origin(kind.target) for kind in kinds if is_own(kind.target)}


def _origin(target: Any) -> str:
    module: str = target.__module__
    return module if "." in module or module == "__main__" else f"{module}.py"


def is_own(target: Any) -> bool:
    """Whether a part is the user's: unmask does not define it."""
    return bool(target.__module__.partition(".")[0] != "unmask")


def _source(target: Any) -> str:
    if not is_own(target):
        return ""
    try:
        text = Path(inspect.getsourcefile(target) or "").read_text(encoding="utf-8")
    except (OSError, TypeError, UnicodeDecodeError):  # typed at a prompt, or compiled
        return _sha([target.__module__, target.__qualname__])
    return code_of(text, target.__qualname__)


@cache
def code_of(text: str, name: str) -> str:
    """The fingerprint of one function or class of a file; of the whole file if it is not there."""
    try:
        file = ast.parse(text)
    except (SyntaxError, ValueError):  # edited since it was imported
        return _sha(text)
    statements = [_Statement.of(each) for each in _apart(file.body)]
    used = _used({name}, statements) if any(name in each.binds for each in statements) else None
    return _sha([_shape(each.node) for each in (statements if used is None else used)])


@dataclass(frozen=True)
class _Statement:
    """A statement of a file: the names that it reads, and those that it gives a value."""

    node: ast.stmt
    reads: frozenset[str]
    binds: frozenset[str]

    @classmethod
    def of(cls, node: ast.stmt) -> _Statement:
        tables = [symtable.symtable(ast.unparse(node), "part", "exec")]
        top = tables[0].get_symbols()
        reads = {each.get_name() for each in top if each.is_referenced()}
        for table in tables:
            tables += table.get_children()
            reads |= {each.get_name() for each in table.get_symbols() if each.is_global()}
        binds = {each.get_name() for each in top if each.is_assigned() or each.is_imported()}
        return cls(node, frozenset(reads), frozenset(binds | set(_changed(node))))


def _apart(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a file, with one import for each imported name."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (ast.Import([each]) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            yield from (ast.ImportFrom(node.module, [each], node.level) for each in node.names)
        else:
            yield node


def _changed(node: ast.stmt) -> Iterator[str]:
    """The names whose value a statement changes in place: `TABLE[1] = 2`, `TABLE.update(...)`."""
    places: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        places = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        places = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        places = [node.value.func]
    for place in places:
        while isinstance(place, ast.Attribute | ast.Subscript):
            place = place.value
            if isinstance(place, ast.Name):
                yield place.id


def _used(names: set[str], statements: list[_Statement]) -> list[_Statement]:
    """The statements that these names depend on, in the order of the file.

    A call such as `unmask.score(other)` does not change the module that is called.
    """
    imports = (ast.Import, ast.ImportFrom)
    modules = {name for each in statements if isinstance(each.node, imports) for name in each.binds}
    used: list[_Statement] = []
    while True:
        more = [
            each
            for each in statements
            if each not in used
            and (each.binds if isinstance(each.node, imports) else each.binds - modules) & names
        ]
        if not more:
            return [each for each in statements if each in used]
        used += more
        names = names.union(*(each.reads for each in more))


def _shape(node: Any) -> Any:
    """A piece of code as lists for JSON, the same in every version of Python.

    Docstrings and empty fields are left out.
    """
    if isinstance(node, list):
        return [_shape(each) for each in node]
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if not isinstance(node, ast.AST):
        return None if node is None else str(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = fields["body"][1:]
    kept = {name: _shape(value) for name, value in fields.items() if value not in (None, [])}
    return [type(node).__name__, kept]


def _sha(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
