"""What the free position of an entropy bound costs."""

from __future__ import annotations

import argparse
import json
import math
import re

import numpy as np
import pytest

from tests.paths import ROOT
from unmask.cli import theory as command
from unmask.studies import free_slot
from unmask.studies.theory import TOLERANCE

PAGE = ROOT / "docs" / "free-position.md"


@pytest.fixture(scope="module")
def result():
    return free_slot.check_free_slot(2000)


def test_the_three_bounds_hold_up_to_rounding(result):
    assert result.cases == 2000
    assert result.largest_violation < TOLERANCE


def test_without_its_price_the_free_position_breaks_the_bound_for_likeliest_tokens(result):
    assert 0 < result.exceeds < result.cases


def test_two_copies_of_a_bit_by_hand():
    joint = np.array([[[0.7, 0.0], [0.0, 0.3]]])  # [C, x_1, x_2]
    entropy = -0.7 * math.log(0.7) - 0.3 * math.log(0.3)
    measures = free_slot.measure_free(joint)
    assert measures.loss == pytest.approx([entropy] * 2)  # the bound is reached
    assert measures.others == pytest.approx([entropy] * 2)
    assert measures.miss == pytest.approx([0.3] * 2)
    assert measures.given == pytest.approx([0.0] * 2)
    assert measures.sure == pytest.approx([0.7] * 2)


def test_the_die_of_the_counter_example_makes_the_likeliest_pair_impossible():
    sides = free_slot.SIDES
    joint = np.zeros((1, sides, 2))
    joint[0, :, 0], joint[0, 0] = 1 / sides, (0, 1 / sides)
    measures = free_slot.measure_free(joint)  # f = the die, then f = the bit
    assert measures.others[0] == pytest.approx(free_slot.check_free_slot(1).die_entropy)
    assert measures.others[0] < 0.1
    assert measures.given[0] == 1.0
    assert measures.loss[0] == pytest.approx(measures.others[0])  # the bound is reached


def test_a_context_that_cannot_be_is_left_out():
    joint = np.zeros((2, 2, 2))
    joint[0] = [[0.5, 0.0], [0.0, 0.5]]
    assert len(free_slot.measure_free(joint).loss) == 2


def test_the_check_fails_for_a_wrong_bound(monkeypatch):
    right = free_slot.measure_free

    def smaller(joint):
        measures = right(joint)
        return measures._replace(others=measures.others * 0.9)

    monkeypatch.setattr(free_slot, "measure_free", smaller)
    assert free_slot.check_free_slot(200).sampling_violation > TOLERANCE


def test_the_command_tells_of_it_and_fails_with_it(monkeypatch, capsys):
    arguments = argparse.Namespace(cases=40, seed="0", json=True, model=None, task=None)
    assert command.run(arguments) == 0
    told = json.loads(capsys.readouterr().out)["free_slot"]
    assert told["exceeds"] == free_slot.check_free_slot(40).exceeds
    right = free_slot.measure_free
    monkeypatch.setattr(free_slot, "measure_free", lambda joint: right(joint)._replace(others=0.0))
    assert command.run(arguments) == 1


def test_the_page_shows_what_the_command_prints(result):
    def shape(text):
        return " ".join(re.sub(r"[\d.]+(e[+-]\d+)?", "#", text).split())

    shown = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    assert shape(shown) == shape("\n".join(free_slot.free_slot_lines(result)))
