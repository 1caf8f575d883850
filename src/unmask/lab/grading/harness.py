"""Extraction rules of other harnesses, to repeat their figures."""

from __future__ import annotations

import re

_FLEXIBLE = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")
_IGNORED = (re.compile(","), re.compile(r"\$"), re.compile(r"(?s).*#### "), re.compile(r"\.$"))
_ZEROS = re.compile(r"\.0+$")
_PLAIN = re.compile(r"-?\d+\.\d+|-?\d+")
_LOOSE = re.compile(r"-?\d+\.?\d*")
_STRICT_NUMBER = re.compile(r"#### (-?[0-9.,]+)")
_STRICT_PHRASE = re.compile(r"Final Answer: The final answer is(.*?). I hope it is correct.")
_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


def flexible_equal(text: str, answer: str, letter: bool = False) -> bool:
    """lm-eval's flexible-extract and exact match of gsm8k: the last number.

    Its versions differ in whether 33.00 is 33; by the letter of the older ones it is not.
    """
    *_, last = ("[invalid]", *(match[0] for match in _FLEXIBLE.finditer(text)))
    normal = _lm_eval_normal(last.strip())
    return (normal if letter else _ZEROS.sub("", normal)) == _lm_eval_normal(answer)


def strict_equal(text: str, answer: str) -> bool:
    """lm-eval's strict-match of gsm8k: the number behind `####`."""
    match = _STRICT_NUMBER.search(text)
    return match is not None and _lm_eval_normal(match[1]) == _lm_eval_normal(answer)


def _lm_eval_normal(text: str) -> str:
    for pattern in _IGNORED:
        text = pattern.sub("", text)
    return text.lower()


def strict_phrase(text: str) -> str | None:
    """The answer by lm-eval's minerva_math: the text between two fixed phrases."""
    match = _STRICT_PHRASE.search(text + "I hope it is correct.")
    return match[1].strip() if match else None


def opencompass_equal(text: str, gold: str) -> bool:
    """OpenCompass's gsm8k: the last number before "Question:"; it knows no thousands commas."""
    numbers = _PLAIN.findall(text.split("Question:")[0])
    return bool(numbers) and abs(float(numbers[-1]) - int(gold.replace(",", ""))) < 1e-6


def d1_number(text: str) -> float | None:
    """d1's gsm8k: the number in the first box that has one, else the last in the answer tag."""
    for box in re.findall(r"\\boxed{(.*?)}", text):
        content = box.strip()
        if content.strip(".") and (value := _float(content, first=True)) is not None:
            return value
    match = _TAG.search(text)
    return _float(match[1].strip(), first=False) if match else None


def _float(text: str, first: bool) -> float | None:
    try:
        return float(text)
    except ValueError:
        numbers = _LOOSE.findall(text)
        return float(numbers[0 if first else -1]) if numbers else None
