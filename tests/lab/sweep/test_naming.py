"""Two trials of one listing never look alike."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.lab.makers import trial
from unmask.decoding.options import OPTIONS
from unmask.lab.sweep.naming import names_of
from unmask.lab.sweep.tables import VARIED
from unmask.lab.sweep.trial import Trial

OTHERS = {
    "rule": "confidence | eb(0.1)", "length": 64, "block": 8, "eos": "last", "steps": 4,
    "history": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 3, "tempered": True, "seed": 7,
    "cache": "dual", "guidance": 1.5, "dtype": "bfloat16", "mask_id": 5, "quantize": "int8",
    "model": "mine", "longest": 64, "pack": True,
    "family": "llada", "sub_block": 4, "template_args": '{"a": 1}', "language": "json",
    "task": "code", "version": 2, "preset": "other", "timing": "batch size 1",
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_trials_that_differ_in_one_option_have_two_names(name):
    more = {"weights": "other"} if name == "model" else {}  # a trial's key has no name of a model
    one, other = trial(), trial(**{name: OTHERS[name]}, **more)
    assert len(set(names_of([one, other]).values())) == 2


def test_every_option_is_tried_above():
    assert OTHERS.keys() >= OPTIONS.keys()


def test_a_name_says_task_length_rule_and_window_and_nothing_usual():
    one = trial()
    assert names_of([one]) == {one.key: "words, 32 tokens: confidence | top(1), full window"}


def test_a_policy_is_named_in_every_trial_where_it_differs():
    kept, last = trial(block=16), trial(block=16, eos="last")
    assert list(names_of([kept, last]).values()) == [
        "words, 32 tokens: confidence | top(1), blocks of 16, EOS kept",
        "words, 32 tokens: confidence | top(1), blocks of 16, EOS last",
    ]


def test_a_table_has_a_column_for_every_field_of_a_trial():
    columns = {"model", "weights", "task", "rule", "parts", "block", "eos"}  # rules name versions
    assert {field.name for field in fields(Trial)} == columns | set(VARIED)
