r"""The contents of `\boxed{...}`: ours, and as the MATH scripts read them."""

from __future__ import annotations

import re

_BOX = re.compile(r"\\(?:boxed|fbox)(?:\s*(?P<brace>\{)|\s+(?P<bare>[^\s{}$\\]+))")


def boxes(text: str) -> list[str]:
    r"""The contents of all boxes that close, in order; `\{` and `\}` are not braces."""
    boxes = []
    for match in _BOX.finditer(text):
        if match["bare"]:
            boxes.append(match["bare"].rstrip(".,;"))
        elif (end := _closing(text, match.end())) is not None:
            boxes.append(text[match.end() : end])
    return boxes


def last_box(text: str) -> str | None:
    """The last box with anything in it."""
    return next((box.strip() for box in reversed(boxes(text)) if box.strip()), None)


def _closing(text: str, start: int) -> int | None:
    depth, place = 1, start
    while place < len(text):
        match text[place]:
            case "\\":
                place += 1  # skips the escaped character
            case "{":
                depth += 1
            case "}":
                depth -= 1
                if not depth:
                    return place
        place += 1
    return None


def math_box(text: str) -> str | None:
    r"""The last box by the MATH scripts' rule, which d1 and DAEDAL also use.

    Without a box it is the whole text; with a last box that does not close, None. Where `\boxed `
    with a space occurs anywhere, what follows its last occurrence up to a dollar sign.
    """
    if "\\boxed " in text:
        return text.split("\\boxed ")[-1].split("$")[0]
    start = text.rfind("\\boxed")
    if start < 0:
        start = text.rfind("\\fbox")
    if start < 0:
        return text
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if text[place] == "}" and depth == 0:
            box = text[start : place + 1]
            return box[len("\\boxed{") : -1] if box.startswith("\\boxed{") else box
    return None
