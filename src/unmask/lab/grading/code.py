"""Extract the Python code of an answer."""

from __future__ import annotations

import ast
import builtins
import re
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable

LIMIT = 5.0  # seconds of processor time to find the code in one answer
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
_BLOCK = re.compile(r"\[BEGIN\](.*?)(?:\[DONE\]|\Z)", re.DOTALL)
_BEGINNING = re.compile(
    r"^(?:(?:async\s+)?def\s+\w+\s*\(|class\s+\w+|import\s+\w|from\s+[\w.]+\s+import\b|@\w)", re.M
)
_BUILTINS = frozenset(dir(builtins))
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


def solution(text: str, entries: Iterable[str]) -> str:
    """The definitions in an answer, without calls and tests."""
    return kept(parseable(extracted(text)), entries)


def completion(text: str, prompt: str, entry: str) -> str:
    """The code of an answer to a prompt that is code and ends in the function to write.

    The prompt's imports and helpers always stay. Where the answer does not define the function
    again, it is taken for the body.
    """
    code = parseable(extracted(text))
    if entry in defined(code):
        return kept(f"{prompt}\n    pass\n\n{code}", [entry])
    fence = _FENCE.search(text)
    body = fence[1] if fence else text
    return kept(_completed(prompt, body, entry), [entry])


def extracted(text: str) -> str:
    """The first fence, closed or not; else a [BEGIN] block; else from the first definition on.

    A text that is Python from its first line to its last is taken whole.
    """
    text = text.replace("\r\n", "\n")
    if fence := _FENCE.search(text):
        return textwrap.dedent(fence[1])
    if block := _BLOCK.search(text):
        return block[1].strip().removeprefix("'").removesuffix("'")
    start = _BEGINNING.search(text)
    if start is None:
        return ""
    return text if parsed(text) is not None else text[start.start() :]


def parseable(code: str) -> str:
    """The longest beginning of the lines that parses as Python.

    Raises TimeoutError after `LIMIT` seconds of this thread's processor time.
    """
    lines, end = code.splitlines(), len(code.splitlines())
    late = deadline()
    while end > 0:
        prefix = "\n".join(lines[:end])
        tree, wrong_line = _attempted(prefix)
        if tree is not None:
            return prefix
        late()
        end = min(end - 1, wrong_line)  # no beginning that goes beyond that line parses
    return ""


def deadline() -> Callable[[], None]:
    """A function that raises TimeoutError once `LIMIT` seconds of processor time have passed."""
    end = time.thread_time() + LIMIT

    def check() -> None:
        if time.thread_time() > end:
            raise TimeoutError(f"the code takes more than {LIMIT} s to read")

    return check


def kept(code: str, entries: Iterable[str]) -> str:
    """Imports and definitions, and the assignments and guards that they need; no calls or tests."""
    tree = parsed(code)
    if tree is None:
        return ""
    needed = set(entries)
    chosen: set[ast.stmt] = set()
    while new := [node for node in tree.body if node not in chosen and _needed(node, needed)]:
        chosen.update(new)
        needed |= {name for node in new for name in _loaded(node)}
    nodes = [node for node in tree.body if node in chosen]
    nodes.sort(key=lambda node: getattr(node, "module", None) != "__future__")
    return "\n\n".join(_source(code, node) for node in nodes)


def defined(code: str) -> set[str]:
    """The names that a module binds."""
    tree = parsed(code)
    return set() if tree is None else {name for node in tree.body for name in _bound(node)}


def free_names(code: str) -> list[str]:
    """Names that a module reads but does not bind, without builtins, in order."""
    tree = parsed(code)
    bound = {name for node in ast.walk(tree) for name in _bound(node)} if tree else set()
    return [name for name in loaded_names(code) if name not in bound | _BUILTINS]


def imports_for(code: str, given: Iterable[str] = ()) -> str:
    """Imports of the standard modules that the code uses."""
    free = [name for name in free_names(code) if name not in set(given)]
    return "".join(f"import {name}\n" for name in free if name in sys.stdlib_module_names)


