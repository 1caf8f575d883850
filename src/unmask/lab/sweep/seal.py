"""Records in a store with a checksum, so that a flipped bit is noticed.

SQLite checks the structure of its file, not the texts in it. Stores that are older than checksums
hold records without one, which are taken as they are.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

CHECK = "check"  # the name of the checksum in a record


def sealed(record: dict[str, Any], *place: object) -> str:
    """A record as JSON with a checksum of itself and of its place in the store."""
    return _json({**record, CHECK: _checksum(record, place)})


def opened(text: Any, *place: object, required: bool = True) -> dict[str, Any]:
    """Read a record; ValueError if it is not as it was written, or not in its place."""
    try:
        record = json.loads(text)
    except (TypeError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(record, dict):
        raise ValueError("not an object")
    check = record.pop(CHECK, None)
    if check != _checksum(record, place) and (required or check is not None):
        raise ValueError("not as it was written")
    return record


def _checksum(record: dict[str, Any], place: tuple[object, ...]) -> str:
    content = _json([record, *place]).encode(errors="surrogatepass")
    return blake2b(content, digest_size=8).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
