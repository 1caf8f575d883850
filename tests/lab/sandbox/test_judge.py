"""The judge and the candidate in conversation, in one process: what tests can do with proxies."""

from __future__ import annotations

import os
import sys
from threading import Thread

import pytest

from unmask.lab.sandbox.candidate import serve
from unmask.lab.sandbox.judge import Conversation, judge


def verdict(code: str, tests: str, *names: str, most: int = 1 << 20):
    """Reason, detail and flag of a judgement whose candidate is a thread."""
    (asked, requests), (replies, answered) = os.pipe(), os.pipe()
    files = [os.fdopen(asked, "rb"), os.fdopen(answered, "wb"), os.fdopen(replies, "rb")]
    served = Thread(target=serve, args=(*files[:2], most))
    served.start()
    with os.fdopen(requests, "wb") as outgoing:
        conversation = Conversation(outgoing, files[2], most)
        conversation.ready()
        reason, detail = judge(conversation, code, tests, list(names or ["f"]))
    served.join()
    for file in files:
        file.close()
    sys.modules.pop("candidate")
    return reason, detail, conversation.flagged


def passes(code: str, tests: str, *names: str) -> bool:
    reason, detail, _ = verdict(code, tests, *names)
    assert reason != "error", detail
    return reason == "passed"


# Values


def test_arguments_by_position_and_by_name():
    assert passes(
        "def f(a, *b, c=0, **d): return a, b, c, d", "assert f(1, 2, e=3) == (1, (2,), 0, {'e': 3})"
    )


def test_arguments_that_are_changed_in_place_change_in_the_tests():
    code = "def f(a, b, c):\n    a.sort()\n    b['x'].append(2)\n    c.discard(1)"
    tests = "inner = [1]; a, b, c = [3, 1], {'x': inner}, {1, 2}\nf(a, b, c)\n"
    assert passes(code, tests + "assert (a, b, c, inner) == ([1, 3], {'x': [1, 2]}, {2}, [1, 2])")


def test_an_inner_list_keeps_its_identity_when_the_outer_one_shifts():
    tests = "a, b = [1], [2]\nc = [a, b]\nf(c)\nassert c == [[2]] and c[0] is b and a == [1]"
    assert passes("def f(c): c.pop(0)", tests)


def test_an_argument_that_comes_back_is_the_same_object():
    assert passes(
        "def f(x):\n    x.append(1)\n    return x", "a = []\nassert f(a) is a and a == [1]"
    )


def test_changes_are_kept_when_the_call_raises():
    code = "def f(x):\n    x.append(1)\n    raise ValueError"
    assert passes(code, "a = []\ntry: f(a)\nexcept ValueError: pass\nassert a == [1]")


def test_state_of_the_candidate_lasts_from_call_to_call():
    assert passes(
        "seen = []\ndef f(x):\n    seen.append(x)\n    return seen", "f(1)\nassert f(2) == [1, 2]"
    )


# Exceptions


def test_builtin_exceptions_cross_with_their_arguments():
    tests = "try: f()\nexcept KeyError as e: assert e.args == ('k', 1)\nelse: assert False"
    assert passes("def f(): raise KeyError('k', 1)", tests)


def test_other_exceptions_cross_as_their_builtin_base():
    code = "class Odd(LookupError): pass\ndef f(): raise Odd('x')"
    assert passes(code, "try: f()\nexcept LookupError: pass")
    assert verdict(code, "f()")[:2] == ("error", "Odd: x, at: f()")


def test_an_assertion_of_the_candidate_is_its_error_and_one_of_the_tests_a_wrong_answer():
    assert verdict("def f(): assert 0, 'mine'", "f()")[0] == "error"
    assert verdict("def f(): return 1", "\nassert f() == 2, 'no'")[:2] == (
        "wrong",
        "AssertionError: no, at: assert f() == 2, 'no'",
    )


def test_stop_iteration_of_a_function_does_not_end_a_loop_of_the_tests():
    code = "def f(x): raise StopIteration"
    assert verdict(code, "for got in map(f, [1]): assert got == 2")[0] == "error"


def test_an_exit_is_an_error():
    assert verdict("def f(): raise SystemExit(0)", "f()")[0] == "error"


