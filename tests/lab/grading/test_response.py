"""Where an answer ends."""

from __future__ import annotations

import pytest

from unmask.lab.grading.response import ENDS, Response


@pytest.mark.parametrize("end", ENDS)
def test_an_answer_ends_at_its_first_end_token(end):
    assert Response(f"It is 5.{end}And 6.<|endoftext|>").cut == "It is 5."


def test_an_answer_ends_at_a_stop_string_but_its_prefill_does_not():
    response = Response("    return x\ndef g(): ...", "```python\ndef f(x):\n", ("\ndef",))
    assert response.cut == "```python\ndef f(x):\n    return x"


def test_the_whole_text_goes_beyond_the_end():
    assert Response("5<|eot_id|>6", "<reasoning>").whole == "<reasoning>5<|eot_id|>6"


def test_plain_text_has_no_special_tokens_but_keeps_tags_and_pipes():
    text = "<answer>|x| < 5</answer><|eot_id|><|mdm_mask|>6"
    assert Response(text).plain == "<answer>|x| < 5</answer>6"
