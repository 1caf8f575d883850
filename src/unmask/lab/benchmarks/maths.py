"""Shared by GSM8K and MATH-500: the prompt of d1 and DAEDAL, and scorers."""

from __future__ import annotations

from collections.abc import Callable

from unmask.lab.benchmarks.example import Example
from unmask.lab.grading.mathstrings import daedal_equal, daedal_extract
from unmask.lab.grading.response import Response
from unmask.lab.grading.scorer import Ruling, Scorer
from unmask.lab.grading.tools import Tools

DAEDAL = "DAEDAL's harness, as yjyddq/rho-EOS has it at c97c56c9: dllm_eval/tasks"
EXPERT = (  # word for word, the space before the line break too
    "You are a math expert. You will be given a question to solve. Solve it step by step. "
    "Wrap the final answer in a \\boxed{}. \nRespond in the following format:\n<reasoning>\n"
    "Your reasoning here\n</reasoning>\n<answer>\n\\boxed{...}\n</answer>"
)
REASONING = "<reasoning>"


def by_text(name: str, about: str, right: Callable[[Example, Response], bool]) -> Scorer:
    """A scorer that needs nothing but the text."""
    return Scorer(name, about, lambda example, response, _: Ruling(right(example, response)))


def in_box(answer: str) -> str:
    """An answer as a model would box it."""
    return f"\\boxed{{{answer}}}"


def daedal(example: Example, response: Response, _: Tools) -> Ruling:
    """DAEDAL's rule for both tasks."""
    answer = daedal_extract(response.whole)
    return Ruling(daedal_equal(answer, example.reference), {"answer": (answer or "")[-200:]})


def _whole_text(example: Example, response: Response, tools: Tools) -> Ruling:
    verified = tools.verifier.equal(in_box(example.reference), response.cut)
    return Ruling(verified.right, {"reason": verified.reason})


DAEDAL_RULE = Scorer("daedal", "last box of all the text, as a string (DAEDAL)", daedal)
WHOLE_TEXT = Scorer("math-verify", "math-verify on the text up to its end", _whole_text)
