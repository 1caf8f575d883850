"""Regular expressions of JSON numbers between limits."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from unmask.errors import LanguageError, shown

INTEGER = "-?(?:0|[1-9][0-9]*)"
NUMBER = rf"{INTEGER}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{{1,2}})?"
DIGITS = 15  # of a limit; a floating-point number tells so many apart
WHOLE_DIGITS = 27  # of a limit of whole numbers
PLACES = 6  # behind the point of a number between limits, unless a limit has more


def integer(schema: Any) -> str | None:
    """A whole number within the limits of a schema; None if there is none."""
    low, high = _limits(schema, 0)
    if low is None and high is None:
        return INTEGER
    return _signed(low, high, 0)


def number(schema: Any) -> str | None:
    """A number within the limits of a schema; None if there is none.

    Between limits a number has few digits behind its point, so that no rounding takes it to a limit
    that it must not reach.
    """
    limits = [_decimal(schema, word) for word in _LIMITS if word in schema]
    if not limits:
        return NUMBER
    own = max(0, *(-int(limit.as_tuple().exponent) for limit in limits))
    before = max(limit.adjusted() + 1 for limit in limits)
    if own + max(before, 0) > DIGITS:
        raise LanguageError(f"the limits of a number may have {DIGITS} digits in all")
    places = max(own, min(PLACES, DIGITS - max(before, 0)))
    return _signed(*_limits(schema, places), places)


_LIMITS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")


def _decimal(schema: Any, word: str) -> Decimal:
    value = Decimal(repr(schema[word])).normalize()
    if value.adjusted() >= WHOLE_DIGITS:
        raise LanguageError(f"{word} may have {WHOLE_DIGITS} digits, got {shown(schema[word])}")
    return value


def _limits(schema: Any, places: int) -> tuple[int | None, int | None]:
    """The least and the largest number allowed, in units of the last place."""
    units: dict[str, int] = {}
    for word in _LIMITS:
        if word in schema:
            scaled = _decimal(schema, word).scaleb(places)
            upper = word.endswith("aximum")
            whole = int(scaled.to_integral_value(ROUND_FLOOR if upper else ROUND_CEILING))
            beyond = word.startswith("exclusive") and whole == scaled
            units[word] = whole + (-1 if upper else 1) * beyond
    lows = [units[word] for word in _LIMITS[:2] if word in units]
    highs = [units[word] for word in _LIMITS[2:] if word in units]
    return max(lows, default=None), min(highs, default=None)


def _signed(low: int | None, high: int | None, places: int) -> str | None:
    """The numbers low ... high in units of the last place; None if there is none."""
    parts = []
    if high is None or high >= 0:
        parts += _fractional(max(low or 0, 0), high, places)
    if low is None or low < 0:
        least = 1 if high is None else max(-high, 1)
        negative = _fractional(least, None if low is None else -low, places)
        parts += [f"-(?:{'|'.join(negative)})"] if negative else []
    return f"(?:{'|'.join(parts)})" if parts else None


def _fractional(low: int, high: int | None, places: int) -> list[str]:
    """The numbers low ... high >= 0 in units of the last place."""
    if high is not None and low > high:
        return []
    unit = 10**places
    (first, behind), any_fraction = divmod(low, unit), _fraction(0, unit - 1, places)
    if high is None:
        return [
            f"{first}{_fraction(behind, unit - 1, places)}",
            f"{_natural(first + 1, None)}{any_fraction}",
        ]
    last, most = divmod(high, unit)
    if first == last:
        return [f"{first}{_fraction(behind, most, places)}"]
    parts = [
        f"{first}{_fraction(behind, unit - 1, places)}",
        f"{last}{_fraction(0, most, places)}",
    ]
    if last - first > 1:
        parts.append(f"{_natural(first + 1, last - 1)}{any_fraction}")
    return parts


def _fraction(low: int, high: int, places: int) -> str:
    """The point and the digits of fractions low ... high in units of the last place."""
    if not places:
        return ""
    parts = []
    for count in range(1, places + 1):
        unit = 10 ** (places - count)
        least, most = -(-low // unit), high // unit
        if least <= most:
            parts += _same_length(f"{least:0{count}}", f"{most:0{count}}")
    return rf"(?:\.(?:{'|'.join(parts)})){'' if low else '?'}"


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
