"""Reads files of prompts and writes files of answers, both as JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from unmask.errors import RequestError, RuleError
from unmask.models.fingerprint import sha_of
from unmask.models.untrusted import MOST, lines_of, opened
from unmask.rules.spelling import for_file, from_file
from unmask.text.prompts import Prompt, PromptFormat
from unmask.trace.recording.files import hold

MOST_PROMPTS = 100_000  # in one file
_KINDS = ("prompt", "messages", "canvas")
_BEGINNING = b'{"id": '  # how every answer line begins


@dataclass(frozen=True)
class Line:
    """One prompt of a file."""

    place: str  # file:line, for messages
    id: int | str
    prompt: Prompt
    sha: str  # of prompt and seed, to see whether a stored answer belongs to them


def read_prompts(stream: BinaryIO, name: str, form: PromptFormat, seed: int) -> list[Line]:
    """All prompts of a stream of JSON lines; the default seed of line n is `seed + n - 1`."""
    lines: list[Line] = []
    places: dict[int | str, str] = {}
    left = MOST  # bytes
    for number, raw in enumerate(lines_of(stream, name), 1):
        left -= len(raw)
        if number > MOST_PROMPTS or left < 0:
            most = f"{MOST_PROMPTS} lines and {MOST >> 20} MB"
            raise RequestError(f"{name} is too large; a file of prompts has at most {most}")
        if not raw.strip():
            continue
        place = f"{name}:{number}"
        try:
            line = _line(_object(raw), place, number, form, seed + number - 1)
            if line.id in places:
                raise RequestError(f"the id {line.id!r} is already used at {places[line.id]}")
        except RequestError as error:
            raise RequestError(f"{place}: {error}") from None
        places[line.id] = place
        lines.append(line)
    if not lines:
        raise RequestError(f'{name} holds no prompt; write one {{"prompt": "..."}} per line')
    return lines


def _object(raw: bytes) -> dict[str, Any]:
    try:
        record = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise RequestError(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise RequestError(f"a line must hold an object, got {type(record).__name__}")
    return record


def _line(record: dict[str, Any], place: str, number: int, form: PromptFormat, seed: int) -> Line:
    kinds = [kind for kind in _KINDS if kind in record]
    if len(kinds) != 1:
        got = " and ".join(map(repr, kinds)) or f"only {', '.join(map(repr, record)) or 'nothing'}"
        raise RequestError(f"a line needs one of 'prompt', 'messages' and 'canvas', got {got}")
    kind, content = kinds[0], record[kinds[0]]
    name, own = record.get("id", number), record.get("seed", seed)
    if isinstance(name, bool) or not isinstance(name, int | str):
        raise RequestError(f"the id must be a text or a whole number, got {name!r}")
    if isinstance(name, str) and not name.isprintable():
        raise RequestError(f"the id must be printable text, got {name!a}")
    if isinstance(own, bool) or not isinstance(own, int) or own < 0:
        raise RequestError(f"the seed must be a whole number >= 0, got {own!r}")
    if kind == "messages":
        if not isinstance(content, list) or not content:
            raise RequestError("'messages' must be a list of objects with 'role' and 'content'")
        prompt = form.of_messages(content, own)
    elif not isinstance(content, str):
        raise RequestError(f"{kind!r} must be a text, got {type(content).__name__}")
    else:
        prompt = form.of_text(content, own, infill=kind == "canvas" or None)
    return Line(place, name, prompt, sha_of([kind, content, own]))


class AnswerFile:
    """A file to which answers are appended, and the prompts that it already answers.

    If a crash cut the last line short, the line is dropped and its prompt is answered again.
    """

    def __init__(self, file: Path, settings: Mapping[str, Any]) -> None:
        self.file = file
        self.settings = settings
        self.answered: dict[int | str, str] = {}  # id -> sha of the prompt
        if file.exists() and not file.is_file() and not file.is_dir():
            raise RequestError(f"{file} is a device or a pipe; give a file as --output")
        self._size = self._kept = 0  # bytes of the file, and of its whole lines
        try:
            if file.exists():
                self._read()
        except OSError as error:
            raise _unusable(file, error) from None

    def _read(self) -> None:
        with opened(self.file) as stream:
            for number, line in enumerate(lines_of(stream, str(self.file)), 1):
                self._size += len(line)
                if line.endswith(b"\n"):
                    self._take(line, number)
                    self._kept = self._size
                elif line[: len(_BEGINNING)] != _BEGINNING[: len(line)]:
                    raise self._foreign(number)

    def _take(self, raw: bytes, number: int) -> None:
        try:
            line = _object(raw)
            name, asked, settings = line["id"], line["asked"], dict(line["settings"])
            settings["rule"] = for_file(from_file(settings["rule"]))
        except (RequestError, RuleError, KeyError, TypeError, ValueError):
            raise self._foreign(number) from None
        if settings != self.settings:
            raise RequestError(
                f"{self.file}:{number} was written with other settings "
                f"({_difference(settings, self.settings)}); give those, or another --output"
            )
        self.answered[name] = asked

    def _foreign(self, number: int) -> RequestError:
        return RequestError(
            f"{self.file}:{number} is not an answer of 'unmask run'; give another --output"
        )

    def open(self) -> BinaryIO:
        """Open the file for appending, without a line that was cut short; one run at a time."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            stream = self.file.open("ab", buffering=0)
            try:
                hold(stream, self.file, "--output")
                if os.fstat(stream.fileno()).st_size != self._size:
                    raise RequestError(f"another run has just written {self.file}; start again")
                stream.truncate(self._kept)
            except BaseException:
                stream.close()
                raise
        except OSError as error:
            raise _unusable(self.file, error) from None
        return stream

    def unanswered(self, lines: list[Line]) -> Iterator[int]:
        """The numbers of the prompts that have no answer yet."""
        for number, line in enumerate(lines):
            if line.id not in self.answered:
                yield number
            elif self.answered[line.id] != line.sha:
                raise RequestError(
                    f"{line.place}: {self.file} holds an answer with the id {line.id!r} to "
                    "another prompt or seed; change the id, or give another --output"
                )


def write(stream: BinaryIO, record: Mapping[str, Any]) -> None:
    """Write one line and flush it."""
    line = memoryview(json.dumps(record, ensure_ascii=False).encode() + b"\n")
    try:
        while line:
            line = line[stream.write(line) :]
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RequestError(f"an answer cannot be written: {error.strerror}") from None


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The first setting that differs, in words."""
    differing = [key for key in (*new, *old) if old.get(key) != new.get(key)]
    key = differing[0]
    return f"{key} was {old.get(key)!r}, now {new.get(key)!r}"


def _unusable(file: Path, error: OSError) -> RequestError:
    return RequestError(f"{file} cannot be written: {error.strerror}")
