"""What crosses between judge and candidate: exact types, one identity, nothing unknown."""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, namedtuple
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.lab.sandbox.wire import WireReader, WireWriter


def refer(value):
    raise LookupError(type(value).__name__)


def resolve(tag, body):
    raise KeyError(tag)


def crossed(value):
    """The value as it arrives on the other side."""
    data = WireWriter([], refer).encode(value)
    return WireReader([], resolve).decode(json.loads(json.dumps(data)))


scalars = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.fractions() | st.decimals(allow_nan=False),
    st.sampled_from(
        [None, True, False, 1j, b"\xff", 2**64, -(2**63), range(9, 0, -2), int, KeyError]
    ),
)
hashable = scalars | st.tuples(scalars, scalars) | st.frozensets(scalars, max_size=3)
values = st.recursive(
    hashable | st.sets(hashable, max_size=3),
    lambda part: st.one_of(
        st.lists(part, max_size=3),
        st.tuples(part, part),
        st.dictionaries(hashable, part, max_size=3),
    ),
    max_leaves=8,
)


@given(value=values)
def test_plain_values_arrive_as_they_were(value):
    assert repr_of_types(crossed(value)) == repr_of_types(value)
    assert crossed(value) == value


def repr_of_types(value):
    """The types of a value and its parts: 1, True and 1.0 are equal but not the same."""
    if isinstance(value, dict):
        return [(repr_of_types(key), repr_of_types(part)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [type(value), *map(repr_of_types, value)]
    return type(value)


def test_numbers_without_end_and_lone_surrogates_arrive():
    assert math.isnan(crossed(math.nan))
    assert crossed([math.inf, -math.inf]) == [math.inf, -math.inf]
    assert str(crossed(-0.0)) == "-0.0"
    assert crossed("\ud800") == "\ud800"
    assert crossed(-(7**9999)) == -(7**9999)  # more digits than int() reads by default


def test_subclasses_arrive_as_their_plain_base():
    class Loud(str):
        def __eq__(self, other):
            return True

        __hash__ = str.__hash__

    pair = namedtuple("pair", "x y")
    colour = IntEnum("colour", "red")
    for value, plain in [
        (Loud("a"), "a"),
        (pair(1, 2), (1, 2)),
        (colour.red, 1),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(x=1), {"x": 1}),
    ]:
        arrived = crossed(value)
        assert arrived == plain
        assert type(arrived) is type(plain)


def test_a_container_that_occurs_twice_is_one_object_on_arrival():
    row = [0]
    rows = crossed([row, row, (row, {"row": row})])
    assert rows[0] is rows[1] is rows[2][0] is rows[2][1]["row"]


def test_a_container_may_hold_itself():
    loop: list[object] = [1]
    loop.append(loop)
    arrived = crossed(loop)
    assert arrived[1] is arrived


def test_exact_numbers_keep_their_type():
    assert type(crossed(Fraction(1, 3))) is Fraction
    assert str(crossed(Decimal("1.50"))) == "1.50"


@pytest.mark.parametrize("value", [object(), len, lambda: 0, iter([]), [object()], {1: object()}])
def test_unknown_objects_are_left_to_the_caller(value):
    with pytest.raises(LookupError):
        WireWriter([], refer).encode(value)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"eval": "1"},
        {"set": [], "tuple": []},
        {"set": [[]]},
        {"same": 0},
        {"same": "x"},
        {"dict": [[1]]},
        {"type": "print"},
        {"int": "zz"},
        {"int": 5},
        {"bytes": "xyz"},
        {"range": [0, 1, 0]},
        {"tuple": 5},
        {"Fraction": "1/0"},
    ],
    ids=str,
)
def test_data_that_nobody_wrote_is_refused(data):
    with pytest.raises((ValueError, TypeError, LookupError, ArithmeticError)):
        WireReader([], resolve).decode(data)
