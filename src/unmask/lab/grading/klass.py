r"""KLASS's scoring of maths: any of the text's answers may match any of the gold solution's.

Source: shkim0116/KLASS at 8c59d015, src/utils.py. All of it is kept to the letter, but for numbers
in a box: by the letter a boxed 33.00 is not 33, which is worth 1.3 points of LLaDA's GSM8K.
"""

from __future__ import annotations

import re

from unmask.lab.grading.mathstrings import braced_fractions

_NUMBER = re.compile(r"-?\d+\.?\d*")
_DECIMAL = re.compile(r"-?\d+\.\d+")
_PATTERNS = (
    (r"\\text{.*?}$", ""),  # a unit, unless nothing else would be left
    (r"\^\{\\circ\}", ""),
    (r"\^\\circ", ""),
    (r"\{(c|m)?m\}(\^(2|3))?", ""),
    (r"p\.m\.$", ""),
    (r"(\d)\s*t$", r"\1"),
)
_REPLACED = (
    ("\\$", ""), ("$", ""), ("x\\in", ""), ("\\%", "%"), ("\\%", "%"), (" .", " 0."), ("{.", "{0."),
    ("\\cdot", ""), ("infinity", "\\infty"),
)  # fmt: skip


def number_answer(text: str, letter: bool = False) -> str:
    """The number after the last "answer is": a box's first, else the first; else the last one."""
    *before, text = text.split("answer is")
    if box := re.search(r"\\boxed\{([^}]+)\}", text):
        content = box[1].strip()
        number = _NUMBER.search(content)
        if number is None:
            return content.replace(",", "")
        return number[0] if letter else _shortened(number[0])
    numbers = _NUMBER.findall(text.replace(",", ""))
    if not numbers:
        return ""
    return _shortened((numbers[0] if before else numbers[-1]).rstrip("."))


def gold_number(answer: str) -> str:
    """The number behind `####`."""
    match = re.search(r"#### (\-?[0-9\.\,]+)", answer)
    return _shortened(match[1].replace(",", "")) if match else ""


def math_equal(problem: str, solution: str, text: str) -> bool:
    """Whether an answer of the text is an answer of the gold solution."""
    return bool(answers(problem, solution) & answers(problem, text))


def answers(problem: str, text: str) -> set[object]:
    """All answers in a text, as sets of parts if the problem asks for several."""
    form = "in the form" in problem
    if "separated by commas" in problem:
        return _parted(_candidates(text, form, commas=True))
    values: set[object] = set()
    for candidate in _candidates(text, form, commas=False):
        parts = re.split(r"\\text\{\s*and\s*\}", candidate)
        values |= {part.strip() for part in parts}
        values |= {value for part in parts if (value := _fraction(part.strip())) is not None}
    return values


def _parted(candidates: list[str]) -> set[object]:
    sets: set[object] = set()
    for candidate in candidates:
        parts = [part.strip() for part in re.sub(r"[()\[\]]", "", candidate).split(",")]
        values = [_fraction(part) for part in parts]
        sets.add(frozenset(parts))
        if any(value is not None for value in values):
            pairs = zip(parts, values, strict=True)
            sets.add(frozenset(part if value is None else value for part, value in pairs))
    return sets


def _candidates(text: str, form: bool, commas: bool) -> list[str]:
    return [_normal(_minor(raw, form, commas)) for raw in _raw_candidates(text)]


def _raw_candidates(text: str) -> list[str]:
    """All boxes, else what follows "answer is", else the last word with a digit."""
    if "boxed" in text:
        return _boxes(text)
    if "answer is" in text:
        sentence = text.split("answer is")[-1].strip()
        sentence = sentence.split(".\n")[0].strip().split(". ")[0].strip()
        return sentence.split(" or ")
    return [next((word for word in reversed(text.split()) if re.search(r"\d", word)), text)]


def _boxes(text: str) -> list[str]:
    pieces = []
    for piece in text.split("boxed{")[1:]:
        depth = 0
        for place, sign in enumerate(piece):
            depth += (sign == "{") - (sign == "}")
            if depth < 0:
                percent = piece[place + 1 : place + 2] == "%"
                pieces.append(piece[: place + 1] if percent else piece[:place])
                break
    return pieces


