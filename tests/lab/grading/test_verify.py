"""math-verify in its own process: what it accepts, and what happens when it hangs or dies."""

from __future__ import annotations

import sys
import time
from importlib.metadata import PackageNotFoundError

import pytest

from unmask.errors import UnmaskError
from unmask.lab.grading import verify
from unmask.lab.grading.verify import Verified, Verifier

WORKER = """
import json, sys, time
print('{"ready": true}', flush=True)
for line in sys.stdin:
    answer = json.loads(line)["answers"][0]
    if answer == "hang": time.sleep(60)
    if answer == "die": sys.exit(3)
    if answer == "fail": print('{"right": false, "used": null, "error": "ValueError"}', flush=True)
    else: print(json.dumps({"right": answer == "yes", "used": 0}), flush=True)
"""


@pytest.fixture
def fake():
    with Verifier(0.2, [sys.executable, "-c", WORKER]) as verifier:
        yield verifier


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("10,\\!080", "10080", True),
        ("\\frac{11}{2}", "5.5", True),
        ("p - q", "-q + p", True),
        ("\\text{Ida}", "\\text{Ida}", True),
        ("(3,4]", "(3, 4]", True),
        ("(3,4]", "[3, 4]", False),
        ("\\sqrt{51}", "51", False),
        ("36^\\circ", "36", True),
    ],
)
def test_equal_formulas_are_equal_however_they_are_written(tools, gold, answer, right):
    verdict = tools.verifier.equal(f"\\boxed{{{gold}}}", f"so \\boxed{{{answer}}}")
    assert verdict.right is right


def test_the_first_text_that_can_be_read_decides(tools):
    assert tools.verifier.equal("\\boxed{5}", "nothing", "$5$") == Verified(True, "equal", 1)
    assert tools.verifier.equal("\\boxed{5}", "\\boxed{6}", "$5$") == Verified(
        False, "different", 0
    )
    assert tools.verifier.equal("\\boxed{5}", "nothing") == Verified(False, "unparsed")


@pytest.mark.long
def test_an_answer_that_hangs_is_not_verified_and_the_next_one_is(fake):
    begin = time.perf_counter()
    assert fake.equal("5", "hang") == Verified(False, "timeout")
    assert time.perf_counter() - begin < 5
    assert fake.equal("5", "yes").right
    assert fake.restarts == 1


def test_a_worker_that_dies_is_replaced(fake):
    assert fake.equal("5", "die") == Verified(False, "failed")
    assert fake.equal("5", "yes").right


def test_an_answer_that_breaks_the_parser_is_not_verified(fake):
    assert fake.equal("5", "fail") == Verified(False, "failed")
    assert fake.restarts == 0


def test_a_worker_that_does_not_start_is_one_line():
    with pytest.raises(UnmaskError, match=r"math-verify does not start; see what .* says"):
        Verifier(command=[sys.executable, "-c", "import sys; sys.exit(1)"]).equal("5", "5")


def test_without_math_verify_the_extra_is_named(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(verify, "version", missing)
    with pytest.raises(UnmaskError, match=r"install unmask\[lab\]"):
        Verifier().equal("5", "5")


def test_the_limit_is_checked():
    with pytest.raises(UnmaskError, match="must be > 0 seconds, got 0"):
        Verifier(0)


@pytest.mark.long
def test_a_formula_without_end_is_stopped_by_its_limit():
    with Verifier(limit=1) as verifier:
        assert verifier.equal("\\boxed{1}", "\\boxed{9^{9^{9^{9}}}}") == Verified(False, "timeout")


def test_closing_twice_is_no_error(fake):
    fake.equal("5", "yes")
    fake.close()
    fake.close()