@pytest.mark.parametrize(
    "code", ["def f(:", "raise ValueError", "import nothing_of_that_name", "\0"]
)
def test_code_that_does_not_load_is_an_error(code):
    assert verdict(code, "f()")[0] == "error"


def test_a_name_that_is_not_defined_is_said():
    assert verdict("def g(): pass", "g()", "f", "g")[:2] == (
        "no such function",
        "the code does not define f and g",
    )


# Objects that stay with the candidate


def test_objects_of_the_candidate_can_be_built_linked_and_handed_back():
    code = """
class Node:
    def __init__(self, value): self.value, self.left = value, None
    def double(self): return self.value * 2
def depth(node): return 1 + depth(node.left) if node else 0
"""
    tests = """
root = Node(3)
root.left = Node(4)
assert depth(root) == 2 and root.left.value == 4 and root.double() == 6
"""
    assert verdict(code, tests, "Node", "depth") == ("passed", "", True)


def test_an_unknown_object_equals_nothing_and_flags_the_verdict():
    code = "class A:\n    def __eq__(self, other): return True\ndef f(): return A()"
    for tests in ("assert f() == 1", "assert 1 == f()", "assert f() == f()", "assert [f()] == [1]"):
        assert verdict(code, tests)[::2] == ("wrong", True)


def test_generators_are_read_as_far_as_the_tests_want():
    code = "def f():\n    n = 0\n    while True:\n        yield n\n        n += 1"
    tests = "from itertools import islice\nassert list(islice(f(), 3)) == [0, 1, 2]"
    assert passes(code, tests)


def test_iterators_and_views_can_be_read_measured_and_indexed():
    assert passes("def f(d): return d.keys()", "assert sorted(f({2: 0, 1: 0})) == [1, 2]")
    assert passes("def f(x): return map(str, x)", "assert list(f([1, 2])) == ['1', '2']")
    deque = "from collections import deque\ndef f(): return deque([7, 8])"
    assert passes(deque, "assert len(f()) == 2 and f()[1] == 8 and 7 in f() and f()")


def test_a_function_of_the_candidate_may_be_an_argument_or_an_answer():
    code = "def g(x): return x + 1\ndef f(h): return lambda x: h(x) * 2"
    assert passes(code, "assert f(g)(1) == 4", "f", "g")


# What the judge does not believe


def test_a_fault_that_the_tests_swallow_still_decides():
    code = "def f(): return 'x' * 10_000"
    tests = "try: f()\nexcept: pass"
    assert verdict(code, tests, most=1000)[0] == "bad reply"


def test_tests_that_pass_something_that_cannot_cross_are_not_held_against_the_code():
    assert verdict("def f(x): return x", "f(lambda: 0)")[:2] == (
        "unsupported",
        "the tests pass a function, which cannot be sent to the candidate",
    )


def test_tests_that_are_no_python_are_not_held_against_the_code():
    assert verdict("def f(): pass", "assert f(")[0] == "unsupported"


def test_an_answer_too_deep_to_write_down_is_an_error():
    code = "def f():\n    x = []\n    for _ in range(100_000): x = [x]\n    return x"
    assert verdict(code, "f()")[0] == "error"


# How the code runs


def test_the_code_is_a_module_of_its_own_and_not_the_main_one():
    code = "from __future__ import annotations\nimport dataclasses\n"
    code += "@dataclasses.dataclass\nclass P:\n    x: int = 1\ndef f(): return P().x\n"
    assert passes(code + "if __name__ == '__main__': raise ValueError", "assert f() == 1")


def test_annotations_are_evaluated_unless_the_code_says_otherwise():
    assert verdict("def f(x: Unknown): pass", "f(1)")[0] == "error"


def test_random_numbers_are_the_same_in_every_run():
    code = "import random\ndef f(): return random.random()"
    shown = {verdict(code, "import random\nassert 0, (f(), random.random())")[1] for _ in range(2)}
    assert len(shown) == 1


def test_a_function_may_have_the_name_of_a_builtin():
    assert passes("def sum(a, b): return a * b", "assert sum(2, 5) == 10", "sum")


def test_a_number_with_more_digits_than_python_writes_does_not_end_the_judge():
    for tests in ("assert False, 10**5000", "raise KeyError(10**5000)", "f(10**5000)"):
        reason, detail, _ = verdict("def f(x): raise ValueError(x)", tests)
        assert reason in ("wrong", "error")
        assert detail
