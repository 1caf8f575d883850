"""Encodes the columns of a trace: names with types, and bytes in base64 inside a JSON line."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unmask.errors import UnmaskError
from unmask.models.untrusted import read_bytes

FORMAT = 1  # the number in the first line; a reader refuses other numbers
GZIP = 31  # zlib's window bits for a gzip stream
CONTENT, LINE = 1 << 28, 1 << 23  # the most bytes of a trace, and of one line
LEAST = 4096  # a line counts as this many bytes more, which a step takes in memory

Array = NDArray[Any]
_WIDTH = {"u16": 2, "u24": 3, "u32": 4, "f16": 2}


class TraceError(UnmaskError):
    """The file is not a trace, or the trace does not allow the request."""


def raw_columns(kind: str, columns: Array) -> Array:
    """Columns of one type as little-endian bytes: [C, N] -> uint8 [C, N, width]."""
    width = _WIDTH[kind]
    whole = np.ascontiguousarray(columns, dtype="<u4" if kind == "u24" else f"<{kind[0]}{width}")
    return whole.view(np.uint8).reshape(*columns.shape, whole.dtype.itemsize)[..., :width]


def unpack(names: list[str], data: bytes, count: int) -> dict[str, Array]:
    """Decode columns by name: integers as int64, other numbers as float64."""
    columns, begin = {}, 0
    for written in names:
        name, _, kind = written.rpartition(":")
        if kind not in _WIDTH:
            raise TraceError(f"the trace has a column {written!r} of an unknown type")
        end = begin + _WIDTH[kind] * count
        if end > len(data):
            raise TraceError(f"the trace is damaged: column {name!r} is cut off")
        columns[name] = _unpacked(kind, data[begin:end])
        begin = end
    if begin != len(data):
        raise TraceError("the trace is damaged: its columns are longer than its counts")
    return columns


def _unpacked(kind: str, data: bytes) -> Array:
    if kind == "u24":
        parts = np.frombuffer(data, np.uint8).reshape(-1, 3).astype(np.int64)
        return parts[:, 0] | parts[:, 1] << 8 | parts[:, 2] << 16
    column = np.frombuffer(data, f"<{kind[0]}{_WIDTH[kind]}")
    return column.astype(np.float64 if kind[0] == "f" else np.int64)


def packed(flags: Array) -> Array:
    """Pack rows of flags, eight in a byte, lowest bit first: [..., W] -> [..., W / 8]."""
    return np.packbits(flags, axis=-1, bitorder="little")


def flags(written: str, count: int) -> Array:
    """Decode a row of flags that `packed` and `text` wrote."""
    data = np.frombuffer(raw(written), np.uint8)
    if len(data) != (count + 7) // 8:
        raise TraceError("the trace is damaged: its flags do not fit its window")
    return np.unpackbits(data, count=count, bitorder="little").astype(bool)


def text(data: bytes) -> str:
    """Bytes as base64 text, for JSON."""
    return base64.b64encode(data).decode("ascii")


def raw(written: str) -> bytes:
    """Decode the bytes that `text` wrote."""
    return base64.b64decode(written, validate=True)


def file_bytes(path: Path) -> bytes:
    """The bytes of a trace file; no more are read than a trace may have."""
    return read_bytes(path, CONTENT, TraceError)


@dataclass
class Unzipped:
    """The lines of a gzip stream one by one, within limits; an unfinished last line is dropped.

    A few bytes of gzip may stand for gigabytes, so the content is never held as a whole.
    """

    data: bytes
    name: str
    complete: bool = False  # after the last line: whether the stream has its end and checksum

    def __iter__(self) -> Iterator[bytes]:
        reader, waiting, cost = zlib.decompressobj(GZIP), bytearray(), 0
        for begin in range(0, len(self.data), 4096):
            try:
                piece = reader.decompress(self.data[begin : begin + 4096])
            except zlib.error:
                raise TraceError(f"{self.name} is damaged; its bytes are not as written") from None
            waiting += piece
            *lines, rest = waiting.split(b"\n") if b"\n" in piece else (waiting,)
            cost += len(piece) + LEAST * len(lines)
            if cost > CONTENT or max(map(len, (*lines, rest))) > LINE:
                raise TraceError(
                    f"{self.name} is too large: a trace holds at most {CONTENT >> 20} MB, and "
                    f"{LINE >> 20} MB a step; trace a shorter answer"
                )
            yield from map(bytes, lines)
            waiting = bytearray(rest)
        if reader.unused_data:
            raise TraceError(f"{self.name} is damaged; more bytes follow its end")
        self.complete = reader.eof
