"""The interpreter does what Python does, within its limits."""

from __future__ import annotations

import warnings
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.embedded.tasks.interpreter import LARGEST, MOST_ITEMS, ProgramError, call, parse

LIMITS = ("beyond", "more than", "multiplying", "in a list", "recursion")


def run(text, *arguments):
    return call(parse(text), "f", *arguments)


def body(*lines):
    return "def f(x):\n" + "".join(f"    {line}\n" for line in lines)


def result_or_error(text, arguments):
    try:
        return run(text, *arguments)
    except ProgramError as error:
        return error


def assert_agrees_with_python(text, *arguments):
    """The same result as Python, or an error in both; only the limits may add an error."""
    actual = result_or_error(text, arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {}
        exec(text, names)
    try:
        wanted = repr(names["f"](*deepcopy(arguments)))
    except (ArithmeticError, LookupError, NameError, TypeError, ValueError):
        wanted = None
    refused = isinstance(actual, ProgramError)
    if refused and wanted is not None:
        assert any(limit in str(actual) for limit in LIMITS), (text, actual)
    else:
        assert (None if refused else repr(actual)) == wanted, text


def joined(pattern, *parts):
    return st.tuples(*parts).map(lambda actual: pattern.format(*actual))


def indented(text):
    return "\n".join(f"    {line}" for line in text.splitlines())


def numbers_from(inner):
    binary = st.sampled_from(("+", "-", "*", "//", "%"))
    compare = st.sampled_from(("<", "<=", ">", ">=", "==", "!="))
    return st.one_of(
        joined("({} {} {})", inner, binary, inner),
        joined("({} {} {})", inner, compare, inner),
        joined("({} {} {} {} {})", inner, compare, inner, compare, inner),
        joined("({} {} {})", inner, st.sampled_from(("and", "or")), inner),
        joined("({} {})", st.sampled_from(("-", "+", "not")), inner),
        joined("({} if {} else {})", inner, inner, inner),
        joined("abs({})", inner),
        joined("max({}, {})", inner, inner),
    )


def lists_from(inner):
    test = st.sampled_from(("y > 2", "y % 2 == 0", "y", "not y < x"))
    end = st.sampled_from(("", "0", "1", "-2", "x"))
    return st.one_of(
        joined("[{}, {}]", inner, inner),
        joined("({} + {})", inner, inner),
        joined("[y * 2 for y in {} if {}]", inner, test),
        joined("[{} for y in {}]", inner | st.just("y - x"), inner),
        joined("sorted({})", inner),
        joined("sorted(y - x for y in {})", inner),
        joined("{}[{}:{}]", inner, end, end),
        joined("{}[::{}]", inner, st.sampled_from(("-1", "2", "0", "-3"))),
        joined("{}[{}]", inner, st.sampled_from(("0", "-1", "5", "x"))),
        joined("{}({})", st.sampled_from(("len", "sum", "max", "min")), inner),
        joined("sum(y for y in {} if {})", inner, test),
        joined("({} == {})", inner, inner),
        joined("({} and {})", inner, inner),
        joined("({} if {} else {})", inner, inner, inner),
    )


ATOM = st.sampled_from(("x", "x", "0", "1", "2", "-5", "True", "None"))
NUMBER = st.recursive(ATOM, numbers_from, max_leaves=8)
LIST = st.recursive(
    st.sampled_from(("xs", "xs", "[]", "[4]", "[3, -1, 2]", "x", "2")), lists_from, max_leaves=5
)
SHORT = numbers_from(ATOM)  # and loops of two rounds: even squares of squares stay small
SIMPLE = st.one_of(
    joined("{} = {}", st.sampled_from("xyz"), SHORT),
    joined("{} {}= {}", st.sampled_from("xyz"), st.sampled_from(("+", "-", "*", "//")), SHORT),
    joined("x = y = {}", SHORT),
    joined("xs += [{}]", SHORT),
    joined("ys = xs{}", st.sampled_from(("", "[:]", " + [1]"))),
    joined("return {}", SHORT),
    st.just("pass"),
)


def blocks_from(inner):
    several = st.lists(inner, min_size=1, max_size=3).map("\n".join).map(indented)
    return st.one_of(
        inner,
        joined("if {}:\n{}\nelse:\n{}", SHORT, several, several),
        joined("for z in xs[:2]:\n{}", several),
    )


STATEMENTS = st.lists(blocks_from(blocks_from(SIMPLE)), max_size=4).map("\n".join)


@settings(max_examples=200)
@given(code=NUMBER, x=st.integers(-9, 9))
def test_arithmetic_and_choices_are_pythons(code, x):
    assert_agrees_with_python(f"f = lambda x: {code}", x)


@settings(max_examples=200)
@given(code=LIST, x=st.integers(-3, 3), xs=st.lists(st.integers(-9, 9), max_size=5))
def test_lists_are_pythons(code, x, xs):
    assert_agrees_with_python(f"f = lambda x, xs: {code}", x, xs)


@settings(max_examples=200)
@given(code=STATEMENTS, x=st.integers(-9, 9), xs=st.lists(st.integers(-9, 9), max_size=4))
def test_statements_are_pythons(code, x, xs):
    lines = f"y = 1\nys = xs\n{code}\nreturn [x, y] + xs + ys"
    assert_agrees_with_python(f"def f(x, xs):\n{indented(lines)}", x, xs)


@pytest.mark.parametrize(
    "lines",
    [
        ("ys = x", "x += [1]", "return ys"),
        ("ys = x", "x = x + [1]", "return ys"),
        ("ys = x or [1]", "ys += x", "return x"),
        ("for y in x:", "    x = x + [y]", "return x"),
        ("for y in x:", "    if len(x) < 9:", "        x += [y]", "return x"),
        ("for y in x: pass", "else: x = [0]", "return x"),
        ("for y in []: pass", "return y"),
        ("if x: z = 1", "return z"),
        ("y = [y for y in x if y > 1 if y < 9]", "return y"),
        ("y = 1", "z = [y for y in x]", "return y"),
        ("return [z for z in x if z == max(y for y in x)]",),
        ("return len(y for y in x)",),
        ("return (y for y in x)[0]",),
        ("x *= 2", "return x"),
        ("x -= [1]", "return x"),
        ("x += 1", "return x"),
        ("return",),
        ("pass",),
    ],
)
@pytest.mark.parametrize("given_", [[], [3, 1, 2]])
def test_names_and_lists_behave_as_pythons(lines, given_):
    assert_agrees_with_python(body(*lines), given_)


@pytest.mark.parametrize("code", ["1if x else 2", "0x10if x else 2", "-7 // 2", "-7 % 3", "1_000"])
def test_odd_spellings_are_read_without_a_warning(code):
    assert_agrees_with_python(f"f = lambda x: {code}", 1)


def test_numbers_and_lists_go_up_to_their_limits():
    assert run("f = lambda x: x * x", 10**6) == LARGEST
    with pytest.raises(ProgramError, match="beyond"):
        run("f = lambda x: x * x + 1", 10**6)
    half = [0] * (MOST_ITEMS // 2)
    assert len(run("f = lambda x: x + x", half)) == MOST_ITEMS
    with pytest.raises(ProgramError, match="a list of more"):
        run("f = lambda x: x + x + [1]", half)


def test_the_arguments_stay_as_they_are():
    given_ = [1, 2]
    assert run("def f(x):\n    x += [3]\n    return x", given_) == [1, 2, 3]
    assert given_ == [1, 2]
    assert run("f = lambda x: x", given_) is not given_


def test_calls_share_nothing():
    program = parse("def f(x):\n    y = [1]\n    y += x\n    return y")
    assert [call(program, "f", [n]) for n in (2, 3)] == [[1, 2], [1, 3]]
