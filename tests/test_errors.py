"""Errors in one line."""

from __future__ import annotations

import pytest

from unmask.errors import ModelError, RequestError, RuleError, UnknownName, UnmaskError, require


@pytest.mark.parametrize("kind", [RuleError, RequestError, ModelError, UnknownName])
def test_every_error_is_a_value_error_of_ours(kind):
    assert issubclass(kind, UnmaskError)
    assert issubclass(kind, ValueError)


def test_an_unknown_name_suggests_the_nearest():
    error = UnknownName("score", "conf", ["confidence", "margin"])
    assert str(error) == (
        "unknown score 'conf'; did you mean 'confidence'? known: confidence, margin"
    )


def test_an_unknown_name_unlike_any_only_lists():
    assert str(UnknownName("score", "zzz", ["margin"])) == "unknown score 'zzz'; known: margin"


def test_require_raises_unless_the_condition_holds():
    require(True, "fine")
    with pytest.raises(RuleError, match="not fine"):
        require(False, "not fine")
