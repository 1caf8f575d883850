"""Damaged files and forged configs: an error in one line or the same answer, in little memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import forked
from tests.paths import ROOT


def attacked(attack: str, part: int) -> dict[str, Any]:
    """What an attack in a process of its own has done; `part` 4 is every fourth of its cases."""
    done = forked.run("-m", f"tests.hostile.{attack}", part, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["megabytes"] < 1000
    return result


@pytest.mark.hostile
@pytest.mark.parametrize("part", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_500_corruptions_end_in_a_line_and_change_no_answer_without_a_word(part):
    result = attacked("corruptions", part)
    outcomes = [(key, n) for each in result["counts"].values() for key, n in each.items()]
    assert sum(n for _, n in outcomes) == 500 // part
    bad = [key for key, _ in outcomes if key.endswith(("traceback", "CHANGED", "long message"))]
    assert bad == []
    refused = sum(n for key, n in outcomes if key.endswith("refused"))
    assert refused > 250 // part  # the attack is real


@pytest.mark.hostile
@pytest.mark.parametrize("part", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_forged_configs_end_in_one_line_without_a_traceback(part):
    outcomes = attacked("forged_configs", part)["outcomes"]
    assert len(outcomes) >= 190 // part
    assert [each for each in outcomes.items() if each[1] not in ("ok", "refused")] == []
    assert list(outcomes.values()).count("refused") > 140 // part  # the attack is real
