"""The judge's process: runs the tests with proxies for the candidate's functions, and decides.

It is forked from the warden, holds the only copy of the tests near the candidate, and believes
nothing but plain values: what the candidate says can make a test fail or pass, never skip it.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable

from unmask.lab.sandbox.wire import WireReader, WireWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, BinaryIO

TESTS = "<tests>"


class Fault(BaseException):
    """Ends a run from outside the tests; their `except Exception` does not catch it."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


class Reference:
    """A function or object that lives with the candidate; equal to nothing."""

    def __init__(self, ask: Callable[..., Any], handle: dict[str, Any]) -> None:
        vars(self).update(_ask=ask, _handle=handle)

    def __call__(self, *arguments: object, **named: object) -> Any:
        return self._ask("call", self, *arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # such names belong to Python's own machinery
        return self._ask("get", self, name)

    def __setattr__(self, name: str, value: object) -> None:
        self._ask("set", self, name, value)

    def __iter__(self) -> Any:
        return self._ask("iter", self)

    def __next__(self) -> Any:
        return self._ask("next", self)

    def __len__(self) -> Any:
        return self._ask("len", self)

    def __getitem__(self, key: object) -> Any:
        return self._ask("item", self, key)

    def __contains__(self, part: object) -> Any:
        return self._ask("holds", self, part)

    def __bool__(self) -> Any:
        return self._ask("true", self)

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<the candidate's {self._handle}>"


class Conversation:
    """Questions to the candidate over two pipes, one at a time."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO, most: int) -> None:
        self.requests, self.replies, self.most = requests, replies, most
        self.fault: Fault | None = None  # the first one; a test may have swallowed it
        self.raised: BaseException | None = None  # the last exception of the candidate's
        self.text = ""
        self.flagged = False  # an object of the candidate's own took part

    def ready(self) -> None:
        """Wait until the candidate has confined itself."""
        if self.replies.readline(64) != b'{"ready": true}\n':
            raise Fault("not started", "the candidate's process did not start")

    def define(self, code: str, names: list[str]) -> None:
        """Run the model's source; raises unless every name is then defined."""
        reply = self.exchange({"op": "define", "code": code, "names": names})
        if self.understand(reply, []):
            raise Fault("no such function", f"the code does not define {' and '.join(names)}")

    def ask(self, operation: str, *arguments: object, **named: object) -> Any:
        """Send one request to the candidate; its exceptions are raised here."""
        shared: list[Any] = []
        writer = WireWriter(shared, self.refer)
        data = [writer.encode(argument) for argument in arguments]
        more = {name: writer.encode(argument) for name, argument in named.items()}
        reply = self.exchange({"op": operation, "args": data, "named": more})
        try:
            return self.understand(reply, shared)
        except StopIteration as end:
            if operation == "next":
                raise
            raise RuntimeError("StopIteration") from end  # or it would end a loop of the tests

    def exchange(self, request: dict[str, Any]) -> Any:
        if self.fault:
            raise self.fault
        try:
            self.requests.write(json.dumps(request).encode() + b"\n")
            self.requests.flush()
            line = self.replies.readline(self.most + 2)
        except BrokenPipeError:
            line = b""
        if not line:
            raise self.broken("crashed", "the candidate's process ended")
        if len(line) > self.most + 1 or line.startswith(b'{"large"'):
            raise self.broken("bad reply", f"an answer of more than {self.most} bytes")
        return line

    def understand(self, line: bytes, shared: list[Any]) -> Any:
        """The value of a reply, with changed arguments put back; raises what the call raised."""
        reader = WireReader(shared, self.resolve)
        try:
            reply = json.loads(line)
            for number, contents in reply.get("after", ()):
                reader.fill(shared[number], contents)
            if "raise" not in reply:
                return reader.decode(reply["value"])
            error = _exception(reply["raise"], [reader.decode(part) for part in reply["args"]])
            text = str(reply.get("text", reply["raise"]))
        except Exception as wrong:
            raise self.broken("bad reply", f"{type(wrong).__name__}: {wrong}") from None
        self.raised, self.text = error, text
        raise error

    def refer(self, value: object) -> object:
        if isinstance(value, Reference):
            return value._handle
        kind = type(value).__name__
        detail = f"the tests pass a {kind}, which cannot be sent to the candidate"
        raise self.broken("unsupported", detail)

    def resolve(self, tag: str, body: Any) -> Reference:
        if tag != "object" or not isinstance(body, int):
            raise ValueError(f"unknown tag {tag!r:.50}")
        self.flagged = True
        return Reference(self.ask, {tag: body})

    def broken(self, reason: str, detail: str) -> Fault:
        self.fault = Fault(reason, detail)
        return self.fault


def judge(conversation: Conversation, code: str, tests: str, names: list[str]) -> tuple[str, str]:
    """Run the tests against the code; returns the reason and one line of detail."""
    try:
        program = compile(tests, TESTS, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return "unsupported", f"the tests are not valid Python: {error}"
    try:
        conversation.define(code, names)
        scope: dict[str, Any] = {"__name__": "tests"}
        for name in names:
            scope[name] = Reference(conversation.ask, {"name": name})
        if "random" in tests:  # the same program, the same verdict
            __import__("random").seed(0)
        exec(program, scope)
    except BaseException as error:
        return _explained(conversation, error, tests)
    if conversation.fault:  # swallowed by a bare `except` of the tests
        return conversation.fault.reason, conversation.fault.detail
    return "passed", ""


def main(job: dict[str, Any], requests: int, replies: int, report: BinaryIO) -> None:
    """Judge one job; tells the warden when the candidate runs, then the verdict."""
    conversation = Conversation(
        os.fdopen(requests, "wb"), os.fdopen(replies, "rb"), job["limits"]["reply"]
    )
    try:
        conversation.ready()
        report.write(b"started\n")
        report.flush()
        reason, detail = judge(conversation, job["code"], job["tests"], job["names"])
    except Fault as fault:
        reason, detail = fault.reason, fault.detail
    line = " ".join(detail.split())[:300]
    verdict = {"reason": reason, "detail": line, "flagged": conversation.flagged}
    report.write(json.dumps(verdict).encode() + b"\n")
    report.flush()


def _explained(conversation: Conversation, error: BaseException, tests: str) -> tuple[str, str]:
    fault = conversation.fault or (error if isinstance(error, Fault) else None)
    if fault:
        return fault.reason, fault.detail
    if isinstance(error, MemoryError):
        return "memory", f"MemoryError{_place(error.__traceback__, tests)}"
    if error is conversation.raised:
        return "error", f"{conversation.text}{_place(error.__traceback__, tests)}"
    reason = "wrong" if isinstance(error, AssertionError) else "error"
    return reason, f"{_named(error)}{_place(error.__traceback__, tests)}"


def _named(error: BaseException) -> str:
    """The class and the text of an exception; only the class if its text cannot be made."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # such as a number with more digits than Python writes
        return name


def _place(traceback: TracebackType | None, tests: str) -> str:
    """The line of the tests that an exception passed through last."""
    line = 0
    while traceback:
        if traceback.tb_frame.f_code.co_filename == TESTS:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    lines = tests.splitlines()
    return f", at: {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""


def _exception(name: str, arguments: list[Any]) -> BaseException:
    kind = getattr(builtins, name)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise TypeError(f"{name!r} is not an exception")
    try:
        return kind(*arguments)
    except TypeError:  # such as an ExceptionGroup, whose parts cannot cross
        return Exception(name, *arguments)
