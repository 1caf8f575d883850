"""End tokens that are kept out of the first positions of an answer."""

from tests.helpers import EOS, random_lookup
from unmask import decode

RULE = "no_end({}) | confidence | less_dream(1, drift=0, persist=4, steps=3, stop=no)"


def test_the_first_positions_hold_no_end_token():
    model = random_lookup(0, eos=30.0)
    answer = decode(model, [1, 2], RULE.format("4"), length=8).answer.tolist()
    assert EOS not in answer[:4]
    assert answer[4:] == [EOS] * 4


def test_what_is_left_after_the_last_step_may_end_the_answer():
    model = random_lookup(0, eos=30.0)
    answer = decode(model, [1, 2], RULE.format("6, steps=3"), length=8).answer.tolist()
    assert EOS not in answer[:3]  # one in each step, from the left
    assert answer[3:] == [EOS] * 5
