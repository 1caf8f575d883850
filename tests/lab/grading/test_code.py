"""Code in answers: where it is, what of it runs, and DAEDAL's way with it."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.lab.grading import code, daedal_code
from unmask.lab.grading.code import (
    completion,
    defined,
    extracted,
    free_names,
    imports_for,
    kept,
    parseable,
    solution,
)

PROMPT = 'import math\n\n\ndef inc(x):\n    return x + 1\n\n\ndef twice(x):\n    """Double x."""\n'
RIGHT = "def twice(x):\n    return inc(x) * 2 - 2"


def ran(code, call):
    given = {}
    exec(code, given)
    return eval(call, given)


@pytest.mark.parametrize(
    "text",
    [
        f"Here it is:\n```python\n{RIGHT}\n```\nand a test:\n```python\nassert twice(2) == 5\n```",
        f"```\n{RIGHT}\n```",
        f"```python\n{RIGHT}",
        f"```py title\r\n{RIGHT}\n```".replace("\n", "\r\n"),
        f"I would write\n\n{RIGHT}\n\nThis doubles x, as asked.",
        f"[BEGIN]\n '{RIGHT}' \n[DONE] \n\n ",
        f"1. In a list:\n   ```python\n{textwrap.indent(RIGHT, '   ')}\n   ```",
        f"```python\nfrom __future__ import annotations\n{RIGHT}\nprint(twice(input()))\n```",
        f"```python\n{RIGHT}\n\nif __name__ == '__main__':\n    twice(input())\n```",
        f"```python\n{RIGHT}\nassert twice(1) == 7\n```",
        f"```python\n{RIGHT}\nnumber = int(input())\n```",
        f"```python\n{RIGHT}\n\ndef cut(x):\n    if (\n",
        "    y = inc(x)\n    return y * 2 - 2\n",
        "y = inc(x)\nreturn y * 2 - 2",
        "y = inc(x)\n    return y * 2 - 2\n\n\ndef other():\n    pass",
        "```python\n    return inc(x) * 2 - 2\n```",
        "    return math.floor(x) * 2\n\nprint(twice(3))",
    ],
)
def test_the_function_is_found_however_it_is_wrapped(text):
    assert ran(completion(text, PROMPT, "twice"), "twice(4)") == 8


def test_the_first_fence_decides():
    text = f"```python\ndef twice(x):\n    return x\n```\nno:\n```python\n{RIGHT}\n```"
    assert ran(completion(text, PROMPT, "twice"), "twice(4)") == 4


@pytest.mark.parametrize("text", ["", "I do not know.", "```python\n```", "```python\nx = (\n```"])
def test_without_code_the_function_stays_empty(text):
    assert ran(completion(text, PROMPT, "twice"), "twice(4)") is None


def test_the_prompts_imports_and_helpers_stay():
    code = completion(f"```python\n{RIGHT}\n```", PROMPT, "twice")
    assert {"math", "inc", "twice"} <= defined(code)


def test_assignments_stay_where_a_definition_reads_them():
    code = "A = 1\nB = A + 1\nC = print('no')\ndef f(): return B\nf()\nfor i in range(9): print(i)"
    assert kept(code, ["f"]) == "A = 1\n\nB = A + 1\n\ndef f(): return B"
    assert ran(kept(code, ["f"]), "f()") == 2


def test_a_lambda_is_a_definition_of_the_entry():
    assert ran(solution("```\nf = lambda x: x + 1\nprint(f(1))\n```", ["f"]), "f(1)") == 2


def test_guarded_imports_and_decorators_stay():
    code = (
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n\n"
        "@staticmethod\ndef f(): pass"
    )
    assert kept(code + "\nf()", ["f", "numpy"]) == code
    assert "try" not in kept("try:\n    run()\nexcept ValueError:\n    pass", ["f"])


def test_code_that_is_python_from_end_to_end_is_taken_whole():
    assert extracted("K = 5\ndef f(): return K").startswith("K = 5")
    assert extracted("K = 5 will do\ndef f(): return K") == "def f(): return K"


@given(st.text(max_size=80))
def test_no_text_breaks_extraction(text):
    completion(text, PROMPT, "twice")
    solution(f"```python\n{text}\n```", ["f"])
    daedal_code.humaneval_code(text, PROMPT, "twice")
    daedal_code.mbpp_code(f"```python\n{text}\n```")


@given(
    st.lists(st.sampled_from(["x = 1", "def f():", "    return 1", "prose, here", "", "(", "f()"]))
)
def test_what_is_kept_always_parses(lines):
    code = kept(parseable("\n".join(lines)), ["f"])
    assert parseable(code) == code


def test_names_that_tests_need_are_found():
    tests = (
        "def check(g):\n    for i in range(3):\n        assert math.isclose(f(i), g(i))\ncheck(f)"
    )
    assert free_names(tests) == ["math", "f"]
    assert imports_for(tests) == "import math\n"
    assert imports_for(tests, ["math"]) == ""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("```python\ndef f(x):\n    return g(x)\ndef g(x): return x\n```", {"f", "g"}),
        ("```python\ndef g(x): return x\ndef f(x):\n    return g(x)\n```", {"g"}),
        ("```python\ndef f(x): return x", set()),
        ("def f(x): return x", set()),
    ],
)
def test_daedal_wants_a_closed_fence_and_keeps_what_its_first_function_reaches(text, names):
    assert defined(daedal_code.mbpp_code(text)) == names


def test_daedal_drops_functions_without_a_return_from_humaneval_only():
    code = "def show(x):\n    print(x)\ndef twice(x):\n    show(x)\n    return 2 * x"
    assert defined(daedal_code.humaneval_code(code, "", "twice")) == {"twice"}
    assert "show" in defined(
        daedal_code.mbpp_code(f"```python\ndef f(): return show()\n{code}\n```")
    )


def test_daedal_takes_the_longest_run_of_a_hundred_lines():
    assert daedal_code.longest_run("a (\nx = 1\n\ny = 2\nno no\nz = 3") == "x = 1\n\ny = 2"
    assert len(daedal_code.longest_run("x = 1\n" * 200).splitlines()) == 100


def test_a_chain_of_many_elifs_is_read_like_any_other_code():
    chain = "".join(f"elif A == {n}:\n    B = {n}\n" for n in range(1, 400))
    text = f"```python\nA = 7\nif A == 0:\n    B = 0\n{chain}\ndef f():\n    return B\n```"
    assert ran(solution(text, ["f"]), "f()") == 7
    branches = "".join(f"    elif x == {n}:\n        return {n}\n" for n in range(1, 400))
    text = f"```python\ndef f(x):\n    if x == 0:\n        return 0\n{branches}\n```"
    assert ran(solution(text, ["f"]), "f(399)") == 399


def test_a_long_text_after_the_code_costs_no_parse_for_each_of_its_lines(monkeypatch):
    tries = []
    attempted = code._attempted
    monkeypatch.setattr(code, "_attempted", lambda text: tries.append(1) or attempted(text))
    prose = "\n".join(f"This is sentence {n} of many." for n in range(3000))
    assert parseable(f"{RIGHT}\n{prose}") == RIGHT
    assert len(tries) < 5


def test_code_that_takes_too_long_to_read_is_given_up(monkeypatch):
    monkeypatch.setattr(code, "LIMIT", 0.05)
    with pytest.raises(TimeoutError, match=r"more than 0\.05 s to read"):
        parseable("@a\n" * 20_000)
    with pytest.raises(TimeoutError, match=r"more than 0\.05 s to read"):
        daedal_code.longest_run(("x = (" * 50 + "\n") * 100)
