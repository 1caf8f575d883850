"""What is compared with what, and what is refused."""

from __future__ import annotations

import pytest

from tests.lab.makers import asks
from tests.lab.stores import solved, summary, trial
from unmask.errors import UnknownName
from unmask.lab.report.pairs import compare
from unmask.lab.stats import holm, paired
from unmask.lab.summary import Summary, why_not
from unmask.lab.sweep.store import AskedExample, StoredExample

BASE, SWD = "confidence | eb(0.1)", "confidence | swd(5) | eb(0.1)"


def only(pairs):
    (value,) = pairs.values()
    return value


def test_an_swd_rule_is_compared_with_itself_at_lam_0():
    first, second = summary("1100", rule=BASE), summary("1010", rule=SWD)
    comparisons = compare([first, second])
    pair = only(comparisons.made)
    assert pair.against == "the same rule at lam 0"
    assert (pair.first, pair.second) == (first, second)
    assert pair.acc == paired([True, True, False, False], [True, False, True, False])
    assert not comparisons.refused


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"block": 16}, "block full there, 16 here"),
        ({"eos": "suppress"}, "eos keep there, suppress here"),
        ({"cache": "dual"}, "cache none there, dual here"),
        ({"seed": 1}, "seed 0 there, 1 here"),
        ({"weights": "others"}, "weights w there, others here"),
        ({"dtype": "bfloat16"}, "dtype float32 there, bfloat16 here"),
        ({"temperature": 0.5}, "temperature 0 there, 0.5 here"),
        ({"length": 64}, "length 32 there, 64 here"),
        ({"preset": "paper"}, "preset own there, paper here"),
        ({"history": 3}, "other options none there, history 3 here"),
    ],
)
def test_another_setting_is_no_baseline_and_the_difference_is_named(change, difference):
    second = summary("11", rule=SWD, **change)
    comparisons = compare([summary("11", rule=BASE), second])
    assert not comparisons.made
    reason = comparisons.refused[second.trial.key]
    assert reason == f"confidence | eb(0.1) was not run in the same setting ({difference})"


def test_other_examples_are_refused_with_the_reason():
    comparisons = compare([summary("111", rule=BASE), summary("11", rule=SWD)])
    assert only(comparisons.refused) == "1 examples, such as 002, were decoded in one of them only"


def test_another_wording_of_the_prompt_is_refused():
    other = [AskedExample("000", "x"), AskedExample("001", "y")]
    comparisons = compare([summary("11", rule=BASE), summary("11", rule=SWD, asked=other)])
    assert "the prompt of 000 differs" in only(comparisons.refused)


def test_verdicts_of_two_graders_are_refused():
    comparisons = compare([summary("11", rule=BASE), summary("11", rule=SWD, grader="words 2")])
    assert "different versions of the grader" in only(comparisons.refused)


def test_an_example_under_two_prompts_is_refused_not_paired_by_place():
    twice = [AskedExample("000", "x"), AskedExample("000", "y"), AskedExample("001", "z")]
    first = summary("111", rule=BASE, asked=twice)
    second = summary("11", rule=SWD, asked=[AskedExample("000", "y"), AskedExample("001", "z")])
    assert "two wordings" in why_not(first, second)


def test_a_threshold_may_have_another_tau_at_lam_0():
    first = summary("10", rule="confidence | threshold(0.9)")
    second = summary("11", rule="confidence | swd(5) | threshold(0.8)")
    pair = only(compare([first, second]).made)
    assert (pair.first, pair.other_knob) == (first, True)


def test_its_own_tau_comes_before_another():
    own = summary("10", rule="confidence | threshold(0.8)")
    other = summary("10", rule="confidence | threshold(0.9)")
    second = summary("11", rule="confidence | swd(5) | threshold(0.8)")
    pair = compare([other, own, second]).made[second.trial.key]
    assert (pair.first, pair.other_knob) == (own, False)


def test_two_other_taus_are_ambiguous():
    taus = [summary("10", rule=f"confidence | threshold({tau})") for tau in (0.7, 0.9)]
    second = summary("11", rule="confidence | swd(5) | threshold(0.8)")
    assert not compare([*taus, second]).made[second.trial.key].other_knob


def test_a_rule_without_a_partner_is_compared_with_the_best_rule_without_memory():
    best = summary("1110", rule="confidence | top(1)")
    poor = summary("1000", rule="margin | top(1)")
    lucky = summary("1", rule="entropy | top(1)")  # too few examples to be the best
    memory = summary("1111", rule="confidence | klass(0.9)")
    own = summary("1111", rule="mine(2) | mysel(0.3)")  # cannot be parsed here
    comparisons = compare([best, poor, lucky, memory, own])
    pairs = [comparisons.made[each.trial.key] for each in (poor, memory, own)]
    assert [pair.first for pair in pairs] == [best] * 3
    assert {pair.against for pair in pairs} == {"the best rule without memory"}
    assert comparisons.against == "confidence | top(1), the best rule without memory"
    assert list(comparisons.refused) == [lucky.trial.key]


def test_every_rule_is_in_a_comparison_beside_swd_and_its_partner():
    rules = (BASE, SWD, "confidence | top(1)")
    base, swd, top = (summary(p, rule=r) for p, r in zip(("10", "11", "11"), rules, strict=True))
    comparisons = compare([base, swd, top])
    assert {key: pair.first for key, pair in comparisons.made.items()} == {
        swd.trial.key: base,
        base.trial.key: top,
    }
    assert comparisons.against == (
        "the same rule at lam 0 (1) or confidence | top(1), the best rule without memory (1)"
    )
    assert not comparisons.about_swd


