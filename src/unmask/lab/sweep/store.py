"""The store of finished examples: one SQLite file that several workers share.

SQLite in WAL mode rather than JSON lines: a claim must be atomic between processes, a kill at any
moment must leave no half-written record, and a report wants an index. The file must lie on a local
disk, since WAL needs shared memory.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.errors import LabError, UnmaskError
from unmask.lab.sweep.seal import opened, sealed
from unmask.lab.sweep.trial import Trial

FORMAT = 1
SEALED = 1  # SQLite's user_version of a store in which every record has a checksum
PATIENCE = 120.0  # seconds without a sign of life until a worker on another machine counts as dead
_BUSY = 60.0  # seconds to wait for another worker's transaction

_TABLES = """
CREATE TABLE IF NOT EXISTS about (format INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS trials (
    key TEXT PRIMARY KEY, trial TEXT NOT NULL, task TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS workers (
    id INTEGER PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, began TEXT NOT NULL,
    seen REAL NOT NULL, environment TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS examples (
    trial TEXT NOT NULL, example TEXT NOT NULL, asked TEXT NOT NULL, worker INTEGER NOT NULL,
    answer TEXT, grade TEXT, grader TEXT, PRIMARY KEY (trial, example, asked)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class AskedExample:
    """An example of a trial; `asked` is a fingerprint of the prompt's text."""

    example: str
    asked: str


@dataclass(frozen=True)
class StoredExample:
    """One finished example."""

    ask: AskedExample
    answer: dict[str, Any]
    grade: dict[str, Any] | None
    grader: str | None
    worker: int


class Store:
    """Examples by trial; every method is one transaction."""

    def __init__(self, file: str | os.PathLike[str], *, create: bool = True) -> None:
        self.file = file = Path(file)
        if file.is_dir():
            raise LabError(
                f"{file} is a folder; a store is a file, such as {file / 'store.sqlite'}"
            )
        if not create and not file.is_file():
            raise LabError(f"{file} does not exist; `unmask eval` and `unmask sweep` make one")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(file, timeout=_BUSY, isolation_level=None)
            if create:
                self._use_wal()
            self._base.execute("PRAGMA synchronous = NORMAL")
            self._set_up() if create else self._check()
        except (OSError, sqlite3.Error) as error:
            raise LabError(
                f"{file} cannot be used as a store: {error}; give another --store, or a copy"
            ) from None
        self._worker: int | None = None
        self._alive: dict[int, bool] = {}
        self._last_sign = 0.0

    def _use_wal(self) -> None:
        """Switch the journal mode; SQLite does not wait if another worker is doing the same."""
        end = time.monotonic() + _BUSY
        while True:
            try:
                self._base.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if time.monotonic() > end or "locked" not in str(error):
                    raise
                time.sleep(0.01)

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sign_in(self, environment: dict[str, Any]) -> int:
        """Register as a worker; its examples are stored with this environment."""
        host, pid = socket.gethostname(), os.getpid()
        with self._writing() as base:
            cursor = base.execute(
                "INSERT INTO workers (host, pid, began, seen, environment) VALUES (?, ?, ?, ?, ?)",
                (host, pid, _began(pid), time.time(), sealed(environment)),
            )
        self._worker = cursor.lastrowid
        assert self._worker is not None
        return self._worker

    def add(self, trial: Trial, task: dict[str, Any] | None = None) -> None:
        """Add a trial with a record of its task and preset, unless it is there already."""
        with self._writing() as base:
            base.execute(
                "INSERT OR IGNORE INTO trials VALUES (?, ?, ?)",
                (trial.key, sealed(trial.record(), trial.key), sealed(task or {}, trial.key)),
            )

    def task(self, trial: Trial) -> dict[str, Any]:
        """The task and preset that a trial was added with."""
        return self._object("SELECT task FROM trials WHERE key = ?", trial.key, trial.key)

    def claim(self, trial: Trial, ask: AskedExample) -> bool:
        """Claim an example; False if it is finished or another living worker holds it."""
        assert self._worker is not None, "sign in first"
        place = (trial.key, ask.example, ask.asked)
        with self._writing() as base:
            row = base.execute(
                "SELECT worker, answer IS NOT NULL FROM examples "
                "WHERE trial = ? AND example = ? AND asked = ?",
                place,
            ).fetchone()
            if row is not None:
                worker, answered = row
                if answered or (worker != self._worker and self._lives(worker)):
                    return False
            base.execute(
                "INSERT OR REPLACE INTO examples (trial, example, asked, worker) "
                "VALUES (?, ?, ?, ?)",
                (*place, self._worker),
            )
        return True

    def release(self) -> None:
        """Give up the examples that this worker has claimed but not finished."""
        with self._writing() as base:
            base.execute(
                "DELETE FROM examples WHERE worker = ? AND answer IS NULL", (self._worker,)
            )

    def still_here(self, every: float = 0.0) -> None:
        """Write a sign of life for workers on other machines, at most once in `every` seconds."""
        now = time.monotonic()
        if now - self._last_sign < every:
            return
        self._last_sign = now
        with self._writing() as base:
            base.execute("UPDATE workers SET seen = ? WHERE id = ?", (time.time(), self._worker))

    def finish(self, trial: Trial, ask: AskedExample, answer: dict[str, Any]) -> None:
        """Store an answer, if this worker holds the example."""
        place = (trial.key, ask.example, ask.asked)
        with self._writing() as base:
            base.execute(
                "UPDATE examples SET answer = ? WHERE trial = ? AND example = ? AND asked = ? "
                "AND worker = ? AND answer IS NULL",
                (sealed(answer, *place, self._worker), *place, self._worker),
            )

    def grade(self, trial: Trial, ask: AskedExample, grade: dict[str, Any], grader: str) -> None:
        """Store the grade of an answer; it replaces an earlier one."""
        place = (trial.key, ask.example, ask.asked)
        with self._writing() as base:
            base.execute(
                "UPDATE examples SET grade = ?, grader = ? "
                "WHERE trial = ? AND example = ? AND asked = ?",
                (sealed(grade, *place, grader), grader, *place),
            )

    def trials(self) -> list[Trial]:
        """All trials, in the order of their settings."""
        trials = []
        for key, text in self._rows("SELECT key, trial FROM trials"):
            with self._reading(f"trial {key!r}"):
                trials.append(Trial.of(self._opened(text, key)))
        return sorted(trials, key=_order)

    def rows(self, trial: Trial) -> list[StoredExample]:
        """The finished examples of a trial, sorted by name."""
        rows = self._rows(
            "SELECT example, asked, answer, grade, grader, worker FROM examples "
            "WHERE trial = ? AND answer IS NOT NULL ORDER BY example, asked",
            trial.key,
        )
        examples = []
        for example, asked, answer, grade, grader, worker in rows:
            place = (trial.key, example, asked)
            with self._reading(f"the answer to example {example!r}"):
                mark = None if grade is None else self._opened(grade, *place, grader)
                record = self._opened(answer, *place, worker)
                examples.append(
                    StoredExample(AskedExample(example, asked), record, mark, grader, worker)
                )
        return examples

    def finished(self, trial: Trial) -> set[AskedExample]:
        """The examples of a trial that have an answer."""
        rows = self._rows(
            "SELECT example, asked FROM examples WHERE trial = ? AND answer IS NOT NULL", trial.key
        )
        return {AskedExample(*each) for each in rows}

    def environment(self, worker: int) -> dict[str, Any]:
        """The environment that a worker registered with."""
        return self._object("SELECT environment FROM workers WHERE id = ?", worker)

    def missing(self, trial: Trial, asks: Sequence[AskedExample]) -> list[AskedExample]:
        """The given examples that have no answer yet, in the given order."""
        done = self.finished(trial)
        return [ask for ask in asks if ask not in done]

    def _object(self, query: str, key: object, *place: object) -> dict[str, Any]:
        rows = self._rows(query, key)
        with self._reading(f"the record of {key!r}"):
            if not rows:
                raise ValueError("missing")
            return self._opened(rows[0][0], *place)

    def _opened(self, text: Any, *place: object) -> dict[str, Any]:
        return opened(text, *place, required=self._sealed)

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._base.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._damaged(str(error)) from None

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Tells which record of a damaged store cannot be read."""
        try:
            yield
        except (UnmaskError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._damaged(f"{what}: {error}") from None

    def _damaged(self, why: str) -> LabError:
        line = "".join(sign for sign in why[:120] if sign.isprintable())
        return LabError(
            f"{self.file} is damaged ({line}); restore a copy of it, or give another --store and "
            "decode again"
        )

    def _set_up(self) -> None:
        with self._writing() as base:
            for statement in _TABLES.split(";"):
                base.execute(statement)
            if base.execute("SELECT format FROM about").fetchone() is None:
                base.execute("INSERT INTO about VALUES (?)", (FORMAT,))
                base.execute(f"PRAGMA user_version = {SEALED}")
        self._check()

    def _check(self) -> None:
        (version,) = self._base.execute("SELECT format FROM about").fetchone() or (None,)
        if version != FORMAT:
            raise LabError(
                f"{self.file} has format {version}, but this unmask writes format {FORMAT}; give "
                "another --store"
            )

        self._sealed = self._base.execute("PRAGMA user_version").fetchone() == (SEALED,)

    def _lives(self, worker: int) -> bool:
        """Whether a worker is alive; one that was dead before is not checked again."""
        if self._alive.get(worker) is False:
            return False
        rows = self._rows("SELECT host, pid, began, seen FROM workers WHERE id = ?", worker)
        if not rows:
            raise self._damaged(f"worker {worker} is missing")
        host, pid, began, seen = rows[0]
        here = host == socket.gethostname()
        alive = _began(pid) == began if here else time.time() - seen < PATIENCE
        self._alive[worker] = bool(alive)
        return self._alive[worker]

    def check(self) -> None:
        """Let SQLite check its file; raises if the file is damaged."""
        (verdict,) = self._rows("PRAGMA integrity_check(1)")[0]
        if verdict != "ok":
            raise self._damaged(str(verdict))
        lost = "SELECT example FROM examples WHERE trial NOT IN (SELECT key FROM trials) LIMIT 1"
        for (example,) in self._rows(lost):
            raise self._damaged(f"example {example!r} belongs to no trial")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            self._base.execute("BEGIN IMMEDIATE")
            yield self._base
            self._base.execute("COMMIT")
        except BaseException as error:
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")
            if not isinstance(error, sqlite3.Error):
                raise
            raise self._unusable(error) from None

    def _unusable(self, error: sqlite3.Error) -> LabError:
        if isinstance(error, sqlite3.OperationalError):  # locked, full, or not writable
            return LabError(f"{self.file} cannot be used as a store: {error}")
        return self._damaged(str(error))


def _began(pid: int) -> str:
    """The start time of a local process, '' if it does not run; pids alone are reused."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
        return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
    except OSError:
        return _alive_elsewhere(pid)


def _alive_elsewhere(pid: int) -> str:
    """For systems without /proc: whether the pid exists."""
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "unknown"


def _order(trial: Trial) -> tuple[str, ...]:
    record = trial.record()
    return tuple(
        f"{value:>12}" if isinstance(value, int) else str(value) for value in record.values()
    )
