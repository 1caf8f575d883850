"""Renders a chat template, a program that came with a checkpoint: in a sandbox, within limits."""

from __future__ import annotations

import json
import sys
import time
from types import FrameType
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import TemplateError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from unmask.errors import ModelError, RequestError, UnmaskError

LIMIT = 5.0  # seconds of processor time for one chat
LONGEST = 1 << 24  # characters or parts of anything that a template makes
_INDENT = 16  # of JSON


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

    def render(self, **words: Any) -> str:
        """The text of a chat."""
        before = sys.gettrace()
        sys.settrace(_clock(time.thread_time() + LIMIT))
        try:
            return self._compiled.render(**words)
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


class _Environment(ImmutableSandboxedEnvironment):
    code_generator_class = _Generator
    intercepted_binops = frozenset(("*", "**", "+", "%"))

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True)
        self.globals["raise_exception"] = _fail
        self.filters["tojson"] = _to_json

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
        return super().call_binop(context, operator, left, right)

    def joined(self, parts: tuple[Any, ...]) -> str:
        """The texts of some values, one after another."""
        texts = [str(part) for part in parts]
        _check(sum(map(len, texts)))
        return "".join(texts)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple | dict) else 0


def _check(size: int) -> None:
    if size > LONGEST:
        raise ValueError(f"it makes something larger than {LONGEST}")


def _fail(message: str) -> None:
    raise RequestError(f"the chat template rejects the messages: {message}")


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
