"""LESS: calm, lasting and sure positions."""

import math

import pytest
import torch

from tests.helpers import Scripted, places, random_lookup, random_view, table
from unmask import ModelSpec, Rule, decode
from unmask.errors import RuleError
from unmask.rules.less import Less, top_drift

LIKELY, UNLIKELY = 6.0, 0.0


def tops(*pairs):
    tokens, weights = zip(*pairs, strict=True)
    return torch.tensor([tokens]), table(list(weights))


def test_equal_distributions_have_no_drift():
    now = tops((3, 0.5), (1, 0.25))
    assert float(top_drift(*now, *now)) == pytest.approx(0, abs=1e-9)


def test_distributions_without_a_common_token_are_log_2_apart():
    assert float(top_drift(*tops((0, 1.0)), *tops((1, 1.0)))) == pytest.approx(math.log(2))


def test_what_is_left_of_the_mass_counts_as_one_more_token():
    # p = (0.5, rest 0.5), q = (1, rest 0): m = (0.75, 0.25)
    p_part = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    wanted = (p_part + math.log(1 / 0.75)) / 2
    assert float(top_drift(*tops((7, 0.5)), *tops((7, 1.0)))) == pytest.approx(wanted)


def test_the_order_of_the_likeliest_tokens_does_not_matter():
    old = tops((1, 0.3), (2, 0.6))
    one, other = tops((1, 0.5), (2, 0.4)), tops((2, 0.4), (1, 0.5))
    assert torch.allclose(top_drift(*one, *old), top_drift(*other, *old))


def scripted(*likeliest):
    """A model of 4 positions and 5 tokens; each forward is sure of these tokens."""
    forwards = []
    for tokens in likeliest:
        logits = torch.full((5, 5), UNLIKELY)
        for position, token in enumerate(tokens, 1):
            logits[position, token] = LIKELY
        forwards.append(logits)
    return Scripted(forwards, ModelSpec(4, 5, name="scripted"))


def test_a_token_must_last_before_it_is_committed():
    model = scripted((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 0), (0, 1, 2, 0), (0, 1, 2, 0))
    result = decode(model, [0], "confidence | less(0.5, drift=0.1, persist=2)", length=4)
    # The best goes alone twice; the third forward has seen two of the same for all but the last.
    assert result.commit_step.tolist() == [-1, 0, 1, 2, 3]


def test_a_position_that_moves_waits_though_it_is_sure():
    steady, restless = (0, 1, 2, 3), (0, 1, 2, 0)
    model = scripted(steady, restless, steady, restless, steady)
    result = decode(model, [0], "confidence | less(0.5, drift=0.1, persist=1)", length=4)
    assert int(result.commit_step[4]) > int(result.commit_step[1:4].max())


def test_without_a_calm_position_the_share_of_the_timetable_goes():
    view = random_view(3)
    count = Less(conf=2.0, steps=2)(view, Rule.parse("confidence | top(1)").score(view)).sum(-1)
    assert (count[view.masked.any(-1)] >= 1).all()


def test_the_dream_form_goes_from_left_to_right():
    result = decode(random_lookup(5), [1], "confidence | less_dream(2, stop=no)", length=8)
    assert result.commit_step[1:].tolist() == list(range(8))


def test_after_its_steps_the_dream_form_takes_all_that_is_left():
    result = decode(random_lookup(5), [1], "confidence | less_dream(2, steps=3, stop=no)", length=8)
    assert result.nfe == 4


@pytest.mark.parametrize("knobs", ["persist=0", "drift=-1", "steps=-1"])
def test_knobs_out_of_range_are_refused(knobs):
    with pytest.raises(RuleError, match="less: "):
        Rule.parse(f"confidence | less(0.5, {knobs})")


def test_two_parts_with_the_same_memory_are_refused():
    less = Less()
    with pytest.raises(RuleError, match=r"two parts remember 'less\.last'"):
        Rule(less, less)


def test_the_gauge_counts_the_positions_that_pass():
    view = random_view(1)
    scores = Rule.parse("confidence | top(1)").score(view)
    assert Less().gauge(view, scores, view.masked)["passing"].tolist() == [0, 0, 0]
    assert places(Less()(view, scores)) != []
