"""Regular expressions of JSON numbers between limits."""

from __future__ import annotations

from typing import Any

from unmask.errors import RequestError, shown

INTEGER = "-?(?:0|[1-9][0-9]*)"
FRACTION = r"(?:\.[0-9]+)?"
NUMBER = rf"{INTEGER}{FRACTION}(?:[eE][+-]?[0-9]{{1,2}})?"


def integer(schema: Any) -> str | None:
    """A whole number within the limits of a schema; None if there is none."""
    low, high = _limit(schema, "minimum"), _limit(schema, "maximum")
    above, below = _limit(schema, "exclusiveMinimum"), _limit(schema, "exclusiveMaximum")
    low = _tighter(low, None if above is None else above + 1, max)
    high = _tighter(high, None if below is None else below - 1, min)
    if low is None and high is None:
        return INTEGER
    if low is not None and high is not None and low > high:
        return None
    parts = []
    if high is None or high >= 0:
        parts.append(_natural(max(low or 0, 0), high))
    if low is None or low < 0:
        parts.append(
            "-" + _natural(max(-high if high is not None else 1, 1), None if low is None else -low)
        )
    return f"(?:{'|'.join(parts)})"


def number(schema: Any) -> str | None:
    """A number; its limits must be whole numbers >= 0."""
    low, high = _limit(schema, "minimum"), _limit(schema, "maximum")
    if low is None and high is None:
        return NUMBER
    if low is None or low < 0:
        raise RequestError("the limits of a number need a minimum >= 0; give one")
    if high is None:
        return f"{_natural(low, None)}{FRACTION}"
    if low > high:
        return None
    whole = rf"{high}(?:\.0+)?"
    return f"(?:{_natural(low, high - 1)}{FRACTION}|{whole})" if low < high else whole


def _limit(schema: Any, word: str) -> int | None:
    value = schema.get(word)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or int(value) != value:
        raise RequestError(f"{word} must be a whole number, got {shown(value)}")
    return int(value)


def _tighter(first: int | None, second: int | None, choose: Any) -> int | None:
    given = [limit for limit in (first, second) if limit is not None]
    return choose(given) if given else None


def _natural(low: int, high: int | None) -> str:
    """The numbers low ... high without leading zeros."""
    if high is None:
        longer = f"[1-9][0-9]{{{len(str(low))},}}"
        return f"(?:{_natural(low, 10 ** len(str(low)) - 1)}|{longer})"
    parts = []
    while low <= high:
        top = min(high, 10 ** len(str(low)) - 1)
        parts += _same_length(str(low), str(top))
        low = top + 1
    return f"(?:{'|'.join(parts)})"


def _same_length(low: str, high: str) -> list[str]:
    """The numbers between two of equally many digits."""
    if low == high:
        return [low]
    if len(low) == 1:
        return [f"[{low}-{high}]"]
    rest = len(low) - 1
    if low[0] == high[0]:
        return [low[0] + f"(?:{'|'.join(_same_length(low[1:], high[1:]))})"]
    parts, first, last = [], int(low[0]), int(high[0])
    if low[1:] != "0" * rest:
        parts.append(low[0] + f"(?:{'|'.join(_same_length(low[1:], '9' * rest))})")
        first += 1
    if high[1:] != "9" * rest:
        parts.append(high[0] + f"(?:{'|'.join(_same_length('0' * rest, high[1:]))})")
        last -= 1
    if first <= last:
        parts.append(f"[{first}-{last}][0-9]{{{rest}}}")
    return parts
