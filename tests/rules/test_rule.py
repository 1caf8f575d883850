"""Rules: the stages in their order, and what they need."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import (
    bits,
    hand_view,
    pair_texts,
    pairwise,
    places,
    random_lookup,
    random_view,
    rule_texts,
    table,
)
from unmask import Needs, Rule, RuleError, Scores, decode
from unmask.rules.registry import kind_of, kinds
from unmask.rules.scores import confidence
from unmask.rules.select import Threshold, TopK
from unmask.rules.view import BOTH_KL


@settings(max_examples=4)
@given(seed=st.integers(0, 2**16))
def test_a_rule_chooses_masks_only_and_revokes_commitments_only(seed):
    view = random_view(seed)
    for text in pair_texts():
        decision = Rule.parse(text)(view)
        assert not (decision.chosen & ~view.masked).any(), text
        assert not (decision.revoked & ~(view.revocable | decision.chosen)).any(), text


def test_the_listed_rules_hold_every_registered_part():
    used = {kind_of(part).name for text in rule_texts() for part in Rule.parse(text).parts}
    missing = [kind.name for kind in kinds() if kind.name not in used]
    assert missing == []


def test_pairs_of_all_stages_occur_in_few_rows():
    stages = ["a", "b", "c"], ["d", "e"], ["f", "g"], ["h", "i", "j", "k"]
    rows = pairwise(*stages, allowed=lambda values: not {"a", "d"} <= values)
    assert len(rows) <= 14  # of 48
    for i, j in combinations(range(4), 2):
        wanted = {*product(stages[i], stages[j])} - {("a", "d")}
        assert {(row[i], row[j]) for row in rows} == wanted
    assert rows == pairwise(*stages, allowed=lambda values: not {"a", "d"} <= values)


def test_modulators_apply_one_after_another():
    view = hand_view([0.9, 0.9], kl_prev_cur=table([1.0, 0.0]))
    decision = Rule.parse("confidence | swd(1, start=skip) | pc(0.25) | top(1)")(view)
    torch.testing.assert_close(decision.scores.key - decision.base.key, table([-1.0, -0.25]))


def test_limits_come_after_the_selection():
    view = hand_view([0.9, 0.8, 0.7])
    assert places(Rule.parse("confidence | threshold(0.1) | cap(2)")(view).chosen) == [0, 1]


def test_without_a_revocation_nothing_is_revoked():
    decision = Rule.parse("confidence | top(1)")(random_view(0))
    assert not decision.revoked.any()


def test_ends_stay_last_behind_every_modulator():
    view = hand_view([0.9, 0.5], deferred=bits([1, 0]), kl_prev_cur=table([0.0, 900.0]))
    decision = Rule.parse("confidence | swd(5) | pc(9) | top(1)")(view)
    assert places(decision.chosen) == [1]


def test_a_rule_needs_what_its_parts_need_and_nothing_else():
    assert Rule.parse("confidence | eb(0.1)").needs == Needs()
    assert Rule.parse("confidence | swd(5) | eb(0.1)").needs == Needs(
        kl=frozenset({"prev_cur"}), uniform_start=True
    )
    both = Rule.parse("confidence | swd(5, start=skip) | budget(0.1, kl=cur_prev)")
    assert both.needs == Needs(kl=BOTH_KL)
    assert Rule.parse("random | klass").needs == Needs(trail=2, draws=True)
    assert Rule.parse("confidence | top | revoke(1, kl=cur_prev)").needs.drift == "cur_prev"


def test_rules_are_frozen_and_comparable():
    rule = Rule.parse("confidence | swd(5) | eb(0.1)")
    assert rule == Rule.parse("confidence | swd(5.0) | eb(0.1)")
    assert hash(rule) == hash(Rule.parse("confidence | swd(5) | eb(0.1)"))
    with pytest.raises(AttributeError):
        rule.select = None


def test_a_rule_of_no_parts_is_refused():
    with pytest.raises(RuleError, match="the rule has no score"):
        Rule.of([])


def test_something_that_is_no_part_is_refused_with_what_to_do():
    with pytest.raises(RuleError, match=r"not a registered part; decorate it with @unmask\.score"):
        Rule.of([lambda view: view.confidence])


def test_a_log_utility_is_ranked_as_it_is():
    rule = Rule(lambda view: Scores.log_utility(-view.entropy), TopK(1))
    decision = rule(hand_view([0.5, 0.5], entropy=table([0.9, 0.1])))
    assert places(decision.chosen) == [1]
    assert not decision.base.logarithmic


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            lambda view: Scores.log_utility(view.confidence * float("nan")),
            "gave NaN for a masked position",
        ),
        (
            lambda view: Scores.probability(view.confidence[:, 0]),
            r"must give a score for each of \(1, 4\) positions",
        ),
        (lambda view: None, "got NoneType"),
    ],
)
def test_a_score_that_is_no_number_for_every_position_is_named(given, message):
    model = random_lookup(0)
    rule = replace(Rule.parse("confidence | top(1)"), score=given)
    with pytest.raises(RuleError, match=message):
        decode(model, [1], rule, length=4)


def test_a_modulator_of_the_users_may_hold_positions_back():
    class Patient:
        def __call__(self, view, scores):
            return scores

        def ready(self, view, base):
            return view.masked & (view.masked.cumsum(-1) == 1)

    rule = replace(Rule.parse("confidence | threshold(0)"), modulators=(Patient(),))
    assert decode(random_lookup(0), [1], rule, length=4).nfe == 4


def test_a_selection_that_returns_no_bool_prints_no_tensor():
    view = hand_view([[0.9, 0.5]])
    for wrong, kind in ((lambda view, scores: scores.key, "float"), (lambda *_: [1], "list")):
        rule = replace(Rule.parse("confidence | top(1)"), select=wrong)
        with pytest.raises(
            RuleError, match=f"must return a bool tensor.*got (torch.)?{kind}"
        ) as error:
            rule(view)
        assert "tensor(" not in str(error.value)


@pytest.mark.parametrize(
    ("score", "line"),
    [
        (lambda view: view.confidence, "write `return unmask.Scores.probability(...)` around it"),
        (lambda view: view.confidence.log(), "write `return unmask.Scores.log_utility(...)`"),
        (lambda view: 3 * view.margin, "write `return unmask.Scores.log_utility(...)`"),
    ],
)
def test_a_score_without_a_unit_is_refused_with_the_line_that_mends_it(score, line):
    with pytest.raises(RuleError, match=re.escape(line)) as caught:
        Rule(score, TopK(1))(hand_view([0.9, 0.5], margin=table([0.8, 0.1])))
    assert "\n" not in str(caught.value)


def test_a_threshold_compares_a_probability_as_it_is():
    view = hand_view([0.95, 0.5, 0.92])
    rule = Rule(lambda view: Scores.probability(view.confidence), Threshold(0.9))
    assert places(rule(view).chosen) == [0, 2]


def test_a_probability_above_1_is_refused():
    with pytest.raises(RuleError, match=r"gave 1.8 as a probability, which is in \[0, 1\]"):
        Rule(lambda view: Scores.probability(2 * view.confidence), TopK(1))(hand_view([0.9, 0.5]))


def test_a_modulator_that_loses_the_unit_is_refused():
    rule = Rule(confidence, TopK(1), (lambda view, scores: scores.key - 1,))
    with pytest.raises(RuleError, match=r"as in `return scores - penalty`, got Tensor"):
        rule(hand_view([0.9, 0.5]))
