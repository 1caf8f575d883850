"""The number that a text gives as its answer: GSM8K's rule."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from unmask.lab.grading.boxed import boxes

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)"
_SIGN = r"(?P<sign>(?<![\w.)\]}])[-−])?"  # after a digit or a bracket it is a subtraction
_MONEY = r"(?:\\?[$€£]\s?)?"
_NUMBER = re.compile(rf"{_SIGN}{_MONEY}(?P<digits>{_DIGITS}(?:\.\d+)?|\.\d+)")
_FRACTION = re.compile(
    rf"{_SIGN}{_MONEY}(?P<units>{_DIGITS}\s*)?\\[dt]?frac\{{(?P<over>\d+)\}}\{{(?P<under>\d+)\}}"
    rf"|(?P<minus>(?<![\w.)\]}}])[-−])?{_MONEY}(?P<top>{_DIGITS})\s*/\s*(?P<bottom>\d+)(?![\d/.])"
)
_PHRASE = re.compile(r"answer\s+is", re.IGNORECASE)
_SPACE = re.compile(r"\\[!,;: ]|\{,\}")
_ENDLESS = re.compile(r"[\d,]{120,}")  # too long to be an answer


class NumberMatch(NamedTuple):
    """A number, and the rule that matched it."""

    value: Fraction | None
    rule: str  # box, phrase, last or none


def answer_number(text: str) -> NumberMatch:
    r"""The last boxed number, else the number after "answer is", else the last number.

    Thousands commas, currency signs and units are no part of a number. In a box and after the
    phrase `\frac{a}{b}` and a/b are numbers, and what follows an equals sign goes first.
    """
    for box in reversed(boxes(text)):
        if (value := first_number(box)) is not None:
            return NumberMatch(value, "box")
    *_, phrase = (None, *_PHRASE.finditer(text))
    if phrase is not None:
        line = text[phrase.end() :].lstrip(" \t\r\n:*").partition("\n")[0]
        if (value := first_number(line)) is not None:
            return NumberMatch(value, "phrase")
    numbers = all_numbers(text)
    return NumberMatch(numbers[-1], "last") if numbers else NumberMatch(None, "none")


def first_number(text: str) -> Fraction | None:
    """The first number or fraction after the last equals sign that is followed by one."""
    for part in reversed(_tidy(text).split("=")):
        number, fraction = _NUMBER.search(part), _FRACTION.search(part)
        if fraction and number and fraction.start() <= number.start():
            number = None
        if number:
            return _decimal(number)
        if fraction and (value := _fraction(fraction)) is not None:
            return value
    return None


def all_numbers(text: str) -> list[Fraction]:
    """Every decimal number, in order."""
    return [_decimal(match) for match in _NUMBER.finditer(_tidy(text))]


def _tidy(text: str) -> str:
    """LaTeX's thousands commas as plain ones, without its small spaces and endless digits."""
    text = _SPACE.sub(lambda match: "," if match[0] == "{,}" else "", text)
    return _ENDLESS.sub(" ", text)


def _decimal(match: re.Match[str]) -> Fraction:
    value = Fraction(match["digits"].replace(",", ""))
    return -value if match["sign"] else value


def _fraction(match: re.Match[str]) -> Fraction | None:
    over, under = match["over"] or match["top"], match["under"] or match["bottom"]
    if not int(under):
        return None
    units = (match["units"] or "0").strip().replace(",", "")
    value = int(units) + Fraction(int(over.replace(",", "")), int(under))
    return -value if match["sign"] or match["minus"] else value
