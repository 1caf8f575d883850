"""Builds the automaton of a language over a vocabulary, and keeps it on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np

from unmask.errors import LanguageError, shown
from unmask.languages.automaton import TokenAutomaton
from unmask.languages.bounded import byte_arcs
from unmask.languages.notation import regex_of
from unmask.languages.spelled import ByteAutomaton, over_tokens

VERSION = 2  # of the files; part of their names
BEGIN, END = 0, 1  # the bytes before and behind an expression
MOST_ARCS = 300_000  # pairs of states with a token between them
_DIGEST = 32  # bytes of a digest, with which a file begins
MOST_KEPT = 256  # files in the folder; the oldest are removed


def build(
    language: str, spellings: Sequence[bytes | None], folder: Path | None = None
) -> TokenAutomaton:
    """The automaton of a language in its notation, over tokens with these bytes.

    With a folder it is read from there if it was built before, and kept there otherwise.
    """
    expression = regex_of(language)
    file = None if folder is None else folder / f"{_key(expression, spellings)}.npz"
    if file is not None and (known := _read(file, language)) is not None:
        return known
    automaton = over_tokens(byte_automaton(expression, shown(language)), spellings, language)
    _check_arcs(automaton)
    if file is not None:
        _write(file, automaton)
    return automaton


def byte_automaton(expression: str, name: str) -> ByteAutomaton:
    """The least automaton over bytes of a regular expression.

    The library also prepares to search in longer texts, which can take exponential time, and it
    loses ways that lead from a text of the language through one that is not. So the expression
    stands between two bytes that texts hardly use, 0 and 1; a text never holds a 1.
    """
    made = byte_arcs(rf"\x00(?:{expression})\x01", name)
    (state, byte, after), start = made.arcs.T, made.start
    final = state[(byte == END) & np.isin(after, made.final)]
    first = after[(state == start) & (byte == BEGIN)]
    inner = (byte != END) & (byte < 256)
    return ByteAutomaton.of(made.arcs[inner], int(first[0]) if len(first) else start, final)


def _check_arcs(automaton: TokenAutomaton) -> None:
    """Raise for a language whose steps would take too long."""
    arcs = sum(len(np.unique(targets[targets >= 0])) for targets in automaton.table)
    if arcs > MOST_ARCS:
        raise LanguageError(
            f"{shown(automaton.name)} has {arcs} ways between its states; at most {MOST_ARCS} are "
            "allowed: use smaller repetitions, or fewer choices"
        )


def cache_folder() -> Path | None:
    """Where automata are kept; None if this user has no home."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = base if base.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return base / "unmask" / "languages"


def _key(expression: str, spellings: Sequence[bytes | None]) -> str:
    digest = sha256(f"{VERSION} {len(expression)} {expression}".encode())
    for word in spellings:
        digest.update(b"-" if word is None else b"%d:%b" % (len(word), word))
    return digest.hexdigest()[:40]


def _read(file: Path, name: str) -> TokenAutomaton | None:
    """An automaton from a file; None if there is none, or if it is not as it was written."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, data = content[:_DIGEST], content[_DIGEST:]
    if sha256(data).digest() != digest:
        return None
    with np.load(BytesIO(data), allow_pickle=False) as kept:
        classes, table, accepting = (kept[part] for part in ("classes", "table", "accepting"))
        return TokenAutomaton(classes, table, accepting, int(kept["start"]), name)


def _write(file: Path, automaton: TokenAutomaton) -> None:
    """Keep an automaton behind a digest; a folder that cannot be written is no error."""
    data = BytesIO()
    np.savez_compressed(
        data,
        classes=automaton.classes,
        table=automaton.table,
        accepting=automaton.accepting,
        start=np.int64(automaton.start),
    )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".tmp", delete=False) as stream:
            stream.write(sha256(data.getvalue()).digest() + data.getvalue())
        Path(stream.name).replace(file)
        kept = sorted(file.parent.glob("*.npz"), key=lambda each: each.stat().st_mtime)
        for old in kept[:-MOST_KEPT]:
            old.unlink(missing_ok=True)
    except OSError:
        return
