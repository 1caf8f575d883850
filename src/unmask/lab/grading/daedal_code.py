"""Extract code exactly as DAEDAL does, for `acc_compat`."""

from __future__ import annotations

import ast
import re
from itertools import accumulate

from unmask.lab.grading.code import deadline, parsed

_MOST_LINES = 100
_FENCE = re.compile(r"```python\n(.*?)```", re.DOTALL)
_DEF = re.compile(r"^\s*def\s+([a-zA-Z_]\w*)", re.MULTILINE)
_Named = ast.FunctionDef | ast.ClassDef | ast.Assign


def humaneval_code(text: str, prompt: str, entry: str) -> str:
    """Prompt and first Python fence, or all of the text; functions without a return are dropped."""
    code = text.split("```python\n", 1)[-1].split("```")[0]
    return sanitized(f"{prompt}\n{code}", entry, drop_without_return=True)


def mbpp_code(text: str) -> str:
    """The first closed Python fence; its first function counts as the one that is asked for."""
    fence = _FENCE.search(text)
    code = fence[1].strip() if fence else ""
    first = _DEF.search(code)
    return sanitized(code, first[1], drop_without_return=False) if first else ""


def sanitized(text: str, entry: str, drop_without_return: bool) -> str:
    """Imports, and the definitions that the entry point reaches, of the longest run that parses."""
    text = text.replace("\t", "    ").replace("\r\n", "\n").replace("\r", "\n").strip()
    tree = parsed(longest_run(text))
    imports: list[ast.stmt] = []
    definitions: dict[str, _Named] = {}
    for node in tree.body if tree else []:
        match node:
            case ast.Import() | ast.ImportFrom():
                imports.append(node)
            case ast.FunctionDef(name=name):
                if not drop_without_return or _returns(node):
                    definitions[name] = node
            case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name), *_]):
                definitions[name] = node
    everything = not drop_without_return and entry not in definitions
    wanted = set(definitions) if everything else _reachable(entry, definitions)
    chosen = [node for name, node in definitions.items() if name in wanted]
    try:
        return "\n".join(ast.unparse(node) for node in [*imports, *chosen])
    except (RecursionError, ValueError):  # too deep, or an f-string it cannot write
        return ""


def longest_run(text: str) -> str:
    """The run with the most non-blank lines among the first 100 lines; the first such run."""
    lines = text.splitlines()[:_MOST_LINES]
    full = [0, *accumulate(bool(line.strip()) for line in lines)]
    runs = [(start, end) for end in range(1, len(lines) + 1) for start in range(end)]
    runs.sort(key=lambda run: (full[run[0]] - full[run[1]], run))
    late = deadline()
    for start, end in runs:
        late()
        run = "\n".join(lines[start:end])
        if full[end] > full[start] and parsed(run) is not None:
            return run
    return ""


def _returns(node: ast.AST) -> bool:
    return any(isinstance(child, ast.Return) for child in ast.walk(node))


def _reachable(entry: str, definitions: dict[str, _Named]) -> set[str]:
    reached: set[str] = set()
    waiting = {entry}
    while waiting:
        name = waiting.pop()
        reached.add(name)
        node = definitions.get(name)
        waiting |= (_names(node) if node is not None else set()) - reached
    return reached


def _names(node: ast.AST) -> set[str]:
    """Names below a node, without those before a dot."""
    names: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name):
            names.add(child.id)
        elif not isinstance(child, ast.Attribute):
            names |= _names(child)
    return names
