"""dllm's count rule."""

import pytest
import torch

from tests.helpers import random_lookup
from unmask import Rule, decode
from unmask.errors import RuleError


def _counts(steps, length, block=None):
    result = decode(
        random_lookup(1), [1], f"confidence | even({steps})", length=length, block=block
    )
    return torch.bincount(result.commit_step[1:]).tolist()


def test_shares_are_rounded_half_to_even():
    assert _counts(4, 10) == [2, 3, 2, 3]  # LLaDA's timetable: 3, 3, 2, 2
    assert _counts(2, 5) == [2, 3]


def test_steps_that_would_commit_nothing_are_left_out():
    assert _counts(8, 3) == [1, 1, 1]


def test_the_blocks_share_the_steps_rounded_up():
    assert _counts(3, 8, block=4) == [2, 2, 2, 2]


def test_the_number_of_steps_is_at_least_one():
    with pytest.raises(RuleError, match="even: steps"):
        Rule.parse("confidence | even(0)")
