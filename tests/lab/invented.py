"""Benchmark files of invented problems in the sizes that are checked, and a judge for them."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from dataclasses import dataclass
from pathlib import Path

FORMULAS = ("\\frac{1}{2}", "12", "(3, 4]", "\\sqrt{2}", "p - q", "\\text{Ida}", "10,\\!080")


@dataclass(frozen=True)
class Said:
    """A verdict."""

    passed: bool
    reason: str = ""
    detail: str = ""
    flagged: bool = False


def judge(programs):
    """Run trusted programs in this process, the last first."""
    for place in reversed(range(len(programs))):
        yield place, _judged(programs[place])


def _judged(program):
    given = {}
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(program.code, given)
            exec(program.tests, {name: given[name] for name in program.names})
    except Exception as error:
        return Said(False, type(error).__name__, str(error))
    return Said(True, "passed")


def gsm8k(number):
    return {
        "question": f"Ida has {number} plums and finds 1,000 more. How many now?",
        "answer": f"She has {number} + 1000 = <<{number}+1000>>.\n#### {number + 1000:,}",
    }


def math500(number):
    answer = FORMULAS[number % len(FORMULAS)]
    return {
        "problem": f"Problem {number}: which formula is on the card?",
        "solution": f"It says $\\boxed{{{answer}}}$.",
        "answer": answer,
        "unique_id": f"test/cards/{number}.json",
    }


def humaneval(number):
    prompt = (
        "import math\n\n\ndef helper(x):\n    return x + 1\n\n\n"
        f'def add_{number}(x):\n    """Add {number} to x.\n    """\n'
    )
    test = f"def check(candidate):\n    assert candidate(helper(1)) == {number + 2}\n"
    return {
        "task_id": f"HumanEval/{number}",
        "prompt": prompt,
        "entry_point": f"add_{number}",
        "canonical_solution": f"    return math.floor(helper(x)) + {number} - 1\n",
        "test": test,
    }


def mbpp(number):
    name = f"times_{number}"
    return {
        "task_id": number,
        "text": f"Write a function to multiply by {number}.",
        "code": f"K = {number}\r\ndef inner(x):\r\n  return x * K\r\n"
        f"def {name}(x):\r\n  return inner(x)",
        "test_list": [f"assert {name}({x}) == {number * x}" for x in (1, 2, 3)],
        "test_setup_code": "",
        "sanitized": 11 <= number < 11 + 257 or number > 600,
    }


FILES = {
    "gsm8k_test.jsonl": [gsm8k(n) for n in range(1319)],
    "math500.jsonl": [math500(n) for n in range(500)],
    "humaneval.jsonl": [humaneval(n) for n in range(164)],
    "mbpp.jsonl": [mbpp(n) for n in range(1, 975)],
}


def write(folder: Path) -> Path:
    """All four files."""
    for name, records in FILES.items():
        write_lines(folder / name, records)
    return folder


def write_lines(file: Path, records) -> Path:
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file