def loaded_names(code: str) -> list[str]:
    """All names that a module reads, in order."""
    tree = parsed(code)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)] if tree else []
    names.sort(key=lambda name: (name.lineno, name.col_offset))
    return list(dict.fromkeys(name.id for name in names if isinstance(name.ctx, ast.Load)))


def parsed(code: str) -> ast.Module | None:
    """The syntax tree of a source, or None if it is not Python."""
    return _attempted(code)[0]


def _attempted(code: str) -> tuple[ast.Module | None, int]:
    """The syntax tree, or None with the number of the line at which the parser gives up."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the parser
            return ast.parse(code), 0
    except SyntaxError as error:
        return None, error.lineno or sys.maxsize
    except (ValueError, MemoryError, RecursionError):
        return None, sys.maxsize


def _needed(node: ast.stmt, needed: set[str]) -> bool:
    if isinstance(node, (*_DEFINITIONS, *_IMPORTS)):
        return True
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return bool(needed & set(_bound(node)))
    if isinstance(node, ast.Try | ast.If):  # such as an import that may fail
        branches, parts = _inside(node)
        return not any(map(_is_main, branches)) and all(
            isinstance(part, ast.Pass) or _needed(part, needed) for part in parts
        )
    return False


def _source(code: str, node: ast.stmt) -> str:
    """The source of a statement with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    if not decorators:
        return ast.get_source_segment(code, node) or ""
    first = min(decorator.lineno for decorator in decorators)
    return "\n".join(code.split("\n")[first - 1 : node.end_lineno])


def _is_main(node: ast.Try | ast.If) -> bool:
    return isinstance(node, ast.If) and "__name__" in _loaded(node.test)


def _statements(node: ast.Try | ast.If) -> list[ast.stmt]:
    if isinstance(node, ast.If):
        return [*node.body, *node.orelse]
    handled = [child for handler in node.handlers for child in handler.body]
    return [*node.body, *handled, *node.orelse, *node.finalbody]


def _inside(node: ast.Try | ast.If) -> tuple[list[ast.Try | ast.If], list[ast.stmt]]:
    """A branch with all branches in it, and the other statements in them.

    Not recursive: a chain of some hundred `elif`s is as many branches inside each other.
    """
    branches: list[ast.Try | ast.If] = [node]
    parts: list[ast.stmt] = []
    for branch in branches:  # grows on the way
        for part in _statements(branch):
            if isinstance(part, ast.Try | ast.If):
                branches.append(part)
            else:
                parts.append(part)
    return branches, parts


def _bound(node: ast.AST) -> list[str]:
    """The names that a statement, or any node, binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [(alias.asname or alias.name).split(".")[0] for alias in names]
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.arg(arg=name):
            return [name]
        case ast.Try() | ast.If():
            return [name for child in _inside(node)[1] for name in _bound(child)]
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            stores = (child for child in ast.walk(node) if isinstance(child, ast.Name))
            return [child.id for child in stores if isinstance(child.ctx, ast.Store)]
    return []


def _loaded(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def _completed(prompt: str, body: str, entry: str) -> str:
    """Prompt and body, indented so that most of the body belongs to the function."""
    prompt, body = prompt.rstrip("\n"), body.replace("\r\n", "\n").strip("\n")
    shapes = [
        body,
        "    " + body.lstrip(),
        textwrap.indent(textwrap.dedent(body), "    "),
        "    pass",
    ]
    programs = [parseable(f"{prompt}\n{shape}\n") for shape in shapes]
    return max(programs, key=lambda program: _last_line(program, entry))


def _last_line(program: str, entry: str) -> int:
    tree = parsed(program)
    functions = [node for node in tree.body if entry in _bound(node)] if tree else []
    return (functions[-1].end_lineno or 0) if functions else 0
