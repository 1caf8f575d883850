"""The candidate's process: defines what the model wrote and answers calls; it never sees the tests.

What the model wrote can reach everything in here, and forge any answer. That gains nothing: the
judge's questions hold no expected value, and a forged answer is an answer like any other.
"""

from __future__ import annotations

import builtins
import json
import operator
import os
import sys
from collections.abc import Callable

from unmask.lab.sandbox import confine
from unmask.lab.sandbox.wire import WireReader, WireWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

NAME = "candidate"
OPERATIONS: dict[str, Callable[..., object]] = {
    "call": lambda function, *arguments, **named: function(*arguments, **named),
    "get": getattr,
    "set": setattr,
    "iter": iter,
    "next": next,
    "len": len,
    "item": operator.getitem,
    "holds": operator.contains,
    "true": bool,
}


def main() -> None:
    """Confine this process, report that, and answer requests until the pipe closes."""
    settings = json.loads(sys.argv[2])
    requests, replies = _take_the_pipes()
    if settings["alone"]:
        from unmask.lab.sandbox import landlock  # while the files of this package can be read
    if settings["uid"]:
        confine.drop(settings["uid"])
    confine.limit(settings["limits"])
    if settings["alone"]:  # without bubblewrap the process confines itself
        confine.give_up_privileges()
        if landlock.version():
            landlock.restrict(settings["readable"])
        if settings["filter"]:
            confine.refuse(bytes.fromhex(settings["filter"]))
    sys.argv = [NAME]
    serve(requests, replies, settings["limits"]["reply"])


def serve(requests: BinaryIO, replies: BinaryIO, most: int) -> None:
    """Answer each line of `requests` with a line of at most `most` bytes."""
    candidate, log = Candidate(), sys.stdout
    _send(replies, b'{"ready": true}')
    for line in requests:
        try:
            reply = json.dumps(candidate.answer(json.loads(line))).encode()
        except BaseException as error:  # an answer that is nested too deeply or too large
            reply = json.dumps({"raise": _builtin(error), "args": []}).encode()
        log.flush()
        _send(replies, reply if len(reply) <= most else b'{"large": %d}' % len(reply))


class Candidate:
    """The model's code as a module, and its objects that the judge has handles to."""

    def __init__(self) -> None:
        self.module = type(sys)(NAME)
        sys.modules[NAME] = self.module
        self.kept: list[object] = []
        self.numbers: dict[int, int] = {}  # by id, which stays as the object is kept

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request; an exception is an answer too."""
        shared: list[Any] = []
        try:
            if request["op"] == "define":
                return {"value": self.define(request["code"], request["names"])}
            reader = WireReader(shared, self.resolve)
            arguments = [reader.decode(data) for data in request["args"]]
            named = {name: reader.decode(data) for name, data in request["named"].items()}
        except BaseException as error:
            return _raised(error, WireWriter([], self.refer))
        before = [tuple(_parts(value)) for value in shared]
        writer = WireWriter(shared, self.refer)
        try:
            value = OPERATIONS[request["op"]](*arguments, **named)
            after = _changes(writer, before)
            return {"after": after, "value": writer.encode(value)}
        except BaseException as error:
            writer = WireWriter(shared[: len(before)], self.refer)
            return {"after": _changes(writer, before), **_raised(error, writer)}

    def define(self, code: str, names: list[str]) -> list[str]:
        """Run the candidate's source; returns the names that it does not define."""
        if "random" in code:  # the same program, the same verdict
            __import__("random").seed(0)
        exec(compile(code, f"<{NAME}>", "exec", dont_inherit=True), vars(self.module))
        return [name for name in names if name not in vars(self.module)]

    def refer(self, value: object) -> dict[str, int]:
        """A handle to an object that stays here."""
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.kept)
            self.kept.append(value)
        return {"object": self.numbers[id(value)]}

    def resolve(self, tag: str, body: Any) -> object:
        """What a handle of the judge stands for."""
        return self.kept[body] if tag == "object" else vars(self.module)[body]


def _changes(writer: WireWriter, before: list[tuple[object, ...]]) -> list[Any]:
    """The numbers and contents of arguments that the call has changed in place."""
    after = []
    for number, old in enumerate(before):
        value = writer.shared[number]
        now = _parts(value)
        if len(old) != len(now) or not all(map(operator.is_, old, now)):
            after.append([number, writer.contents(value)])
    return after


def _parts(container: Any) -> list[object]:
    if isinstance(container, dict):
        return [*container.keys(), *container.values()]
    return list(container)


def _raised(error: BaseException, writer: WireWriter) -> dict[str, Any]:
    """An exception as its nearest built-in class, its arguments, and a line about it."""
    try:
        arguments = [writer.encode(part) for part in error.args]
        text = f"{type(error).__name__}: {error}"[:500]
    except BaseException:  # the model's code may break even this
        return {"raise": _builtin(error), "args": []}
    return {"raise": _builtin(error), "args": arguments, "text": text}


def _builtin(error: BaseException) -> str:
    kinds = type(error).__mro__
    names = (kind.__name__ for kind in kinds if getattr(builtins, kind.__name__, None) is kind)
    return str(next(names))


def _take_the_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Move the two pipes elsewhere; `input` then reads nothing and `print` writes the log."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


def _send(replies: BinaryIO, line: bytes) -> None:
    replies.write(line + b"\n")
    replies.flush()
