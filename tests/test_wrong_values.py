"""Wrong values of the public functions are told in one line, by an UnmaskError."""

from __future__ import annotations

import pytest
import torch

import unmask
from tests.helpers import random_lookup

RULE = unmask.Rule.parse("confidence | top(1)")


class Hostile:
    """A value that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


ODD = [
    True,
    -1,
    0,
    1.5,
    10**30,
    "x",
    b"x",
    [[]],
    {"a": 1},
    object(),
    Hostile(),
    torch.ones(2),
]


def told(function, **values):
    """Call a function; an error must be one line of an UnmaskError."""
    message = ""
    try:
        function(**values)
    except unmask.UnmaskError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 900
    return bool(message)


@pytest.mark.parametrize("name", ["rule", "length", "block", "eos", "sampling", "steps", "history",
                                  "seed", "longest", "language", "prompt", "model"])  # fmt: skip
def test_a_wrong_value_of_decode_is_told(name):
    model = random_lookup(0)
    right = {"model": model, "prompt": [2, 3], "rule": RULE, "length": 2}
    refused = [told(unmask.decode, **{**right, name: value}) for value in ODD]
    assert sum(refused) >= 6


def test_wrong_kinds_are_told_by_name():
    model = random_lookup(0)
    settings = unmask.Settings(RULE)
    request = unmask.prompt_request(model.spec, [2], 2, settings)
    calls = [
        (unmask.prompt_request, {"spec": model.spec, "prompt": [2], "length": 2}, "settings"),
        (unmask.infill_request, {"settings": settings, "canvas": [2]}, "spec"),
        (lambda **k: list(unmask.decode_steps(**k)), {"requests": [request]}, "model"),
        (
            lambda **k: list(unmask.decode_steps(**k)),
            {"model": model, "requests": [2]},
            "batch_size",
        ),
        (unmask.Guided, {"scale": 1}, "model"),
        (unmask.Guided, {"model": model}, "scale"),
        (unmask.Rule.parse, {}, "text"),
    ]
    for function, right, name in calls:
        for value in (None, b"x", object(), Hostile()):
            assert told(function, **right, **{name: value}), (function, name)
    for decorator in (unmask.score, unmask.modulator, unmask.selection):
        with pytest.raises(unmask.RuleError, match="a part is a function or a class, got True"):
            decorator(True)
