"""Files and texts that came from outside: bounded, and none that never ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from unmask.errors import RequestError, UnmaskError

MOST = 1 << 27  # bytes of a file that is read as a whole
LINE = 1 << 24  # bytes of a line
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)


def opened(path: str | Path, mode: str = "rb") -> BinaryIO:
    """Open a file of bytes, without waiting for somebody at the other end of a pipe.

    A pipe that nobody writes is empty; one that nobody reads is an OSError.
    """
    return cast(BinaryIO, open(path, mode, opener=_open))


def _open(path: str, flags: int) -> int:
    number = os.open(path, flags | _AT_ONCE)
    if _AT_ONCE:
        os.set_blocking(number, True)
    return number


def read_bytes(path: str | Path, most: int = MOST, kind: type[UnmaskError] = RequestError) -> bytes:
    """The bytes of a file; errors are of this kind."""
    try:
        with opened(path) as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise kind(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > most:
        raise kind(f"{path} is too large; at most {most >> 20} MB are read")
    return data


def read_text(path: str | Path, most: int = MOST, kind: type[UnmaskError] = RequestError) -> str:
    """The text of a file in UTF-8; errors are of this kind."""
    try:
        return read_bytes(path, most, kind).decode()
    except UnicodeDecodeError:
        raise kind(f"{path} cannot be read: it is not UTF-8 text") from None


def lines_of(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """The lines of a stream with their ends, one by one; RequestError for one without end."""
    while line := stream.readline(LINE + 1):
        if len(line) > LINE:
            raise RequestError(f"{name} has a line of more than {LINE >> 20} MB")
        yield line


def check_whole(text: str) -> None:
    """Raise if a text holds half a character, which no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            f"the text holds half a character, {text[error.start]!a}, at place {error.start}; "
            "give it in UTF-8"
        ) from None
