r"""Answers of MATH compared as strings: with the normalisation of d1 and of DAEDAL.

Both go back to the MATH benchmark's own script and differ in small things that move figures; each
is kept to the letter, so that figures of others can be repeated. Neither knows that 1/4 is 0.25.
"""

from __future__ import annotations

import re

from unmask.lab.grading.boxed import math_box

_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_THOUSANDS = re.compile(r"(\d),(\d{3})")
_LATEX = (
    ("\n", ""), ("\\!", ""), ("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"),
    ("\\left", ""), ("\\right", ""), ("^{\\circ}", ""), ("^\\circ", ""), ("\\$", ""),
)  # fmt: skip
_PERCENT = (("\\%", ""), ("\\%", ""))  # twice, as the scripts do


def daedal_extract(text: str) -> str | None:
    """The last box; without a box the whole text; if the box does not close, the answer tag."""
    box = math_box(text)
    return _tagged(text) if box is None else box


def daedal_equal(answer: str | None, gold: str) -> bool:
    """Whether two answers are numbers within 1e-6 or equal normalised strings."""
    if answer is None:
        return False
    try:
        one, other = daedal_normal(answer), daedal_normal(gold)
    except ValueError:
        return False
    try:
        if abs(float(one) - float(other)) < 1e-6:
            return True
    except ValueError:
        pass
    return one == other


def daedal_normal(text: str) -> str:
    """DAEDAL's normal form; raises ValueError where its script fails."""
    text = text.strip()
    while _THOUSANDS.search(text):
        text = _THOUSANDS.sub(r"\1\2", text)
    text = _replaced(text, (*_LATEX, *_PERCENT))
    pieces = text.split("\\text{ ")
    text = pieces[0] if len(pieces) == 2 else text  # units
    text = "0" + text if text.startswith(".") else text
    text = text.replace(" .", " 0.")
    text = braced_roots(_right_side(text, strip=True), empty_fails=False).replace(" ", "")
    return _halves(text, whole_only=False)


def d1_extract(text: str) -> str | None:
    """The last box or the whole text, else the content of the answer tag."""
    box = math_box(text)
    return box or _tagged(text) or box


def d1_equal(answer: str | None, gold: str) -> bool:
    """Whether the normalised strings are equal; if the script fails, the plain strings."""
    if answer is None:
        return False
    try:
        return d1_normal(answer) == d1_normal(gold)
    except ValueError:
        return answer == gold


def d1_normal(text: str) -> str:
    """d1's normal form; raises ValueError where its script fails."""
    text = _replaced(text, _LATEX)
    pieces = text.split("\\text{ ")
    if len(pieces) > 2:
        raise ValueError("more than one unit")
    text = _replaced(pieces[0], (*_PERCENT, (" .", " 0."), ("{.", "{0.")))
    if not text:
        return text
    text = "0" + text if text.startswith(".") else text
    text = braced_roots(_right_side(text, strip=False)).replace(" ", "")
    return _halves(text, whole_only=True)


def braced_roots(text: str, empty_fails: bool = True) -> str:
    r"""`\sqrt3` as `\sqrt{3}`."""
    head, *pieces = text.split("\\sqrt")
    if empty_fails and "" in pieces:
        raise ValueError("a root of nothing")
    return head + "".join(
        f"\\sqrt{piece}" if piece[:1] in ("", "{") else f"\\sqrt{{{piece[0]}}}{piece[1:]}"
        for piece in pieces
    )


def braced_fractions(text: str, empty_fails: bool = True) -> str:
    r"""`\frac12` as `\frac{1}{2}`; a text with half a fraction stays as it is."""
    head, *pieces = text.split("\\frac")
    for piece in pieces:
        if not piece and empty_fails:
            raise ValueError("a fraction of nothing")
        if len(piece) < 2 and piece != "{":
            return text
    return head + "".join(f"\\frac{_braced(piece)}" for piece in pieces)


def _braced(piece: str) -> str:
    if piece.startswith("{"):
        return piece
    below = piece[1] if piece[1] == "{" else f"{{{piece[1]}}}"
    return f"{{{piece[0]}}}{below}{piece[2:]}"


def _halves(text: str, whole_only: bool) -> str:
    r"""Fractions in braces, 0.5 and a/b among them; a and b are numbers."""
    text = braced_fractions(text)
    text = "\\frac{1}{2}" if text == "0.5" else text
    sides = text.split("/")
    if len(sides) != 2:
        return text
    if whole_only:  # fails on a/b without numbers, and so does the script
        over, under = (int(side) for side in sides)
        return f"\\frac{{{over}}}{{{under}}}" if text == f"{over}/{under}" else text
    try:
        _ = [float(side) for side in sides]
    except ValueError:
        return text
    return f"\\frac{{{sides[0]}}}{{{sides[1]}}}"


def _right_side(text: str, strip: bool) -> str:
    """What follows `k =`, a name of at most two characters and one equals sign."""
    sides = text.split("=")
    if len(sides) != 2 or len(sides[0]) > 2:
        return text
    return sides[1].strip() if strip else sides[1]


def _replaced(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for old, new in pairs:
        text = text.replace(old, new)
    return text


def _tagged(text: str) -> str | None:
    match = _TAG.search(text)
    return match[1].strip() if match else None
