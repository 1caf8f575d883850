"""The interpreter rejects programs that could do harm, run forever or fill the memory."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from unmask.embedded.tasks.interpreter import MOST_CHARACTERS, ProgramError, call, parse


def run(text, *arguments):
    return call(parse(text), "f", *arguments)


def body(*lines):
    return "def f(x):\n" + "".join(f"    {line}\n" for line in lines)


REFUSED = {
    "import": "import os\ndef f(x): return x",
    "import inside": body("import os", "return x"),
    "import from": body("from os import path", "return x"),
    "import call": "f = lambda x: __import__('os')",
    "attribute": "f = lambda x: x.real",
    "method": body("x.append(1)", "return x"),
    "class of a class": "f = lambda x: x.__class__.__bases__",
    "dunder name": "f = lambda x: __builtins__",
    "dunder argument": "f = lambda __debug__: __debug__",
    "dunder variable": body("__debug__ = x", "return x"),
    "dunder function": "def __build_class__(x): return x\nf = lambda x: x",
    "while": body("while True: pass", "return x"),
    "recursion": "def f(x): return f(x)",
    "mutual recursion": "g = lambda x: f(x)\nf = lambda x: g(x)",
    "another function": "g = lambda x: x\nf = lambda x: g(x)",
    "function as value": "f = lambda x: f",
    "builtin as value": "f = lambda x: sum",
    "open": "f = lambda x: open(x)",
    "eval": "f = lambda x: eval(x)",
    "exec": body("exec(x)", "return x"),
    "getattr": "f = lambda x: getattr(x, x)",
    "print": body("print(x)", "return x"),
    "call of a call": "f = lambda x: abs(x)(x)",
    "call of a lambda": "f = lambda x: (lambda y: y)(x)",
    "power": "f = lambda x: 9 ** 9 ** 9 ** 9",
    "power of x": "f = lambda x: x ** x",
    "power in place": body("x **= 999999", "return x"),
    "shift": "f = lambda x: 1 << 10 ** 9",
    "true division": "f = lambda x: x / 2",
    "bits": "f = lambda x: ~x | x & x ^ x",
    "matrix product": "f = lambda x: x @ x",
    "list times number": "f = lambda x: [0] * 999999999",
    "number times list": "f = lambda x: 999999999 * [0]",
    "list times in place": body("y = [0]", "y *= 999999999", "return y"),
    "range": "f = lambda x: sum(range(10 ** 9))",
    "loop over range": body("for i in range(1000000000): x += 1", "return x"),
    "loop over number": body("for i in x: pass", "return x"),
    "endless list": body("y = [1]", "for z in y: y += [z]", "return y"),
    "doubling list": body("y = [1]", *["y = y + y"] * 64, "return y"),
    "growing in place": body("y = [1]", *["y += y"] * 64, "return y"),
    "doubling number": body("y = 9", *["y = y * y"] * 64, "return y"),
    "nested loops": "f = lambda x: [a for a in [1] for b in [1] for c in [1]]",
    "list in a list": "f = lambda x: [[x]]",
    "lists in a list": "f = lambda x: [[y] for y in [x]]",
    "lists twice in lists": body("y = z = 1", *["y = [y, y]", "z = [z, z]"] * 40, "return y == z"),
    "lists in a sum": "f = lambda x: sum(([y] for y in [x]), [])",
    "string": "f = lambda x: 'text'",
    "bytes": "f = lambda x: b'text'",
    "f-string": "f = lambda x: f'{x}'",
    "format": "f = lambda x: '%99999999d' % x",
    "docstring": body("'''What it does.'''", "return x"),
    "float": "f = lambda x: 1e308",
    "complex": "f = lambda x: 1j",
    "ellipsis": "f = lambda x: ...",
    "keyword": "f = lambda x: sorted([x], reverse=True)",
    "keywords": "f = lambda x: sorted([x], **x)",
    "starred call": "f = lambda x: max(*[x, x])",
    "starred list": "f = lambda x: [*[x]]",
    "star argument": "f = lambda *x: x",
    "double star argument": "f = lambda x, **y: x",
    "default": "f = lambda x, y=1: x",
    "list as default": "def f(x, y=[]): return x",
    "keyword only": "def f(x, *, y=1): return x",
    "position only": "def f(x, /): return x",
    "argument twice": "def f(x, x): return x",
    "annotation": "def f(x: int): return x",
    "annotated result": "def f(x) -> print(1): return x",
    "annotated variable": body("y: int = x", "return y"),
    "decorator": "@abs\ndef f(x): return x",
    "nested function": body("def g(y): return y", "return x"),
    "nested lambda": body("g = lambda y: y", "return x"),
    "nested class": body("class C: pass", "return x"),
    "class": "class f: pass",
    "async function": "async def f(x): return x",
    "async loop": "f = lambda x: [y async for y in [x]]",
    "await": "f = lambda x: await x",
    "yield": body("yield x"),
    "yield from": body("yield from [x]"),
    "global": body("global y", "y = x", "return y"),
    "nonlocal": body("nonlocal y", "return x"),
    "walrus": "f = lambda x: (y := x)",
    "delete": body("y = x", "del x", "return y"),
    "assert": body("assert x", "return x"),
    "raise": body("raise x"),
    "try": body("try: y = x", "finally: y = x", "return x"),
    "with": body("with x: pass", "return x"),
    "match": body("match x:", "    case _: return x"),
    "break": body("for y in [x]: break", "return x"),
    "expression": body("x", "return x"),
    "tuple": "f = lambda x: (x, x)",
    "unpacking": body("a, b = [x, x]", "return x"),
    "unpacking a list": body("[a, b] = [x, x]", "return x"),
    "assignment to an item": body("y = [x]", "y[0] = 1", "return x"),
    "item in place": body("y = [x]", "y[0] += 1", "return x"),
    "assignment to a slice": body("y = [x]", "y[:] = [1]", "return x"),
    "item as loop variable": body("y = [x]", "for y[0] in [1]: pass", "return x"),
    "dictionary": "f = lambda x: {x: x}",
    "set": "f = lambda x: {x}",
    "membership": "f = lambda x: x in [x]",
    "identity": "f = lambda x: x is x",
    "builtin as argument": "def f(sum): return sum",
    "builtin as variable": body("len = x", "return x"),
    "builtin as loop variable": "f = lambda x: [len for len in [x]]",
    "builtin as function": "def abs(x): return 0\nf = lambda x: abs(x)",
    "statement outside": "x = 1\nf = lambda x: x",
    "two names for a lambda": "f = g = lambda x: x",
    "generator as result": "f = lambda x: (y for y in [x])",
    "generator in a loop": body("for y in (z for z in [x]): x = y", "return x"),
    "generator beside a number": "f = lambda x: max((y for y in [x]), x)",
    "unknown name": "f = lambda x: y",
    "too many arguments": "f = lambda x, y: x",
    "no function": "g = lambda x: x",
    "nothing": "",
    "null": "f = lambda x: x\0",
    "half a character": "f = lambda x: '\ud800'",
    "half a program": "def f(x",
    "zero": "f = lambda x: 1 // 0 + 1 % 0",
    "empty maximum": "f = lambda x: max([])",
    "beyond the end": "f = lambda x: [x][5]",
    "step of zero": "f = lambda x: [x][::0]",
    "order of lists and numbers": "f = lambda x: [x] < x",
    "huge number": f"f = lambda x: {'9' * 1900}",
    "huge hexadecimal": f"f = lambda x: 0x{'f' * 1900}",
    "long text": "f = lambda x: x" + " " * MOST_CHARACTERS + "+ 1",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_whatever_is_not_known_is_refused_in_one_way(text):
    with pytest.raises(ProgramError, match=r"\w"):
        run(text, 3)


@pytest.mark.parametrize(
    "line", ["yield x", "import os", "global y", "len = 1", "x.y", "'text'", "while x: pass"]
)
def test_what_is_never_reached_is_refused_too(line):
    with pytest.raises(ProgramError):
        parse(body("return x", line))


@pytest.mark.parametrize("depth", [50, 150, 300, 900, 1800])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("(", ")"),
        ("[", "]"),
        ("abs(", ")"),
        ("-", ""),
        ("not ", ""),
        ("1+", ""),
        ("1 if x else ", ""),
    ],
)
def test_deep_nesting_gives_a_result_or_is_refused(opening, closing, depth):
    text = f"f = lambda x: {opening * depth}x{closing * depth}"
    try:
        run(text, 3)
    except ProgramError:
        assert depth > 50 or opening == "["


@pytest.mark.parametrize("opening", ["(", "[", "{", "-", "lambda: ", "x[", "not ", "if x:\n", "f("])
def test_endless_nesting_is_refused_before_the_parser_sees_it(opening):
    with pytest.raises(ProgramError, match="more than"):
        parse(opening * 1_000_000)


def test_blocks_nested_too_deeply_are_refused():
    lines = [" " * depth + "if x:" for depth in range(60)]
    with pytest.raises(ProgramError):
        run("\n".join(lines), 3)


FULL = ("y = [3, 1, 2, 5]", *["y = y + y[::-1]"] * 7)  # 512 items
GREEDY = {
    "sorting": body(*FULL, "for a in y:", "    for b in y: z = sorted(y)", "return z"),
    "joining": body(*FULL, "for a in y:", "    for b in y: z = y + y[:400]", "return z"),
    "comparing": body(*FULL, "z = y[:]", "for a in y:", "    for b in y: x = y == z", "return x"),
    "summing": body(*FULL, "return sum(sum(sum(y) for a in y) for b in y)"),
    "nesting": body(*FULL, "return [len([len([a for a in y]) for b in y]) for c in y]"),
    "filtering": body(*FULL, "return [a for a in y if len([b for b in y if b > a]) > 1]"),
}


@pytest.mark.parametrize("text", GREEDY.values(), ids=GREEDY)
def test_a_greedy_program_ends_soon_and_in_little_memory(text):
    begin = time.perf_counter()
    with pytest.raises(ProgramError, match="more than"):
        run(text, 3)
    assert time.perf_counter() - begin < 5
    tracemalloc.start()
    with pytest.raises(ProgramError, match="more than"):
        run(text, 3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000
