"""Values that cross between judge and candidate: tagged JSON of plain types, nothing else.

Lists, dicts and sets are numbered in the order in which both sides meet them, so an argument that
was changed in place, or handed back, is the same object again on the other side. Subclasses cross
as their plain base; anything unknown crosses as a handle to where it lives.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator

TYPE_CHECKING = False  # `typing` would double the time that an interpreter takes to start
if TYPE_CHECKING:
    from typing import Any

SMALL = 1 << 63  # whole numbers beyond it cross as hexadecimal, which has no limit of digits
TYPES = {name: kind for name, kind in vars(builtins).items() if isinstance(kind, type)}
EXACT = {"Fraction": "fractions", "Decimal": "decimal"}  # numbers that cross as their text


class WireWriter:
    """Turns values into JSON data; `shared` gathers the containers it meets, in order."""

    def __init__(self, shared: list[Any], refer: Callable[[object], object]) -> None:
        self.shared = shared
        self.refer = refer  # the data that stands for an unknown object
        self.numbers = {id(value): number for number, value in enumerate(shared)}

    def encode(self, value: Any) -> Any:
        """The data of one value."""
        kind: type = type(value)
        if value is None or kind is bool or kind is str or kind is float:
            return value
        write = _WRITERS.get(kind) or _writer_of_a_base(value)
        if write:
            return write(self, value)
        if EXACT.get(kind.__name__) == kind.__module__:
            return {kind.__name__: str(value)}
        if isinstance(value, type) and TYPES.get(value.__name__) is value:
            return {"type": value.__name__}
        return self.refer(value)

    def contents(self, value: Any) -> list[Any]:
        """The data of what a list, dict or set holds."""
        if isinstance(value, list):
            return [self.encode(part) for part in list.__iter__(value)]
        if isinstance(value, dict):
            return [[self.encode(key), self.encode(part)] for key, part in dict.items(value)]
        return [self.encode(part) for part in set.__iter__(value)]

    def container(self, value: Any, tag: str) -> Any:
        """A container in full where it is met first, by its number after that."""
        if id(value) in self.numbers:
            return {"same": self.numbers[id(value)]}
        self.numbers[id(value)] = len(self.shared)
        self.shared.append(value)
        contents = self.contents(value)
        return {tag: contents} if tag else contents


def _whole(_: WireWriter, value: int) -> Any:
    number = int.__int__(value)
    return number if -SMALL < number < SMALL else {"int": hex(number)}


_WRITERS: dict[type, Callable[[WireWriter, Any], Any]] = {
    bool: lambda _, value: value,
    int: _whole,
    str: lambda _, value: str.__str__(value),
    float: lambda _, value: float.__float__(value),
    list: lambda writer, value: writer.container(value, ""),
    tuple: lambda writer, value: {"tuple": [writer.encode(part) for part in tuple.__iter__(value)]},
    dict: lambda writer, value: writer.container(value, "dict"),
    set: lambda writer, value: writer.container(value, "set"),
    frozenset: lambda writer, value: {
        "frozenset": [writer.encode(part) for part in frozenset.__iter__(value)]
    },
    complex: lambda _, value: {"complex": [value.real, value.imag]},
    bytes: lambda _, value: {"bytes": bytes.hex(value)},
    range: lambda writer, value: {
        "range": [writer.encode(part) for part in (value.start, value.stop, value.step)]
    },
}


def _writer_of_a_base(value: object) -> Callable[[WireWriter, Any], Any] | None:
    return next((write for base, write in _WRITERS.items() if isinstance(value, base)), None)


class WireReader:
    """Turns JSON data into values; raises on anything that a `WireWriter` does not write."""

    def __init__(self, shared: list[Any], resolve: Callable[[str, Any], object]) -> None:
        self.shared = shared
        self.resolve = resolve  # the value of a handle; raises KeyError for other tags

    def decode(self, data: Any) -> Any:
        """The value of one piece of data."""
        if isinstance(data, list):
            return self.container([], data)
        if not isinstance(data, dict):
            return data
        ((tag, body),) = data.items()
        if tag in EXACT:
            return getattr(__import__(EXACT[tag]), tag)(body)
        read = _READERS.get(tag)
        return read(self, body) if read else self.resolve(tag, body)

    def parts(self, data: list[Any]) -> Iterator[Any]:
        return map(self.decode, data)

    def container(self, empty: Any, contents: list[Any]) -> Any:
        """A new container, numbered before its contents are read."""
        self.shared.append(empty)
        self.fill(empty, contents)
        return empty

    def fill(self, value: Any, contents: list[Any]) -> None:
        """Replace the contents of a container in place."""
        if isinstance(value, list):
            value[:] = list(self.parts(contents))
            return
        if isinstance(value, dict):
            parts: Any = [(self.decode(key), self.decode(part)) for key, part in contents]
        else:
            parts = list(self.parts(contents))
        value.clear()
        value.update(parts)


_READERS: dict[str, Callable[[WireReader, Any], Any]] = {
    "same": lambda reader, number: reader.shared[number],
    "int": lambda _, digits: int(digits, 16),
    "tuple": lambda reader, data: tuple(reader.parts(data)),
    "dict": lambda reader, data: reader.container({}, data),
    "set": lambda reader, data: reader.container(set(), data),
    "frozenset": lambda reader, data: frozenset(reader.parts(data)),
    "complex": lambda _, data: complex(*data),
    "bytes": lambda _, data: bytes.fromhex(data),
    "range": lambda reader, data: range(*reader.parts(data)),
    "type": lambda _, name: TYPES[name],
}
