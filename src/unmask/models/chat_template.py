"""Renders a chat template, a program that came with a checkpoint: in a sandbox, within limits."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from threading import local
from types import FrameType
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.filters import do_indent
from jinja2.meta import find_undeclared_variables
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from unmask.errors import ModelError, RequestError, UnmaskError

LIMIT = 5.0  # seconds of processor time for one chat
LONGEST = 1 << 24  # characters or parts of anything that a template makes
MOST = 1 << 28  # of all that it makes for one chat
_INDENT = 16  # of JSON
_GROWING_FILTERS = (  # no chat needs them
    "batch", "center", "format", "pprint", "slice", "sum", "urlize", "wordwrap", "xmlattr",
)  # fmt: skip
_GROWING_METHODS = ("center", "expandtabs", "format_map", "ljust", "rjust", "translate", "zfill")


class ChatTemplate:
    """A compiled template and the names that it reads; ModelError if it is not a template."""

    def __init__(self, source: str, name: str) -> None:
        environment = _Environment()
        try:
            self._compiled = environment.from_string(source)
            self.names = find_undeclared_variables(environment.parse(source))
        except (TemplateError, RecursionError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ModelError(f"{name}: broken chat template: {reason}") from None

    def render(self, words: Mapping[str, Any]) -> str:
        """The text of a chat; `words` are the template's variables."""
        before, _made.size = sys.gettrace(), 0
        sys.settrace(_clock(time.thread_time() + LIMIT))
        try:
            return self._compiled.render(words)
        except UnmaskError:
            raise
        except Exception as error:  # a template may raise anything
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise RequestError(f"the chat template fails on these messages: {reason}") from None
        finally:
            sys.settrace(before)


def _clock(end: float) -> Any:
    """A trace function that ends a template, at any of its lines, once its time is over."""

    def look(frame: FrameType, event: str, argument: Any) -> Any:
        if time.thread_time() > end:
            raise TimeoutError(f"it takes more than {LIMIT:g} s")
        return look

    return look


class _Generator(CodeGenerator):
    """Joins texts by the environment, which checks their size."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802  (jinja2's name)
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _Generation(Extension):
    """`{% generation %}`, by which transformers finds the tokens to train on: what it holds."""

    tags = {"generation"}  # noqa: RUF012  (a set in jinja2 too)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, in which every operation that can grow a value checks the size first."""

    code_generator_class = _Generator
    intercepted_binops = frozenset(("*", "**", "+", "%"))

    def __init__(self) -> None:
        tags = [LoopControlExtension, _Generation]  # as transformers has them
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=tags)
        self.globals["raise_exception"] = _fail
        del self.globals["lipsum"]
        for name in _GROWING_FILTERS:
            del self.filters[name]
        self.filters |= {"tojson": _to_json, "join": _join, "replace": _replace, "indent": _indent}

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        growing = isinstance(obj, str | bytes) and attr in _GROWING_METHODS
        return not growing and super().is_safe_attribute(obj, attr, value)

    def call(self, context: Any, called: Any, /, *values: Any, **named: Any) -> Any:
        method = getattr(called, "__wrapped__", called)  # the sandbox wraps str.format
        text, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if isinstance(text, str) and name == "join":
            return _join(values[0], text)
        if isinstance(text, str) and name == "replace":
            return _replace(text, *values, **named)
        if isinstance(text, str) and name == "format" and ":" in text:
            raise ValueError("a text is formatted with a width")
        return super().call(context, called, *values, **named)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        sizes = [_size(left), _size(right)]
        if operator == "*" and max(sizes) > 0:
            numbers = [each for each in (left, right) if isinstance(each, int)]
            _check(max(sizes) * max(numbers, default=1))
        elif operator == "**":
            _check(abs(left) if isinstance(left, int) else 0)
            _check(right * 64 if isinstance(right, int) else 0)
        elif operator == "%" and isinstance(left, str):
            raise ValueError("% of a text is not supported")
        else:
            _check(sum(sizes))
            _check(16 * sum(each.bit_length() for each in (left, right) if isinstance(each, int)))
        return super().call_binop(context, operator, left, right)

    def joined(self, parts: Iterable[Any]) -> str:
        """The texts of some values, one after another."""
        return _join(parts)

    def concat(self, pieces: Iterable[str]) -> str:
        """What a template or a macro of it prints."""
        return _join(pieces)


def _join(values: Iterable[Any], d: str = "", attribute: str | None = None) -> str:
    """The texts of some values with `d` between them."""
    texts, size = list[str](), 0
    for value in values:
        texts.append(str(value if attribute is None else value[attribute]))
        size += len(texts[-1]) + len(d)
        if size > LONGEST:
            break
    _check(size)
    return d.join(texts)


def _replace(value: Any, old: str, new: str, count: int = -1) -> str:
    text = str(value)
    number = text.count(old) if count < 0 else min(text.count(old), count)
    _check(len(text) + number * len(new))
    return text.replace(old, new, count)


def _indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    size = width if isinstance(width, int) else len(width)
    _check(len(text) + (text.count("\n") + 1) * size)
    return str(do_indent(text, width, first, blank))


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple | dict) else 0


class _Made(local):
    """The sizes of all that the template has made so far, in this thread."""

    size = 0


_made = _Made()


def _check(size: int) -> None:
    """Raise if a template may not make something of this size."""
    _made.size += size
    if size > LONGEST:
        raise ValueError(f"it makes something larger than {LONGEST}")
    if _made.size > MOST:
        raise ValueError(f"all that it makes is larger than {MOST}")


def _fail(message: Any) -> None:
    reason = " ".join(str(message).split())[:200]
    raise RequestError(f"the chat template rejects the messages: {reason}")


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """A value as JSON, with the options that templates of transformers use."""
    if indent is not None and not (isinstance(indent, int) and 0 <= indent <= _INDENT):
        raise ValueError(f"indent must be 0 to {_INDENT}")
    return json.dumps(
        value,
        ensure_ascii=bool(ensure_ascii),
        indent=indent,
        separators=separators,
        sort_keys=bool(sort_keys),
    )
