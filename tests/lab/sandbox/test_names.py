"""Which names the tests of a problem use."""

from __future__ import annotations

from unmask.lab.sandbox import used_names


def test_names_are_those_that_the_reference_defines_and_the_tests_mention():
    reference = "import math\nclass Node: pass\ndef unused(): pass\ndef f(x):\n    def g(): pass"
    assert used_names("assert f(Node()) == math.pi and g", reference) == ("f", "Node")


def test_a_reference_may_shadow_a_builtin():
    assert used_names("assert sum(1, 2) == 3", "def sum(a, b): return a + b") == ("sum",)
    assert used_names("assert sum([1, 2]) == f(3)", "def f(x): return x") == ("f",)