def _minor(text: str, form: bool, commas: bool) -> str:
    """The answer without its sentence, name, unit, and thousands commas."""
    text = text.strip().lstrip(":").rstrip(".").rstrip("/").replace("\\$", "").replace("$", "")
    text = text.split("is")[-1].strip()
    text = re.sub(r"\\\((.*?)\\\)", r"\1", text)
    text = re.sub(r"\*\*(.*?)\*\*", r"\1", text).strip("*")
    if letters := re.findall(r"\(([A-Za-z])\)", text):
        text = letters[-1]
    words = text.split()
    if len(words) > 1 and all(re.match(r"^[A-Za-z']+$", word) for word in words[:-1]):
        text = words[-1]
    text = _without_unit(text)
    text = text if form else text.split("=")[-1].strip()
    if not commas and not re.search(r"\(\d+,\d+\)", text):
        number = r"-?\d{1,3}(?:,\d{3})*(?:\.\d+)?"
        text = re.sub(number, lambda match: match[0].replace(",", ""), text)
    text = text.rstrip("%").rstrip("°").split(" \\in ")[-1].strip()
    return _shortened(text)


def _without_unit(text: str) -> str:
    words = text.split()
    if len(words) > 1 and words[-1].isalpha():
        if re.search(r"\d", words[-2]):
            return " ".join(words[:-1])
        if len(words) > 2 and re.search(r"\d", words[-3]):
            return " ".join(words[:-2])
    return text


def _normal(text: str) -> str:
    text = text.strip().replace("\n", "").rstrip(".").replace("\\!", "")
    if text.startswith("\\text{") and text.endswith("}"):
        text = text.split("{", 1)[1][:-1]
    for old in ("tfrac", "dfrac", "cfrac"):
        text = text.replace(old, "frac")
    text = text.replace("\\left", "").replace("\\right", "")
    for number, (pattern, new) in enumerate(_PATTERNS):
        shorter = re.sub(pattern, new, text).strip()
        text = shorter if number or (shorter and shorter != text) else text
    for old, new in _REPLACED:
        text = text.replace(old, new)
    if "\\infty" not in text:
        text = text.replace("inf", "\\infty")
    text = text.replace("+\\inity", "\\infty").replace("\\mathbf", "").replace("\\mathrm", "")
    text = re.sub(r"\\mbox{.*?}", "", text)
    if "j" in text and "i" not in text:
        text = text.replace("j", "i")
    text = re.sub(r"(\d+)\.0+([^\d])", r"\1\2", text)
    text = re.sub(r"(\d+)\.0+$", r"\1", text)
    if not text:
        return text
    text = "0" + text if text.startswith(".") else text
    for name in ("sqrt", "tan"):
        text = re.sub(rf"\\{name}(-?[0-9.a-zA-Z]+)", rf"\\{name}{{\1}}", text)
        text = re.sub(rf"\\{name}\s+(\w+)$", rf"\\{name}{{\1}}", text)
    text = _slashed(braced_fractions(text.replace(" ", ""), empty_fails=False))
    return re.sub(r"(\\|,|\.)+$", "", text)


def _slashed(text: str) -> str:
    r"""a/b as `\frac{a}{b}`, whole numbers or roots."""
    sides = text.split("/")
    if len(sides) != 2:
        return text
    try:
        over, under = (side if "sqrt" in side else str(int(side)) for side in sides)
    except ValueError:
        return text
    return f"\\frac{{{over}}}{{{under}}}" if text == f"{over}/{under}" else text


def _fraction(text: str) -> str | None:
    r"""`\frac{a}{b}` of whole numbers as a decimal."""
    if "frac" not in text:
        return None
    rest = text.replace("\\dfrac", "").replace("\\frac", "")
    sides = rest.removeprefix("-").strip("{}").split("}{")
    if len(sides) != 2 or not all(re.fullmatch(r"-?\d+", side) for side in sides):
        return None
    try:
        value = int(sides[0]) / int(sides[1])
    except (ArithmeticError, ValueError):  # division by zero, or too many digits
        return None
    return str(-value if rest.startswith("-") else value)


def _shortened(text: str) -> str:
    """A decimal without the zeros at its end."""
    return text.rstrip("0").rstrip(".") if _DECIMAL.fullmatch(text) else text