def test_the_best_rule_may_also_be_the_partner_of_swd():
    rules = (BASE, SWD, "confidence | top(1)")
    comparisons = compare(
        [summary(p, rule=r) for p, r in zip(("11", "11", "10"), rules, strict=True)]
    )
    assert comparisons.against == (
        "the same rule at lam 0 (1) or confidence | eb(0.1), the best rule without memory (1)"
    )


def test_the_only_rule_of_a_setting_is_named_as_such():
    one = summary("11", rule=BASE)
    assert only(compare([one]).refused) == "no other rule was run in the same setting"


def test_the_fingerprint_of_parts_is_no_part_of_the_setting():
    one, other = summary("10", rule=BASE), summary("11", rule="mine | eb(0.1)", parts="f1")
    assert only(compare([one, other], BASE).made).second is other
    assert only(compare([one, other], "mine|eb(0.1)").made).first is other


def test_swd_and_lam_0_are_partners_of_one_version_only():
    old = summary("10", rule="mine | eb(0.1)", parts="old")
    new = summary("11", rule="mine | eb(0.1)", parts="new")
    swd = summary("11", rule="mine | swd(5) | eb(0.1)", parts="old")
    assert only(compare([swd], older=[old, new]).made).first is old


def test_a_baseline_of_choice_meets_every_other_rule():
    rules = [BASE, SWD, "margin | eb(0.1)"]
    comparisons = compare([summary("10", rule=rule) for rule in rules], "confidence|eb(0.1)")
    assert {pair.second.trial.rule for pair in comparisons.made.values()} == set(rules[1:])
    assert {pair.first.trial.rule for pair in comparisons.made.values()} == {BASE}


def test_a_baseline_that_was_not_run_is_named():
    with pytest.raises(UnknownName, match=r"unknown baseline 'margin \| eb"):
        compare([summary("10", rule=BASE)], "margin | eb(0.1)")


@pytest.mark.parametrize(
    ("first", "second", "tone"),
    [
        ("0000000000", "1111111110", "gain"),
        ("1111111111", "0000000001", "loss"),
        ("1100000000", "1010000000", ""),
        ("0000000000", "1111100000", ""),  # its interval excludes 0, but p is 0.0625
    ],
)
def test_a_gain_or_loss_is_a_corrected_p_below_5_percent(first, second, tone):
    pair = only(compare([summary(first, rule=BASE), summary(second, rule=SWD)]).made)
    assert pair.tone == tone


def test_a_star_is_harder_to_earn_among_more_comparisons():
    gain = summary("0" * 4 + "1" * 6, rule=SWD)  # p 0.031
    alone = compare([summary("0" * 10, rule=BASE), gain])
    other = [
        summary("0" * 10, rule="margin | eb(0.1)"),
        summary("0" * 10, rule="margin | swd(5) | eb(0.1)"),
    ]
    among = compare([summary("0" * 10, rule=BASE), gain, *other])
    assert (alone.made[gain.trial.key].tone, among.made[gain.trial.key].tone) == ("gain", "")
    assert alone.stars == (
        "McNemar's exact p is below 0.05 after Holm's correction for the one comparison of this "
        "report"
    )
    assert "for all 2 comparisons" in among.stars


def test_baselines_of_a_full_window_are_compared_between_eos_policies():
    kept = summary("0" * 10, rule=BASE)
    others = [summary("1" * 10, rule=BASE, eos=eos) for eos in ("suppress", "last")]
    swd = [summary("1" * 10, rule=SWD), summary("1" * 10, rule=SWD, eos="suppress")]
    in_blocks = [summary("1" * 10, rule=BASE, block=16, eos=eos) for eos in ("keep", "suppress")]
    comparisons = compare([kept, *others, *swd, *in_blocks])
    assert [(pair.first, pair.second) for pair in comparisons.eos.values()] == [
        (kept, other) for other in others
    ]
    assert (len(comparisons.made), comparisons.count) == (2, 4)
    ps = [pair.acc.p for pair in (*comparisons.made.values(), *comparisons.eos.values())]
    assert [pair.holm for pair in (*comparisons.made.values(), *comparisons.eos.values())] == holm(
        ps
    )


def test_policies_over_other_examples_are_refused():
    kept, other = summary("111", rule=BASE), summary("11", rule=BASE, eos="last")
    comparisons = compare([kept, other])
    assert not comparisons.eos
    assert comparisons.eos_refused[other.trial.key].startswith("1 examples, such as 002")


def test_p_is_corrected_over_all_comparisons():
    trials = [summary("1" * 10, rule=BASE)]
    trials += [
        summary("0" * n + "1" * (10 - n), rule=f"confidence | swd({n}) | eb(0.1)")
        for n in (2, 6, 9)
    ]
    pairs = list(compare(trials).made.values())
    assert [pair.holm for pair in pairs] == holm([pair.acc.p for pair in pairs])
    assert pairs[2].holm == pytest.approx(3 * pairs[2].acc.p)


def test_compat_is_compared_too():
    rows = [
        [
            StoredExample(ask, {"nfe": 1}, {"acc": True, "acc_compat": right}, "g", 1)
            for ask in asks(4)
        ]
        for right in (True, False)
    ]
    first, second = (
        Summary.of(trial(rule=rule), each) for rule, each in zip((BASE, SWD), rows, strict=True)
    )
    pair = only(compare([first, second]).made)
    assert (pair.acc.difference, pair.compat.difference) == (0, -1)


def test_the_question_mark_is_an_answer_without_a_verdict():
    assert [right for right, _ in solved("10?")] == [True, False, None]
