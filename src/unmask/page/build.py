"""Builds the page: one HTML file with style, script and traces, which loads nothing.

The scripts are ES modules that import one another by path, and a server can serve them unchanged.
One file has no paths, so `script` joins the modules in the order of their imports.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path

from unmask.errors import RequestError
from unmask.models.untrusted import opened
from unmask.trace.recording.codec import FORMAT, Unzipped, file_bytes

GENERATOR = '<meta name="generator" content="unmask page">'
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class TraceFile:
    """The name and the bytes of a trace file."""

    name: str
    data: bytes

    @classmethod
    def read(cls, path: Path) -> TraceFile:
        """Read a trace file and check it; it may be cut off."""
        data = file_bytes(path)
        _check(data, path.name)
        return cls(path.name, data)


def _check(data: bytes, name: str) -> None:
    """Raise an error if the readable lines are not those of a trace. Needs no torch."""
    wrong = f"{name} is not a trace; make one with 'unmask run ... --trace FILE'"
    if data[:2] != b"\x1f\x8b":
        raise RequestError(wrong)
    lines = iter(Unzipped(data, name))
    header = _record(next(lines, b"0"), name)
    if not isinstance(header, dict) or "trace" not in header:
        raise RequestError(wrong)
    if header["trace"] != FORMAT:
        number = repr(header["trace"])[:20]
        raise RequestError(f"{name} is a trace of format {number}; the page reads format {FORMAT}")
    for line in lines:
        _record(line, name)


def _record(line: bytes, name: str) -> object:
    try:
        record: object = json.loads(line)
    except (ValueError, RecursionError):
        raise RequestError(f"{name} is damaged: a line is not JSON") from None
    return record


def source(name: str) -> str:
    """The text of one of the page's files."""
    return files("unmask.page").joinpath(name).read_text(encoding="utf-8")


def script(*entries: str) -> str:
    """Some modules and all modules that they import, joined into one module."""
    order: dict[str, str] = {}

    def add(name: str) -> None:
        text = source(name)
        for needed in _IMPORT.findall(text):
            if needed not in order:
                add(needed)
        order[name] = _scoped(name, _IMPORT.sub("", text))

    for entry in entries:
        add(entry)
    return "\n".join(order.values())


def _scoped(name: str, text: str) -> str:
    """A module as a function that returns its exports, so that its other names stay private."""
    exports = ", ".join(_EXPORT.findall(text))
    kept = _EXPORT.sub(lambda export: export[0].removeprefix("export "), text)
    body = f"{kept}return {{ {exports} }};"
    return f"// {name}\nconst {{ {exports} }} = (() => {{\n{body}\n}})();\n"


def page(traces: Sequence[TraceFile] = ()) -> str:
    """The page with up to two traces; without traces it asks for files."""
    style, code = f"\n{source('page.css')}", f"\n{script('app.js')}"
    policy = (
        f"default-src 'none'; script-src '{_hash(code)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    title = " and ".join(trace.name for trace in traces)
    blanks = {
        "policy": policy,
        "title": escape(f"{title} – unmask" if title else "unmask"),
        "style": style,
        "script": code,
        "traces": "\n".join(map(_embedded, traces)),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda blank: blanks[blank[1]], source("index.html"))


def _hash(text: str) -> str:
    """The hash of a text for a Content-Security-Policy."""
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _embedded(trace: TraceFile) -> str:
    """A trace as a script element with base64 data, which cannot end the element."""
    data = base64.b64encode(trace.data).decode("ascii")
    name = escape(trace.name, quote=True)
    return f'<script type="text/plain" class="trace" data-name="{name}">{data}</script>'


def write(page_text: str, path: Path) -> None:
    """Write a page. An existing file is replaced only if it is a page of unmask."""
    try:
        if path.is_file() and not _is_page(path):
            raise RequestError(f"{path} exists and is not a page of unmask; give another -o")
        with opened(path, "wb") as file:
            file.write(page_text.encode())
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror}") from None


def _is_page(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(4096)
    return not head or GENERATOR.encode() in head
