"""How a trace writes columns: names with types, and their bytes in base64 inside a JSON line."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unmask.errors import UnmaskError

FORMAT = 1  # the number in the first line; a reader refuses what it does not know
GZIP = 31  # zlib's window bits for a gzip stream

Array = NDArray[Any]
_WIDTH = {"u16": 2, "u24": 3, "u32": 4, "f16": 2}


class TraceError(UnmaskError):
    """A file that is no trace, or a trace that cannot be used for what was asked."""


def raw_columns(kind: str, columns: Array) -> Array:
    """Columns of one type as bytes, little end first: [C, N] -> uint8 [C, N, width]."""
    width = _WIDTH[kind]
    whole = np.ascontiguousarray(columns, dtype="<u4" if kind == "u24" else f"<{kind[0]}{width}")
    return whole.view(np.uint8).reshape(*columns.shape, -1)[..., :width]


def unpack(names: list[str], data: bytes, count: int) -> dict[str, Array]:
    """Columns by name without their type: whole numbers as int64, others as float64."""
    found, begin = {}, 0
    for written in names:
        name, _, kind = written.rpartition(":")
        if kind not in _WIDTH:
            raise TraceError(f"the trace has a column {written!r} of a kind that is not known")
        end = begin + _WIDTH[kind] * count
        if end > len(data):
            raise TraceError(f"the trace is damaged: column {name!r} is cut off")
        found[name] = _unpacked(kind, data[begin:end])
        begin = end
    return found


def _unpacked(kind: str, data: bytes) -> Array:
    if kind == "u24":
        parts = np.frombuffer(data, np.uint8).reshape(-1, 3).astype(np.int64)
        return parts[:, 0] | parts[:, 1] << 8 | parts[:, 2] << 16
    column = np.frombuffer(data, f"<{kind[0]}{_WIDTH[kind]}")
    return column.astype(np.float64 if kind[0] == "f" else np.int64)


def packed(flags: Array) -> Array:
    """Rows of flags, eight to a byte, the first in the lowest bit: [..., W] -> [..., W / 8]."""
    return np.packbits(flags, axis=-1, bitorder="little")


def flags(written: str, count: int) -> Array:
    """A row of flags that was packed and written as text."""
    data = np.frombuffer(raw(written), np.uint8)
    return np.unpackbits(data, count=count, bitorder="little").astype(bool)


def text(data: bytes) -> str:
    """Bytes for JSON."""
    return base64.b64encode(data).decode("ascii")


def raw(written: str) -> bytes:
    """What `text` wrote."""
    return base64.b64decode(written, validate=True)


def inflated(data: bytes) -> tuple[bytes, bool]:
    """What a gzip stream holds, and whether it is whole: of a cut one all that can be read."""
    reader = zlib.decompressobj(GZIP)
    try:
        return reader.decompress(data), reader.eof
    except zlib.error:
        return _readable(data), False


def _readable(data: bytes) -> bytes:
    """As much of a damaged stream as can be read."""
    reader, found = zlib.decompressobj(GZIP), b""
    for begin in range(0, len(data), 4096):
        try:
            found += reader.decompress(data[begin : begin + 4096])
        except zlib.error:
            break
    return found
