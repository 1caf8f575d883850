"""Interprets a small, safe part of Python by walking its syntax tree.

A program cannot reach a file, the network or this process, run forever or fill the memory. Syntax
that is not listed here is an error, even in code that never runs. The sizes of text, numbers and
lists and the number of steps are limited. All other programs behave as in Python.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterable
from typing import Any

MOST_CHARACTERS, MOST_STEPS, MOST_ITEMS, LARGEST = 2_000, 10_000, 1_000, 10**12

Function = ast.FunctionDef | ast.Lambda
Program = dict[str, Function]
Names = dict[str, Any]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_OF_ITEMS: dict[str, Callable[..., Any]] = {"max": max, "min": min, "sorted": sorted, "sum": sum}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "len": len, **_OF_ITEMS}
_KNOWN = {
    *_BINARY, *_UNARY, *_COMPARE, ast.And, ast.Or,
    ast.Return, ast.Assign, ast.AugAssign, ast.If, ast.For, ast.Pass,
    ast.Constant, ast.Name, ast.Load, ast.Store, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.Call, ast.Subscript, ast.Slice,
    ast.List, ast.ListComp, ast.GeneratorExp, ast.comprehension,
}  # fmt: skip


class ProgramError(Exception):
    """The program is not Python, uses unsupported syntax, or fails."""


class _Return(Exception):  # noqa: N818  (a signal, not an error)
    def __init__(self, value: Any) -> None:
        self.value = value


def parse(text: str) -> Program:
    """The functions of a text by name: `def f(x): ...` or `f = lambda x: ...`."""
    program: Program = {}
    for node in _statements(text):
        match node:
            case ast.FunctionDef(name=name):
                program[name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as function):
                program[name] = function
            case _:
                raise ProgramError(f"{type(node).__name__} is outside a function")
        _check_bound(name)
        _check_function(program[name])
    return program


def call(program: Program, name: str, *arguments: Any) -> Any:
    """Call a function on numbers or lists of numbers; the lists are not changed."""
    if name not in program:
        raise ProgramError(f"no function {name!r}")
    copies = [list(value) if isinstance(value, list) else value for value in arguments]
    try:
        return _Run().call(program[name], copies)
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ProgramError(str(error)) from None


def _statements(text: str) -> list[ast.stmt]:
    if len(text) > MOST_CHARACTERS:
        raise ProgramError(f"the text has more than {MOST_CHARACTERS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parser's warnings about the text
            return ast.parse(text.strip()).body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ProgramError(f"not Python: {error}") from None


def _check_function(function: Function) -> None:
    """Raise unless the arguments are plain and the body has only known nodes."""
    body = function.body if isinstance(function, ast.FunctionDef) else [function.body]
    arguments = function.args.args
    names = [argument.arg for argument in arguments]
    bare = not any(_children(argument) for argument in arguments)
    if _children(function) != [function.args, *body]:
        raise ProgramError("decorators and annotations are not supported")
    if _children(function.args) != arguments or not bare or len(set(names)) < len(names):
        raise ProgramError("only plain arguments are supported")
    for name in names:
        _check_bound(name)
    for part in body:
        for node in ast.walk(part):
            _check(node)


def _children(node: ast.AST) -> list[ast.AST]:
    return list(ast.iter_child_nodes(node))


def _check(node: ast.AST) -> None:
    if type(node) not in _KNOWN:
        raise ProgramError(f"{type(node).__name__} is not supported")
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            _check_bound(name)
        case ast.List(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
            raise ProgramError(f"{type(node).__name__} as a target is not supported")
        case ast.Constant(value=value) if type(value) not in (int, bool, type(None)):
            raise ProgramError(f"the constant {value!r} is not supported")
        case ast.Call(func=function) if not (
            isinstance(function, ast.Name) and function.id in _FUNCTIONS
        ):
            raise ProgramError("only these calls are supported: " + ", ".join(_FUNCTIONS))
        case ast.ListComp(generators=loops) | ast.GeneratorExp(generators=loops):
            if len(loops) > 1 or loops[0].is_async:
                raise ProgramError("a comprehension may have only one loop")


def _check_bound(name: str) -> None:
    """Raise if a name is a built-in function or begins with two underscores."""
    if name in _FUNCTIONS or name.startswith("__"):
        raise ProgramError(f"{name} cannot be assigned")


class _Run:
    """One call of a checked function; counts its steps."""

    def __init__(self) -> None:
        self.steps = 0

    def call(self, function: Function, arguments: list[Any]) -> Any:
        wanted = [argument.arg for argument in function.args.args]
        if len(wanted) != len(arguments):
            raise ProgramError(f"takes {len(wanted)} arguments, got {len(arguments)}")
        names = dict(zip(wanted, arguments, strict=True))
        if isinstance(function, ast.Lambda):
            return self.value(function.body, names)
        try:
            self.run(function.body, names)
        except _Return as result:
            return result.value
        return None

    def run(self, body: list[ast.stmt], names: Names) -> None:
        for node in body:
            self._count()
            match node:
                case ast.Return(value=value):
                    raise _Return(None if value is None else self.value(value, names))
                case ast.Assign(targets=targets, value=value):
                    new = self.value(value, names)
                    for target in targets:
                        _assign(target, new, names)
                case ast.AugAssign(target=ast.Name(id=name), op=sign, value=value):
                    old = _named(name, names)
                    names[name] = _limited(_augmented(sign, old, self.value(value, names)))
                case ast.If(test=test):
                    self.run(node.body if self.value(test, names) else node.orelse, names)
                case ast.For():
                    for item in self._items(node.iter, names):
                        _assign(node.target, item, names)
                        self.run(node.body, names)
                    self.run(node.orelse, names)  # there is no break, so `else` always runs

    def value(self, node: ast.expr, names: Names) -> Any:
        """The value of an expression; raises if it is beyond the limits."""
        self._count()
        return _limited(self._evaluate(node, names))

    def _evaluate(self, node: ast.expr, names: Names) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return _named(name, names)
            case ast.BinOp(left=left, op=sign, right=right):
                return _binary(sign, self.value(left, names), self.value(right, names))
            case ast.UnaryOp(op=op, operand=operand):
                return _UNARY[type(op)](self.value(operand, names))
            case ast.BoolOp():
                return self._joined(node, names)
            case ast.Compare():
                return self._compared(node, names)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.value(body if self.value(test, names) else orelse, names)
            case ast.List(elts=items):
                return _flat(self.value(item, names) for item in items)
            case ast.ListComp():
                return self._comprehended(node, names)
            case ast.Subscript():
                return self._part(node, names)
            case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as items]):
                if name in _OF_ITEMS:
                    return _OF_ITEMS[name](_limited(self._comprehended(items, names)))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return _FUNCTIONS[name](*[self.value(argument, names) for argument in arguments])
        raise ProgramError(f"{type(node).__name__} is not supported")

    def _joined(self, node: ast.BoolOp, names: Names) -> Any:
        value: Any = None
        for part in node.values:
            value = self.value(part, names)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _compared(self, node: ast.Compare, names: Names) -> bool:
        left = self.value(node.left, names)
        for sign, side in zip(node.ops, node.comparators, strict=True):
            right = self.value(side, names)
            if not _COMPARE[type(sign)](left, right):
                return False
            left = right
        return True

    def _comprehended(self, node: ast.ListComp | ast.GeneratorExp, names: Names) -> list[Any]:
        loop, inner = node.generators[0], dict(names)

        def elements() -> Iterable[Any]:
            for item in self._items(loop.iter, names):
                _assign(loop.target, item, inner)
                if all(self.value(test, inner) for test in loop.ifs):
                    yield self.value(node.elt, inner)

        return _flat(elements())

    def _part(self, node: ast.Subscript, names: Names) -> Any:
        whole = self.value(node.value, names)
        if not isinstance(node.slice, ast.Slice):
            return whole[self.value(node.slice, names)]
        ends = (node.slice.lower, node.slice.upper, node.slice.step)
        return whole[slice(*[None if end is None else self.value(end, names) for end in ends])]

    def _items(self, node: ast.expr, names: Names) -> list[Any]:
        items = self.value(node, names)
        if not isinstance(items, list):
            raise ProgramError(f"{type(items).__name__} is not a list")
        return items

    def _count(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise ProgramError(f"more than {MOST_STEPS} steps")


def _named(name: str, names: Names) -> Any:
    if name not in names:
        raise ProgramError(f"name {name!r} is not defined")
    return names[name]


def _assign(target: ast.expr, value: Any, names: Names) -> None:
    assert isinstance(target, ast.Name)  # checked before
    names[target.id] = value


def _binary(sign: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(sign, ast.Mult) and (isinstance(left, list) or isinstance(right, list)):
        raise ProgramError("multiplying a list is not supported")
    return _BINARY[type(sign)](left, right)


def _augmented(sign: ast.operator, old: Any, right: Any) -> Any:
    """The value of `old += right`; a list is changed in place, as in Python."""
    if isinstance(old, list) and isinstance(sign, ast.Add):
        old += right
        return old
    return _binary(sign, old, right)


def _flat(values: Iterable[Any]) -> list[Any]:
    """A list of numbers. Nested lists are an error: comparing them could take forever."""
    items = list(values)
    if any(isinstance(item, list) for item in items):
        raise ProgramError("a list in a list is not supported")
    return items


def _limited(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ProgramError(f"a number beyond {LARGEST}")
    if isinstance(value, list) and len(value) > MOST_ITEMS:
        raise ProgramError(f"a list of more than {MOST_ITEMS}")
    return value
