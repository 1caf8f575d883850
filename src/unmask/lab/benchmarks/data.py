"""Read and check the records of a benchmark, from JSON lines or from the hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.models.untrusted import read_bytes

Record = dict[str, Any]


@dataclass(frozen=True)
class DataFile:
    """A file of records, their number, and where to get it.

    Args:
        fields: names and types that every record must have.
        key: the field that must be unique.
        fault: returns what else is wrong with a record, or an empty text.
        hub: dataset and configuration; all its `splits` are read, in that order.
    """

    file: str
    rows: int
    fields: Mapping[str, type]
    origin: str
    hub: tuple[str, str]
    splits: tuple[str, ...] = ("test",)
    key: str = ""
    fault: Callable[[Record], str] = lambda _: ""

    def records(self, folder: Path | None) -> list[Record]:
        """All records, in order."""
        if folder is None:
            return self._from_hub()
        file = folder / self.file
        if not folder.is_dir():
            raise UnmaskError(f"{folder} is not a folder; give the folder of {self.file} as --data")
        if not file.is_file():
            raise UnmaskError(
                f"{file} is missing; get it from {self.origin}, or give its folder with --data"
            )
        return self._checked(json_lines(file), str(file))

    def _from_hub(self) -> list[Record]:
        try:
            load: Callable[..., Iterable[Record]] = import_module("datasets").load_dataset
        except ImportError:
            raise UnmaskError(
                f"no data: give --data DIR with {self.file} (from {self.origin}), or install "
                f"datasets to fetch {self.hub[0]} from the hub"
            ) from None
        placed: list[tuple[str, Record]] = []
        for split in self.splits:
            try:
                rows = load(*self.hub, split=split)
            except Exception as error:  # of the network, the hub or the cache
                reason = str(error).partition("\n")[0]
                raise UnmaskError(
                    f"{self.hub[0]} cannot be fetched: {reason}; give --data"
                ) from None
            name = f"{self.hub[0]} {split} row"
            placed += [(f"{name} {number}", dict(row)) for number, row in enumerate(rows)]
        return self._checked(placed, self.hub[0])

    def _checked(self, placed: list[tuple[str, Record]], name: str) -> list[Record]:
        places: dict[Any, str] = {}
        for place, record in placed:
            if complaint := self._complaint(record):
                raise UnmaskError(f"{place}: {complaint}")
            value = record.get(self.key, place)
            if value in places:
                raise UnmaskError(f"{place}: {value!r} occurs at {places[value]} already")
            places[value] = place
        if len(placed) != self.rows:
            raise UnmaskError(
                f"{name} holds {len(placed)} records and should hold {self.rows}; get it again "
                f"from {self.origin}"
            )
        return [record for _, record in placed]

    def _complaint(self, record: Record) -> str:
        for name, kind in self.fields.items():
            if name not in record:
                return f"the field {name!r} is missing"
            if not isinstance(record[name], kind):
                return f"{name!r} must be {kind.__name__}, got {type(record[name]).__name__}"
        return self.fault(record)


def json_lines(file: Path) -> list[tuple[str, Record]]:
    """All objects of a file with their places, `file:line`; blank lines are skipped."""
    placed = []
    for number, line in enumerate(read_bytes(file, kind=UnmaskError).split(b"\n"), 1):
        if line.strip():
            placed.append((f"{file}:{number}", _object(line, f"{file}:{number}")))
    return placed


def _object(line: bytes, place: str) -> Record:
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UnmaskError(f"{place}: not JSON: {error}") from None
    if not isinstance(record, dict):
        raise UnmaskError(f"{place}: a line must hold an object, got {type(record).__name__}")
    return record
